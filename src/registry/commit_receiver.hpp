// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hub/commit_stream.hpp"
#include "registry/meta_store.hpp"
#include "registry/path_policy.hpp"
#include "store/blob_store.hpp"
#include "sys/file_system.hpp"
#include "sys/unique_fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::registry {

/// Regular files up to this size live in the database: a commit of hundreds of them is one fsync.
inline constexpr std::uint64_t kSmallBytes = 16UL << 10U;

[[nodiscard]] inline bool is_small(const FileRow& file) {
    return !file.is_lfs && file.size <= kSmallBytes;
}

/// An operation whose content, if any, is on disk.
struct StagedOp {
    hub::CommitOp op{};
    /// Of a FileOp.
    FileRow file{};
};

/// A file without a name that collects small contents, so that they are in memory one at a time.
class SpillFile {
public:
    [[nodiscard]] static Result<SpillFile> create(const sys::Path& directory);
    [[nodiscard]] Result<void> append(const digest::Digest& sha256, std::string_view content);
    /// The i-th, or nothing.
    [[nodiscard]] Result<std::optional<SmallBlob>> read(std::size_t index) const;

private:
    struct Piece {
        digest::Digest sha256{};
        std::uint64_t offset = 0;
        std::size_t length = 0;
    };

    explicit SpillFile(sys::UniqueFd fd) : fd_{std::move(fd)} {}

    sys::UniqueFd fd_;
    std::uint64_t size_ = 0;
    std::vector<Piece> pieces_;
};

/// Stages a commit stream: hashes contents, puts large ones into the blob store (synced) and small
/// ones into a spill file. What it refuses is `corrupt`; any other error is ours.
class CommitReceiver : public hub::CommitSink {
public:
    CommitReceiver(store::BlobStore& blobs, SpillFile spill)
        : blobs_{&blobs}, spill_{std::move(spill)} {}

    Result<void> on_header(hub::CommitHeader header) override;
    Result<void> on_content(Bytes bytes) override;
    Result<void> on_content_restart() override;
    Result<void> on_operation(hub::CommitOp op) override;

    [[nodiscard]] const hub::CommitHeader& header() const { return header_; }

    [[nodiscard]] const std::vector<StagedOp>& ops() const { return ops_; }

    [[nodiscard]] const SpillFile& small_contents() const { return spill_; }

private:
    [[nodiscard]] Result<FileRow> finish_content();

    store::BlobStore* blobs_;
    SpillFile spill_;
    hub::CommitHeader header_;
    std::vector<StagedOp> ops_;
    std::string content_; ///< Of the operation at hand, while it is small.
    std::optional<store::BlobWriter> writer_;
};

} // namespace kb::registry
