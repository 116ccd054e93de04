// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "package/verify.hpp"
#include "project/hash_cache.hpp"
#include "project/variant_dirs.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace kb::project {

/// Whether the digest in metadata.json may stand for a large file that was not hashed yet.
enum class Trust : std::uint8_t { nothing, claims };

/// A file smaller than this is hashed at once.
inline constexpr std::uint64_t kClaimedBytes = 4UL << 20U;

/// Reads finished variants with as little hashing before the first answer as can be: an unchanged
/// file costs a stat, a large one may be taken at its word and is hashed later, by
/// check_claims(), while something else goes on.
class PackageReader {
public:
    PackageReader(sys::FileSystem& fs, sys::Clock& clock, HashCache cache, unsigned threads)
        : fs_{&fs}, clock_{&clock}, cache_{std::move(cache)}, threads_{threads} {}

    /// Metadata and file list of each variant, in their order.
    [[nodiscard]] Result<std::vector<package::Package>> read(std::span<const VariantDir> variants,
                                                             Trust trust);

    /// Hashes what read() took at its word and writes the true digests into `packages`, which are
    /// those of read(). False: at least one is another. May run in another thread than read() did.
    [[nodiscard]] Result<bool> check_claims(std::span<package::Package> packages);

    /// Remembers what was hashed for the next run.
    [[nodiscard]] Result<void> save() { return cache_.save(*fs_); }

private:
    void collect_claims(const VariantDir& variant,
                        const package::Metadata& metadata,
                        const std::vector<sys::WalkEntry>& entries);

    sys::FileSystem* fs_;
    sys::Clock* clock_;
    HashCache cache_;
    unsigned threads_;
    std::map<sys::Path, digest::Digest> claims_{};
};

} // namespace kb::project
