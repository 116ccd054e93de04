// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/variant.hpp"
#include "base/version.hpp"
#include "binfmt/shared_object.hpp"
#include "check/report.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::check {

/// What the variant claims, or the user asks for. An empty promise is not checked for and gives no
/// verdict.
struct Promise {
    /// From the directory name; nothing when it is no variant name (then every backend's libraries
    /// are allowed).
    std::optional<backend::Variant> variant{};
    /// "manylinux_2_28"; for ELF files only.
    std::string manylinux{};
    /// Limited API of Python.
    std::optional<Version> python_abi{};
    /// Target of torch's stable ABI.
    std::optional<Version> torch_stable_abi{};
    /// Oldest macOS that Mach-O files may ask for.
    std::optional<Version> macos{};
    /// Architectures of the device code, as in metadata: "8.0", "9.0a", "12.0+PTX", "gfx942".
    /// Nothing: any, but some for a CUDA or ROCm variant.
    std::optional<std::vector<std::string>> archs{};
    /// Libraries that may be needed besides those of the policies, by soname.
    std::vector<std::string> allowed_needed{};
};

/// One library of a variant. Without `object` the reason says why it could not be read.
struct Library {
    /// Path inside the variant directory.
    std::string path{};
    std::optional<binfmt::SharedObject> object{};
    std::string unread_reason{};
};

/// C++ names that the torch of the variant exports. Without `names` the reason says why.
struct TorchNameList {
    /// Sorted, borrowed.
    std::optional<std::span<const std::string_view>> names{};
    std::string missing_reason = "the names that this torch exports were not given";
};

/// A finding that the author has looked at and lets be. Empty texts mean any; all that are given
/// must agree.
struct Suppression {
    std::string check{};
    std::string variant{};
    std::string library{};
    std::string subject{};
    std::string reason{};
};

struct CheckInput {
    /// Name of the variant directory.
    std::string variant{};
    std::vector<Library> libraries{};
    Promise promise{};
    /// For variants of one torch version.
    TorchNameList torch_names{};
    /// Ids of checks that may say not_checked.
    std::vector<std::string> allow_unchecked{};
    /// Ids of the checks to run; empty runs all.
    std::vector<std::string> only{};
    std::vector<Suppression> suppressions{};
    /// Absolute directories of this machine that no library may name: where the project lies.
    std::vector<std::string> machine_places{};
};

/// What a check saw. With `not_checked` it could not look, for that reason.
struct Looked {
    std::vector<Finding> findings{};
    std::string not_checked{};
    /// For passed: what was seen, when that is worth a word.
    std::string note{};
};

/// A row of the table. `library` is asked for each library that `applies`; a check of the variant
/// as a whole has `variant` instead.
struct Check {
    std::string_view id{};
    /// What it proves, one line for `--help` and docs.
    std::string_view title{};
    /// Facts without which it cannot look.
    std::span<const binfmt::Fact> needs{};
    bool (*applies)(const Promise& promise, const binfmt::SharedObject& object) = nullptr;
    Looked (*library)(const CheckInput& input, const Library& library) = nullptr;
    bool (*applies_to_variant)(const Promise& promise) = nullptr;
    Looked (*variant)(const CheckInput& input) = nullptr;
};

/// All checks, in the order in which they are reported.
[[nodiscard]] std::span<const Check> all_checks();

/// The reason of the suppression that is about this finding of the variant; empty without one.
[[nodiscard]] std::string suppression_for(const CheckInput& input, const Finding& finding);

/// Findings and verdicts sorted by library, then check, then subject; findings of the same text
/// once. A library that could not be read is not_checked for the check "read".
[[nodiscard]] Report run(const CheckInput& input, std::span<const Check> checks);

} // namespace kb::check
