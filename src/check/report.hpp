// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kb::check {

/// One violation with its evidence. Texts are escaped for a terminal already.
struct Finding {
    /// Path inside the variant directory, "" for the variant as a whole.
    std::string library{};
    /// Id of the check: "manylinux", "python-abi", ...
    std::string check{};
    /// What it is about: a symbol as the file spells it, a library name, a path, an architecture.
    std::string subject{};
    /// The policy that was applied: "manylinux_2_28", "abi3 3.9", "torch stable ABI 2.11".
    std::string policy{};
    std::string found{};
    std::string allowed{};
    /// One line for people, lower case, without the library's name.
    std::string message{};
    /// What to do about it; one line, may be empty.
    std::string next_step{};
    /// Why the project's author lets it be, from kernel-builder.toml; empty for one that counts.
    std::string suppressed{};

    [[nodiscard]] bool counts() const { return suppressed.empty(); }

    auto operator<=>(const Finding&) const = default;
};

/// A look that was refused (not_checked) is not a pass.
enum class Outcome : std::uint8_t { passed, failed, not_checked };

[[nodiscard]] std::string_view to_text(Outcome outcome);

/// What one check said about one library (or about the variant, library "").
struct Verdict {
    std::string library{};
    std::string check{};
    Outcome outcome = Outcome::not_checked;
    /// Why it could not look, or why nothing was to be looked at; may be empty for passed.
    std::string reason{};
    /// A not_checked verdict that the caller allowed by name.
    bool allowed = false;

    auto operator<=>(const Verdict&) const = default;
};

/// Everything the checks said about one variant, sorted by library, check, subject.
struct Report {
    std::string variant{};
    std::vector<Verdict> verdicts{};
    std::vector<Finding> findings{};

    /// No finding but suppressed ones, and nothing unchecked that was not allowed by name.
    [[nodiscard]] bool passed() const;

    bool operator==(const Report&) const = default;
};

} // namespace kb::check
