// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "toolchain/provider.hpp"
#include "toolchain/providers/deb_sets.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kb::toolchain {

/// How apt is called for the packages of one set. For a suite that the user's configuration does
/// not list, lists of its own are read from the same archive into a temporary folder: nothing of
/// the system's apt is changed, its proxies and keys are used.
class Apt {
public:
    /// `not_found` without apt-get, and when a suite is wanted but no Debian archive is configured;
    /// `transient` when the lists cannot be read.
    static Result<Apt> open(const DebSet* set, const Machine& machine);

    Apt(const Apt&) = delete;
    Apt& operator=(const Apt&) = delete;
    Apt(Apt&& other) noexcept;
    Apt& operator=(Apt&&) = delete;
    ~Apt();

    /// "apt-get"/"apt-cache" with these words, in `directory`.
    Result<sys::ProcessResult> run(std::string_view program,
                                   const std::vector<std::string>& words,
                                   const sys::Path& directory) const;

private:
    explicit Apt(const Machine& machine) : machine_{&machine} {}

    Result<void> read_lists(const DebSet& set);

    const Machine* machine_;
    std::vector<std::string> options_{};
    sys::Path state_{}; ///< Temporary; empty when the system's lists are used.
};

/// What a failed call of apt-get said, with the next step.
[[nodiscard]] Error apt_failure(const sys::ProcessResult& result);

} // namespace kb::toolchain
