// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "digest/digest.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::store {

struct StoredBlob {
    digest::Digest digest{};
    std::uint64_t size = 0;

    bool operator==(const StoredBlob&) const = default;
};

/// What a blob must turn out to be; whatever is not given is not checked.
struct BlobExpectation {
    std::optional<digest::Digest> digest{};
    std::optional<std::uint64_t> size{};
};

class BlobStore;

/// Whether adding a blob that is there already renews its time: a collector beside adders goes by
/// it.
enum class Renew : std::uint8_t { no, yes };

/// A blob on its way in: bytes are hashed while they are written to a temporary. Without finish()
/// the destructor removes the temporary.
class BlobWriter {
public:
    ~BlobWriter();
    BlobWriter(BlobWriter&&) noexcept;
    BlobWriter& operator=(BlobWriter&&) = delete;
    BlobWriter(const BlobWriter&) = delete;
    BlobWriter& operator=(const BlobWriter&) = delete;

    Result<void> write(std::string_view bytes);
    /// Syncs, checks and renames in; a blob that is there already is success. `corrupt` names what
    /// was expected and found; nothing is kept then. Call it once.
    Result<StoredBlob> finish(const BlobExpectation& expected = {});

    [[nodiscard]] std::uint64_t written() const { return written_; }

private:
    friend class BlobStore;
    BlobWriter(sys::FileSystem& fs,
               sys::Path directory,
               sys::Path temporary,
               std::unique_ptr<sys::OutputFile> file,
               Renew renew);

    sys::FileSystem* fs_;
    sys::Path directory_;
    sys::Path temporary_; ///< Empty once it is renamed, removed or moved from.
    std::unique_ptr<sys::OutputFile> file_;
    digest::Sha256 hasher_;
    std::uint64_t written_ = 0;
    Renew renew_ = Renew::no;
};

/// Immutable files named by the sha256 of their bytes: <directory>/ab/<hex>. A blob that is there
/// is whole. Adders in several threads and processes cannot collide; remove() is for collection and
/// needs the caller's own lock against adders, set_aside() does not.
class BlobStore {
public:
    /// Makes both directories; they must be on one file system.
    static Result<BlobStore> open(sys::FileSystem& fs,
                                  sys::Path directory,
                                  sys::Path temporary_directory,
                                  Renew renew = Renew::no);

    Result<BlobWriter> begin();
    Result<StoredBlob> put(std::string_view content, const BlobExpectation& expected = {});
    /// Hashes the file and renames it in; it must be on the same file system and nobody else's.
    Result<StoredBlob> adopt(const sys::Path& file, const BlobExpectation& expected = {});

    /// `not_found` when missing.
    Result<std::unique_ptr<sys::InputFile>> open_read(const digest::Digest& digest);
    /// Nothing when missing.
    Result<std::optional<std::uint64_t>> size(const digest::Digest& digest);
    /// Reads it all; `corrupt` when the bytes no longer are what the name says.
    Result<StoredBlob> verify(const digest::Digest& digest);
    /// Missing is success.
    Result<void> remove(const digest::Digest& digest);
    /// Removes a blob beside adders, who renew: it is moved aside, `is_wanted` is asked, and it
    /// comes back when somebody wants it or renewed it at `before` (Unix time) or later. False: it
    /// stays. An adder that comes meanwhile adds it anew. After a crash restore_aside() brings back
    /// what was aside.
    Result<bool> set_aside(const digest::Digest& digest,
                           std::int64_t before,
                           const std::function<Result<bool>()>& is_wanted);
    Result<void> restore_aside();
    /// All blobs, sorted. A file that is no blob is skipped.
    Result<std::vector<digest::Digest>> list();

    [[nodiscard]] sys::Path path_of(const digest::Digest& digest) const;

private:
    BlobStore(sys::FileSystem& fs, sys::Path directory, sys::Path temporary_directory, Renew renew)
        : fs_{&fs},
          directory_{std::move(directory)},
          temporary_{std::move(temporary_directory)},
          renew_{renew} {}

    sys::FileSystem* fs_;
    sys::Path directory_;
    sys::Path temporary_;
    Renew renew_;
};

/// sha256 and size of a regular file, read in blocks.
Result<StoredBlob> hash_file(sys::FileSystem& fs, const sys::Path& path);

/// "expected sha256 ..., found ..." when the blob is not the expected one.
[[nodiscard]] Result<void> check_blob(const StoredBlob& found, const BlobExpectation& expected);

/// A name for a temporary that no other process and thread uses.
[[nodiscard]] std::string unique_name();

} // namespace kb::store
