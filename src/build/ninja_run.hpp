// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "sandbox/confine.hpp"
#include "sys/process.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::build {

/// One finished edge as Ninja said it.
struct NinjaProgress {
    std::uint64_t finished = 0;
    std::uint64_t total = 0;
    std::string what{};
};

/// One failed edge: its output file and what command and compiler printed.
struct NinjaFailure {
    std::string output{};
    std::string text{};

    bool operator==(const NinjaFailure&) const = default;
};

/// What the tools of a step that succeeded warned of: "CUDA relu.cu [9.0]" and their words, cut
/// after kWarningBytes. g++, clang and nvcc warnings, ptxas's spills and serialised wgmma.
struct StepWarning {
    std::string what{};
    std::string text{};

    bool operator==(const StepWarning&) const = default;
};

inline constexpr std::size_t kWarningBytes = 4096;

/// Whether a line of a compiler is one that its user should see.
[[nodiscard]] bool is_warning(std::string_view line);

/// Reads Ninja's output as it comes (NINJA_STATUS = kNinjaStatus).
class NinjaParser {
public:
    explicit NinjaParser(std::function<void(const NinjaProgress&)> on_progress)
        : on_progress_{std::move(on_progress)} {}

    void feed(std::string_view chunk);
    /// The last, unfinished line; call once at the end.
    void finish();

    [[nodiscard]] const std::vector<NinjaFailure>& failures() const { return failures_; }

    [[nodiscard]] const std::vector<StepWarning>& warnings() const { return warnings_; }

    /// Lines of Ninja itself: "ninja: error: ...".
    [[nodiscard]] const std::string& messages() const { return messages_; }

private:
    void line(std::string_view text);
    void progress(std::string_view text);
    void said(std::string_view text);

    std::function<void(const NinjaProgress&)> on_progress_;
    /// The step whose words come, and whether it warned.
    StepWarning step_;
    bool warned_ = false;
    std::vector<StepWarning> warnings_;
    std::string pending_;
    std::vector<NinjaFailure> failures_;
    std::string messages_;
    bool in_failure_ = false;
};

inline constexpr std::string_view kNinjaStatus = "@kb %f %t ";

struct NinjaRequest {
    /// Host paths; the work folder holds build.ninja and is the only writable place but the cache.
    sys::Path work{};
    sys::Path source{};
    /// For levels without mounts: where the fixed places are links; empty otherwise.
    sys::Path view{};
    /// Read-only roots with their places inside.
    std::vector<sandbox::Mount> roots{};
    sys::EnvironmentMap environment{};
    std::vector<std::string> targets{};
    unsigned jobs = 1;
    /// Stop at the first failure instead of building everything that can be built.
    bool fail_fast = false;
    /// Compiler cache directory; empty: none.
    sys::Path cache{};
    sandbox::Level level = sandbox::Level::namespaces;
    sandbox::ConfineTools tools{};
};

struct NinjaResult {
    sys::ExitStatus status{};
    std::vector<NinjaFailure> failures{};
    std::vector<StepWarning> warnings{};
    std::string messages{};
    double wall_seconds = 0;
};

/// The sandbox of a build: roots and sources read-only, work and cache writable, `/bin`, `/lib` and
/// `/lib64` as links into /usr, environment from nothing. With a view nothing is mounted: work and
/// cache are at the host's paths, programs come from the view.
[[nodiscard]] sandbox::SandboxSpec ninja_sandbox(const NinjaRequest& request);

/// Runs Ninja once in the sandbox. An Error only when it could not be started; `unsupported` when a
/// path holds a ':' and there are no mounts to hide it.
Result<NinjaResult> run_ninja(const NinjaRequest& request,
                              sys::ProcessRunner& processes,
                              const std::function<void(const NinjaProgress&)>& on_progress);

} // namespace kb::build
