// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "sys/file_system.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kb::project {

/// What is said about a variant beside `build/`: never in the variant's folder, whose bytes are
/// those of every other build.
struct Attestations {
    std::string statement{};
    std::string sbom{};
    /// "" when nobody signed.
    std::string envelope{};
};

/// `.kernel-builder/provenance` of the project that a `build/<variant>` belongs to.
[[nodiscard]] sys::Path attestation_directory(const sys::Path& variant_directory);

/// `not_found` when the variant has no statement there, `corrupt` when it has one without its bill
/// of materials.
[[nodiscard]] Result<Attestations>
read_attestations(sys::FileSystem& fs, const sys::Path& directory, std::string_view variant);

/// Whether statement and bill of materials are there, whatever they say.
[[nodiscard]] bool
has_attestations(sys::FileSystem& fs, const sys::Path& directory, std::string_view variant);

/// Replaces what is there of the variant; an envelope for another statement does not survive.
Result<void> write_attestations(sys::FileSystem& fs,
                                const sys::Path& directory,
                                std::string_view variant,
                                const Attestations& attestations);

/// The lock or the archive of the sources that a statement names; equal content is written once.
Result<void> write_named_blob(sys::FileSystem& fs,
                              const sys::Path& directory,
                              std::string_view kind,
                              std::string_view content);
inline constexpr std::string_view kLockKind = "build.lock";
inline constexpr std::string_view kSourcesKind = "sources.tar";

/// The names of all that is there of a variant: statement, bill of materials, signature, and the
/// blobs that the statement names. `corrupt` when such a blob has other content than its name says;
/// one that is not there is left out.
[[nodiscard]] Result<std::vector<std::string>> attestation_names(sys::FileSystem& fs,
                                                                 const sys::Path& directory,
                                                                 std::string_view variant,
                                                                 const Attestations& said);

/// Only the envelope.
Result<void> write_signature(sys::FileSystem& fs,
                             const sys::Path& directory,
                             std::string_view variant,
                             std::string_view envelope);

} // namespace kb::project
