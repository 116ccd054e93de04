// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rel_path.hpp"
#include "hub/git_object.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace kb::hub {

inline constexpr std::string_view kCommitContentType = "application/x-ndjson";

/// First line of a commit stream.
struct CommitHeader {
    std::string summary{};
    std::string description{};
    /// At least 5 hex digits of the head that the sender saw.
    std::optional<std::string> parent_commit{};

    bool operator==(const CommitHeader&) const = default;
};

/// A file whose content travels in the stream; the content itself is not part of the value.
struct FileOp {
    RelPath path = RelPath::literal("unnamed");

    bool operator==(const FileOp&) const = default;
};

struct LfsFileOp {
    RelPath path = RelPath::literal("unnamed");
    digest::Digest oid{};
    /// Absent for a copy inside the repository.
    std::optional<std::uint64_t> size{};

    bool operator==(const LfsFileOp&) const = default;
};

struct DeletedFileOp {
    RelPath path = RelPath::literal("unnamed");

    bool operator==(const DeletedFileOp&) const = default;
};

struct DeletedFolderOp {
    RelPath path = RelPath::literal("unnamed");

    bool operator==(const DeletedFolderOp&) const = default;
};

/// A regular file taken over by the server from another path of the same repository.
struct CopyFileOp {
    RelPath path = RelPath::literal("unnamed");
    RelPath source = RelPath::literal("unnamed");
    /// Empty: the head that the commit builds on.
    std::string source_revision{};

    bool operator==(const CopyFileOp&) const = default;
};

/// Applied in order; the last one on a path wins.
using CommitOp = std::variant<FileOp, LfsFileOp, DeletedFileOp, DeletedFolderOp, CopyFileOp>;

// ---- writing: each returns one whole line with its line feed ----

[[nodiscard]] std::string write_line(const CommitHeader& header);
/// `content` is sent as base64.
[[nodiscard]] std::string write_line(const FileOp& op, std::string_view content);
[[nodiscard]] std::string write_line(const LfsFileOp& op);
[[nodiscard]] std::string write_line(const DeletedFileOp& op);
[[nodiscard]] std::string write_line(const DeletedFolderOp& op);
[[nodiscard]] std::string write_line(const CopyFileOp& op);

// ---- reading ----

struct CommitLimits {
    std::uint64_t max_operations = 100'000;
    /// Of one line without the file content in it.
    std::uint64_t max_line = 64UL << 10U;
    /// Of one decoded file content.
    std::uint64_t max_content = 8ULL << 30U;
};

/// Takes what CommitParser reads, in stream order. An error stops the parser and is what feed()
/// returns.
class CommitSink {
public:
    virtual ~CommitSink() = default;
    virtual Result<void> on_header(CommitHeader header) = 0;
    /// The next decoded bytes of the content of the coming FileOp. Content may precede the path in
    /// a line, so they are spilled before one knows where they belong.
    virtual Result<void> on_content(Bytes bytes) = 0;
    /// What on_content() got since the last operation was no content: forget it.
    virtual Result<void> on_content_restart() = 0;
    /// A FileOp ends its content (which may have been empty).
    virtual Result<void> on_operation(CommitOp op) = 0;
};

/// Incremental parser of a commit stream, fed from a socket in pieces of any size. File contents go
/// to the sink piece by piece, so memory stays at a few MiB whatever the length of a line. Accepts
/// a missing line feed at the end, empty lines and unknown members; refuses an unknown operation, a
/// missing or late header, bad base64 and bad paths with `corrupt` and the line number.
class CommitParser {
public:
    explicit CommitParser(CommitSink& sink, CommitLimits limits = {});
    ~CommitParser();
    CommitParser(CommitParser&&) noexcept;
    CommitParser& operator=(CommitParser&&) noexcept;
    CommitParser(const CommitParser&) = delete;
    CommitParser& operator=(const CommitParser&) = delete;

    [[nodiscard]] Result<void> feed(Bytes bytes);
    /// The stream is over; a line that is not complete JSON is an error, so is a missing header.
    [[nodiscard]] Result<void> finish();

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace kb::hub
