// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/variant.hpp"
#include "base/result.hpp"
#include "base/version.hpp"
#include "check/report.hpp"
#include "sys/file_system.hpp"
#include "sys/process.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kb::build {

/// An operator that importing a kernel registered.
struct OpFacts {
    /// "namespace::name" or "namespace::name.overload".
    std::string name{};
    std::string schema{};
    /// Dispatch keys with an implementation: "CPU", "CUDA", "Meta", "CompositeImplicitAutograd",
    /// ...
    std::vector<std::string> keys{};
    /// Shapes can be computed without data: a fake, a Meta or a composite implementation.
    bool fake = false;

    bool operator==(const OpFacts&) const = default;
};

/// What importing a variant in a fresh Python showed.
struct ImportFacts {
    std::optional<Version> torch{};
    std::optional<Version> torch_cuda{};
    /// One line; empty when the import went well.
    std::string error{};
    /// Those that the import added, sorted by name.
    std::vector<OpFacts> ops{};
};

struct ImportRequest {
    std::string python = "python3";
    /// The variant directory.
    sys::Path directory{};
    /// metadata.json's id, under which clients import it.
    std::string id{};
    /// Only PATH, HOME and LD_LIBRARY_PATH of it reach the child.
    sys::EnvironmentMap environment{};
};

/// Imports the variant as clients do, in a child that sees no user packages and writes no bytecode.
/// A failing import is a result, not an Error; that the child cannot be asked is one.
[[nodiscard]] Result<ImportFacts> import_variant(sys::ProcessRunner& processes,
                                                 const ImportRequest& request);

/// PURE. Why this torch says nothing about the variant (another torch, no CUDA); empty when it
/// does.
[[nodiscard]] std::string import_gap(const backend::Variant& variant, const ImportFacts& facts);

/// PURE. Findings "op-namespace", "op-implementation" and "op-fake" for the operators of a variant.
[[nodiscard]] std::vector<check::Finding>
judge_ops(const backend::Variant& variant, const std::string& id, const ImportFacts& facts);

} // namespace kb::build
