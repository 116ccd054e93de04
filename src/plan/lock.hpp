// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/requirement.hpp"
#include "backend/variant.hpp"
#include "base/result.hpp"
#include "digest/digest.hpp"

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::plan {

/// The part of a file that is kept.
struct LockSlice {
    std::string name{};
    /// Of the RECORD of a wheel: checks each member without the whole file.
    std::optional<digest::Digest> record_sha256{};
    /// Of the manifest of what was unpacked.
    std::optional<digest::Digest> manifest_sha256{};

    auto operator<=>(const LockSlice&) const = default;
};

/// One file that is pinned. Never a url or a host: a mirror serves the same lock.
struct LockEntry {
    /// Id of a Requirement, or of one member of a set ("deb/libc6@2.36-9#gcc-12").
    std::string id{};
    std::string file{};
    /// "x86_64-linux", or "any".
    std::string platform{};
    std::uint64_t size = 0;
    digest::Digest sha256{};
    std::optional<LockSlice> slice{};

    auto operator<=>(const LockEntry&) const = default;
};

/// build.lock.
struct Lock {
    /// Sorted by id, platform, file, without doubles, after parse_lock().
    std::vector<LockEntry> entries{};

    bool operator==(const Lock&) const = default;
};

/// Strict: `corrupt` with the place or the entry for malformed JSON, another schema, an unknown
/// key, a bad digest, a file name with a '/', two entries of one id, platform and file.
[[nodiscard]] Result<Lock> parse_lock(std::string_view json);
/// Canonical JSON, sorted whatever the order of `entries`.
[[nodiscard]] std::string write_lock(const Lock& lock);
/// Of the canonical text: the name by which records and metadata call a lock.
[[nodiscard]] digest::Digest digest_of(const Lock& lock);

/// An entry satisfies the requirement of its own id; a requirement "deb/NAME@VERSION" (or "conda/")
/// is a set and is satisfied by all entries of that provider with the slice "NAME-VERSION".
[[nodiscard]] bool satisfies(const LockEntry& entry, const backend::Requirement& requirement);
/// Entries for one platform (its own and "any"), in the lock's order; empty: it must be locked
/// first.
[[nodiscard]] std::vector<const LockEntry*> entries_for(const Lock& lock,
                                                        const backend::Requirement& requirement,
                                                        const backend::Platform& platform);

} // namespace kb::plan
