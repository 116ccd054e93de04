// SPDX-License-Identifier: Apache-2.0
#include "build/tokens.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kb::build {

namespace {

constexpr std::uint64_t kMib = 1UL << 20U;
/// A pipe holds 64 KiB by default; more tokens than that would block whoever gives them back.
constexpr std::uint64_t kMaxTokens = 60000;

} // namespace

TokenSize token_size(std::uint64_t memory_bytes) {
    const std::uint64_t mib = std::max<std::uint64_t>(memory_bytes / kMib, 1);
    const std::uint64_t unit = (mib + kMaxTokens - 1) / kMaxTokens;
    return {.unit_mib = unit, .total = mib / unit};
}

Result<TokenPool> TokenPool::open(sys::FileSystem& fs,
                                  const sys::Path& dir,
                                  std::uint64_t memory_bytes,
                                  const std::map<std::string, std::uint64_t>& expected) {
    KB_TRY(fs.remove_tree(dir));
    KB_TRY(fs.make_directories(dir));
    const TokenSize size = token_size(memory_bytes);
    std::string sizes = fmt::format("unit {}\ntotal {}\n", size.unit_mib, size.total);
    for (const auto& [object, bytes] : expected) {
        const std::uint64_t mib = bytes / kMib * 6 / 5 + 1;
        sizes += fmt::format("{} {}\n", object, mib / size.unit_mib + 1);
    }
    KB_TRY(fs.write_scratch(dir / "sizes", sizes, FileMode::regular));
    KB_TRY(fs.write_scratch(dir / "launch", launcher_program(), FileMode::executable));
    const sys::Path fifo = dir / "tokens";
    if (::mkfifo(fifo.c_str(), 0600) != 0) {
        return error_from_errno(errno, fmt::format("making the FIFO '{}'", fifo.string()));
    }
    sys::UniqueFd fd{::open(fifo.c_str(), O_RDWR | O_CLOEXEC)};
    if (!fd) {
        return error_from_errno(errno, fmt::format("opening the FIFO '{}'", fifo.string()));
    }
    const std::string tokens(size.total, 'm');
    if (::write(fd.get(), tokens.data(), tokens.size()) != static_cast<ssize_t>(tokens.size())) {
        return error_from_errno(errno, fmt::format("filling the FIFO '{}'", fifo.string()));
    }
    return TokenPool{std::move(fd), dir};
}

std::vector<LaunchRecord> parse_launch_log(std::string_view text) {
    std::vector<LaunchRecord> out;
    for (const std::string_view line : split(text, '\n')) {
        const auto fields = split(line, '\t');
        if (fields.size() != 8) {
            continue;
        }
        std::vector<std::uint64_t> numbers;
        for (std::size_t i = 1; i < fields.size(); ++i) {
            // Exit code -1 stands for "no exit code: killed".
            const auto number =
                fields[i] == "-1" ? std::optional<std::uint64_t>{255} : parse_unsigned(fields[i]);
            if (number) {
                numbers.push_back(*number);
            }
        }
        if (numbers.size() != 7) {
            continue;
        }
        out.push_back({.object = std::string{fields[0]},
                       .exit_code = static_cast<int>(numbers[0]),
                       .signal = static_cast<int>(numbers[1]),
                       .peak_bytes = numbers[2] * 1024,
                       .user_seconds = static_cast<double>(numbers[3]) / 1000.0,
                       .system_seconds = static_cast<double>(numbers[4]) / 1000.0,
                       .wall_seconds = static_cast<double>(numbers[5]) / 1000.0,
                       .runs = static_cast<int>(numbers[6])});
    }
    return out;
}

Result<std::vector<LaunchRecord>> TokenPool::read_log(sys::FileSystem& fs) const {
    Result<std::string> text = fs.read_file(dir_ / "log");
    if (!text && text.error().code == ErrorCode::not_found) {
        return std::vector<LaunchRecord>{};
    }
    if (!text) {
        return std::move(text).error();
    }
    return parse_launch_log(*text);
}

} // namespace kb::build
