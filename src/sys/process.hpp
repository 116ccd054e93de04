// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "sys/file_system.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::sys {

using EnvironmentMap = std::map<std::string, std::string>;

enum class Output : std::uint8_t { capture, inherit, discard };

struct ProcessSpec {
    std::vector<std::string> argv{}; ///< argv[0] is looked up in PATH unless it holds a '/'.
    std::optional<EnvironmentMap> environment{}; ///< Nothing: inherited; else exactly this.
    Path working_directory{};                    ///< Empty: the current one.
    std::string input{};                         ///< Standard input; empty reads /dev/null.
    Output out = Output::capture;
    Output err = Output::capture;
    /// Called with every chunk of standard output or error as it comes, besides capturing; may be
    /// empty.
    std::function<void(std::string_view)> on_output{};
    std::optional<std::chrono::milliseconds> timeout{};
    std::uint64_t max_capture = 64UL << 20U; ///< Bytes kept of each stream; the rest is dropped.
    /// Descriptors that the child keeps under the same number (all others are closed on exec).
    std::vector<int> keep_descriptors{};
    /// Runs in the child just before exec; returns 0 or an errno, which fails the start with
    /// `denied`. Must be async-signal-safe: system calls on values prepared before, no allocation.
    std::function<int()> before_exec{};
};

/// Exited, signalled, timed out, interrupted (by our own Ctrl-C) are four results.
struct ExitStatus {
    enum class Kind : std::uint8_t { exited, signalled, timed_out, interrupted };
    Kind kind = Kind::exited;
    int code = 0; ///< Exit code, or signal number.

    [[nodiscard]] bool ok() const { return kind == Kind::exited && code == 0; }

    /// "exit code 1", "killed by signal 9 (Killed)", "timed out", "interrupted".
    [[nodiscard]] std::string to_text() const;
    bool operator==(const ExitStatus&) const = default;
};

struct ProcessResult {
    ExitStatus status{};
    std::string out{};
    std::string err{};
    std::uint64_t peak_rss_bytes =
        0; ///< Largest single process of the tree that was waited for (wait4).
    double user_seconds = 0;
    double system_seconds = 0;
    double wall_seconds = 0;
};

/// Runs children; an interface because tests fake programs.
class ProcessRunner {
public:
    virtual ~ProcessRunner() = default;
    /// Starts the child in its own process group with signals reset, waits for it. Error only when
    /// it could not be started (`not_found`: no such program). On time-out or interruption the
    /// group gets TERM, then KILL.
    virtual Result<ProcessResult> run(const ProcessSpec& spec) = 0;
};

/// The real one. One call at a time per thread; usable from several threads.
ProcessRunner& real_process_runner();

/// First executable of that name in `path_variable` (the value of PATH), if any.
std::optional<Path> find_program(std::string_view name, std::string_view path_variable);

} // namespace kb::sys
