// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.hpp"
#include "base/version.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kb::check {

using Names = std::set<std::string_view>;

/// One manylinux policy for one architecture. The texts live as long as the program.
struct ManylinuxPolicy {
    std::string_view name{};
    /// "GLIBC" -> allowed versions; a tag without entry is not the policy's business. Empty when
    /// the policy does not know the architecture.
    std::map<std::string_view, Names> versions{};
    /// Libraries that a system of this policy has.
    Names libraries{};
    /// Library -> symbols that must not be taken from it.
    std::map<std::string_view, Names> blacklist{};
};

/// By name or alias ("manylinux2014"); nothing for a name that no policy has.
[[nodiscard]] std::optional<ManylinuxPolicy> find_manylinux(std::string_view name,
                                                            std::string_view architecture);
/// Names without aliases, oldest first.
[[nodiscard]] std::vector<std::string_view> manylinux_names();

/// When Python added the symbol to its stable ABI; nothing for other symbols.
[[nodiscard]] std::optional<Version> python_symbol_added(std::string_view symbol);

/// When torch added the function to its stable C interface; nothing for those before 2.10 and for
/// other symbols.
[[nodiscard]] std::optional<Version> torch_shim_added(std::string_view symbol);

/// Sonames of the backend's runtime that a variant for this version may need.
[[nodiscard]] Names runtime_libraries(backend::BackendId backend, const Version& version);

} // namespace kb::check
