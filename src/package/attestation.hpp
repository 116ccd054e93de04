// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/report.hpp"
#include "package/verify.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::package {

/// One input of a build: a source by its path, or a pinned file by its id in the lock.
struct Ingredient {
    std::string id{};
    /// File name of a pinned input, "" for sources.
    std::string file{};
    digest::Digest sha256{};
};

/// What a statement and a bill of materials are made of. Nothing of it depends on time, host or
/// user, so equal builds give equal bytes.
struct AttestationInput {
    const Package& package;
    /// Sorted by id.
    std::vector<Ingredient> sources{};
    std::vector<Ingredient> toolchain{};
    /// Of the archive that holds the sources; nothing when none was made.
    std::optional<digest::Digest> source_archive{};
};

/// What a statement names beside the variant and its bill: kept and published by these digests.
struct NamedBlobs {
    /// The lock, as `write_lock` prints it.
    std::optional<digest::Digest> lock{};
    std::optional<digest::Digest> source_archive{};
};

/// CycloneDX 1.5: the variant, the pinned inputs it was built with and what it needs from Python.
[[nodiscard]] std::string write_sbom(const AttestationInput& input);

/// in-toto Statement 1 with SLSA provenance 1: subjects are all files of the variant, the
/// dependencies its inputs ("build.lock" among them), the bill of materials and the archive of the
/// sources byproducts.
[[nodiscard]] std::string write_statement(const AttestationInput& input, std::string_view sbom);

/// Nothing for what the text does not name, or when it is no statement of ours.
[[nodiscard]] NamedBlobs named_blobs(std::string_view statement);

/// What of a statement is not true of the package or of the bill of materials: files missing,
/// changed or unknown, another build key, lock or sandbox level. "statement" is the check of each
/// finding; one finding when the text is no such statement.
[[nodiscard]] std::vector<check::Finding>
judge_statement(const Package& package, std::string_view statement, std::string_view sbom);

/// Bytecode, which no statement covers and Python may run in place of a source: what a signature
/// vouches for holds none, not even what an import wrote. "statement" is the check of each finding.
[[nodiscard]] std::vector<check::Finding> find_uncovered(const Package& package);

/// The bytes that a signature of a statement covers (DSSE 1, "pre-authentication encoding").
[[nodiscard]] std::string signed_bytes(std::string_view statement);
/// The DSSE envelope of one signature.
[[nodiscard]] std::string
write_envelope(std::string_view statement, std::string_view key_id, std::string_view signature);
/// Whether one signature of the envelope is by this key over exactly this statement; "signature" is
/// the check of each finding.
[[nodiscard]] std::vector<check::Finding>
judge_envelope(std::string_view statement, std::string_view envelope, std::string_view public_pem);

} // namespace kb::package
