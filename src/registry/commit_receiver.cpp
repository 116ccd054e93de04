// SPDX-License-Identifier: Apache-2.0
#include "registry/commit_receiver.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace kb::registry {

namespace {

constexpr std::size_t kBlock = 256UL << 10U;

Error refused(const RelPath& path, std::string_view why) {
    return {.code = ErrorCode::corrupt,
            .message = fmt::format("'{}' cannot be committed: {}", path.text(), why)};
}

/// The size stands in front of a git blob's content, so a streamed one is read again for its id.
Result<hub::GitOid> blob_id(store::BlobStore& blobs, const store::StoredBlob& blob) {
    KB_TRY(const auto file, blobs.open_read(blob.digest));
    hub::GitBlobHasher hasher{blob.size};
    std::string block(kBlock, '\0');
    for (std::uint64_t at = 0; at < blob.size;) {
        KB_TRY(const std::size_t n, file->read_at(at, block.data(), block.size()));
        if (n == 0) {
            return Error{.code = ErrorCode::internal, .message = "a blob became shorter"};
        }
        hasher.update(as_bytes(std::string_view{block}.substr(0, n)));
        at += n;
    }
    return hasher.finish();
}

const RelPath& path_of(const hub::CommitOp& op) {
    return std::visit([](const auto& value) -> const RelPath& { return value.path; }, op);
}

bool adds(const hub::CommitOp& op) {
    return !std::holds_alternative<hub::DeletedFileOp>(op) &&
           !std::holds_alternative<hub::DeletedFolderOp>(op);
}

} // namespace

Result<SpillFile> SpillFile::create(const sys::Path& directory) {
    sys::UniqueFd fd{::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
    if (!fd) {
        return error_from_errno(errno,
                                fmt::format("making a temporary in '{}'", directory.string()));
    }
    return SpillFile{std::move(fd)};
}

Result<void> SpillFile::append(const digest::Digest& sha256, std::string_view content) {
    const Piece piece{.sha256 = sha256, .offset = size_, .length = content.size()};
    while (!content.empty()) {
        const ssize_t n =
            ::pwrite(fd_.get(), content.data(), content.size(), static_cast<off_t>(size_));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return error_from_errno(n < 0 ? errno : ENOSPC, "writing a temporary");
        }
        content.remove_prefix(static_cast<std::size_t>(n));
        size_ += static_cast<std::uint64_t>(n);
    }
    pieces_.push_back(piece);
    return {};
}

Result<std::optional<SmallBlob>> SpillFile::read(std::size_t index) const {
    if (index >= pieces_.size()) {
        return std::optional<SmallBlob>{};
    }
    const Piece& piece = pieces_[index];
    SmallBlob blob{.sha256 = piece.sha256, .content = std::string(piece.length, '\0')};
    std::size_t done = 0;
    while (done < piece.length) {
        const ssize_t n = ::pread(fd_.get(),
                                  blob.content.data() + done,
                                  piece.length - done,
                                  static_cast<off_t>(piece.offset + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return error_from_errno(n < 0 ? errno : EIO, "reading a temporary");
        }
        done += static_cast<std::size_t>(n);
    }
    return std::optional{std::move(blob)};
}

Result<void> CommitReceiver::on_header(hub::CommitHeader header) {
    header_ = std::move(header);
    return {};
}

Result<void> CommitReceiver::on_content(Bytes bytes) {
    if (!writer_ && content_.size() + bytes.size() <= kSmallBytes) {
        content_ += as_text(bytes);
        return {};
    }
    if (!writer_) {
        KB_TRY(store::BlobWriter writer, blobs_->begin());
        writer_.emplace(std::move(writer));
        KB_TRY(writer_->write(content_));
        content_.clear();
    }
    return writer_->write(as_text(bytes));
}

Result<void> CommitReceiver::on_content_restart() {
    content_.clear();
    writer_.reset();
    return {};
}

Result<FileRow> CommitReceiver::finish_content() {
    if (writer_) {
        KB_TRY(const store::StoredBlob blob, writer_->finish());
        writer_.reset();
        KB_TRY(const hub::GitOid oid, blob_id(*blobs_, blob));
        return FileRow{.oid = oid, .sha256 = blob.digest, .size = blob.size};
    }
    const FileRow row{.oid = hub::git_id(hub::GitKind::blob, content_),
                      .sha256 = digest::sha256(content_),
                      .size = content_.size()};
    KB_TRY(spill_.append(row.sha256, content_));
    content_.clear();
    return row;
}

Result<void> CommitReceiver::on_operation(hub::CommitOp op) {
    const RelPath& path = path_of(op);
    if (const auto objection = path_objection(path); objection && adds(op)) {
        return refused(path, *objection);
    }
    StagedOp staged{.op = std::move(op)};
    if (std::holds_alternative<hub::FileOp>(staged.op)) {
        // In git such a blob IS the large file; its content would not be checked as ours.
        if (hub::parse_pointer(content_)) {
            return refused(path_of(staged.op), "it is an LFS pointer, send it as 'lfsFile'");
        }
        KB_TRY(staged.file, finish_content());
    }
    ops_.push_back(std::move(staged));
    return {};
}

} // namespace kb::registry
