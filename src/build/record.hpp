// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "digest/digest.hpp"
#include "digest/key_file.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kb::build {

/// How one variant ended.
enum class Outcome : std::uint8_t { built, compile_failed, check_failed, cancelled };

[[nodiscard]] std::string_view to_text(Outcome outcome);

/// What happened to a variant when it was last built: `.kernel-builder/record/<variant>.json`.
/// Times, hosts and levels stand here and never in the package.
struct Record {
    std::string variant{};
    Outcome outcome = Outcome::built;
    digest::KeyFile key{};
    /// Of the sorted file list of the package; only when built.
    std::string package_digest{};
    std::string sandbox{};
    /// RFC 3339.
    std::string finished{};
    double seconds = 0;
    std::uint64_t peak_bytes = 0;
    /// Below `.kernel-builder/`.
    std::string log{};
    /// One line each; what failed and where to look.
    std::vector<std::string> failures{};
};

/// "kernel-builder/record/1".
[[nodiscard]] std::string write_record(const Record& record);
[[nodiscard]] Result<Record> parse_record(std::string_view json);

} // namespace kb::build
