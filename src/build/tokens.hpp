// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "sys/file_system.hpp"
#include "sys/unique_fd.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kb::build {

/// What one compiler run used, as the launcher logged it.
struct LaunchRecord {
    std::string object{};
    int exit_code = 0;
    int signal = 0;
    std::uint64_t peak_bytes = 0;
    double user_seconds = 0;
    double system_seconds = 0;
    double wall_seconds = 0;
    /// 2 when it was killed and run again alone.
    int runs = 1;

    bool operator==(const LaunchRecord&) const = default;
};

/// Memory as tokens in a FIFO that the launchers of one Ninja run share. Made anew for each run: a
/// killed launcher takes its tokens with it.
class TokenPool {
public:
    /// Writes the launcher, the FIFO and the sizes into `dir`. `expected`: bytes by object, learnt
    /// from earlier runs; 20 % are added.
    static Result<TokenPool> open(sys::FileSystem& fs,
                                  const sys::Path& dir,
                                  std::uint64_t memory_bytes,
                                  const std::map<std::string, std::uint64_t>& expected);

    /// All runs logged so far, in order of their end. Malformed lines (a full disk) are left out.
    [[nodiscard]] Result<std::vector<LaunchRecord>> read_log(sys::FileSystem& fs) const;

private:
    TokenPool(sys::UniqueFd fifo, sys::Path dir) : fifo_{std::move(fifo)}, dir_{std::move(dir)} {}

    sys::UniqueFd fifo_; ///< Keeps the tokens alive while no launcher has the FIFO open.
    sys::Path dir_;
};

/// Tokens for an amount of memory: unit in MiB and count, so that the count fits a pipe (64 KiB).
struct TokenSize {
    std::uint64_t unit_mib = 1;
    std::uint64_t total = 0;
};

[[nodiscard]] TokenSize token_size(std::uint64_t memory_bytes);

/// One line of the launcher's log.
[[nodiscard]] std::vector<LaunchRecord> parse_launch_log(std::string_view text);

/// The launcher's program, compiled in.
[[nodiscard]] std::string_view launcher_program();

} // namespace kb::build
