// SPDX-License-Identifier: Apache-2.0
#include "hub/commit_stream.hpp"

#include "base/text.hpp"
#include "document/json.hpp"
#include "hub/content_decoder.hpp"
#include "hub/json_member.hpp"
#include "hub/line_scanner.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::hub {

using document::Node;

namespace {

constexpr std::size_t kMaxMessage = 32UL << 10U;

Error bad_stream(std::string message) {
    return {.code = ErrorCode::corrupt, .message = std::move(message)};
}

/// {"summary": "...", "description": "...", "parentCommit": "..."}
Result<CommitHeader> parse_header(const Node& value) {
    CommitHeader header;
    KB_TRY(header.summary, string_member(value, "summary"));
    header.description = value.text_or("description");
    header.parent_commit = optional_text(value, "parentCommit");
    if (header.summary.size() + header.description.size() > kMaxMessage) {
        return bad_stream(fmt::format("the commit message has over {} bytes", kMaxMessage));
    }
    if (header.parent_commit) {
        const std::string& parent = *header.parent_commit;
        const bool is_hex = std::ranges::all_of(
            parent, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
        if (!is_hex || parent.size() < 5 || parent.size() > 40) {
            return bad_stream("'parentCommit' must be 5 to 40 lower-case hex digits");
        }
    }
    return header;
}

Result<CommitOp> parse_lfs_file(const Node& value) {
    LfsFileOp op;
    KB_TRY(op.path, path_member(value, "path"));
    if (const auto algo = optional_text(value, "algo"); algo && *algo != "sha256") {
        return bad_stream("'algo' must be 'sha256'");
    }
    KB_TRY(op.oid, sha256_member(value, "oid"));
    if (const Node* size = value.find("size"); size != nullptr && !size->is(Node::Kind::null)) {
        KB_TRY(op.size, unsigned_member(value, "size"));
    }
    return CommitOp{op};
}

Result<CommitOp> parse_deleted_folder(const Node& value) {
    KB_TRY(std::string text, string_member(value, "path"));
    while (text.ends_with('/') && text.size() > 1) {
        text.pop_back(); // clients mark a folder so
    }
    KB_TRY(RelPath path, RelPath::parse(text));
    return CommitOp{DeletedFolderOp{.path = std::move(path)}};
}

Result<CommitOp> parse_copy(const Node& value) {
    CopyFileOp op;
    KB_TRY(op.path, path_member(value, "path"));
    KB_TRY(op.source, path_member(value, "srcPath"));
    op.source_revision = value.text_or("srcRevision");
    return CommitOp{op};
}

Result<CommitOp> parse_operation(std::string_view key, const Node& value) {
    if (key == "lfsFile") {
        return parse_lfs_file(value);
    }
    if (key == "deletedFolder") {
        return parse_deleted_folder(value);
    }
    if (key == "copyFile") {
        return parse_copy(value);
    }
    if (key != "file" && key != "deletedFile") {
        return bad_stream(
            fmt::format("'{}' is not an operation of a commit", escape_control(key.substr(0, 60))));
    }
    KB_TRY(RelPath path, path_member(value, "path"));
    return key == "file" ? CommitOp{FileOp{.path = std::move(path)}}
                         : CommitOp{DeletedFileOp{.path = std::move(path)}};
}

} // namespace

class CommitParser::Impl : private LineEvents {
public:
    Impl(CommitSink& sink, CommitLimits limits)
        : sink_{&sink},
          limits_{limits},
          scanner_{*this, limits.max_line},
          decoder_{{.bytes = [this](std::string_view bytes) { return take_content(bytes); },
                    .restart =
                        [this] {
                            content_size_ = 0;
                            return sink_->on_content_restart();
                        }}} {}

    Result<void> feed(Bytes bytes) { return at_line(scanner_.feed(as_text(bytes))); }

    Result<void> finish() {
        KB_TRY(at_line(scanner_.finish()));
        if (!has_header_) {
            return bad_stream("the commit stream has no header line");
        }
        return {};
    }

private:
    Result<void> at_line(Result<void> result) const {
        return std::move(result).context(
            fmt::format("reading line {} of the commit stream", lines_ + 1));
    }

    Result<void> on_long_string(std::string_view raw) override { return decoder_.feed(raw); }

    Result<void> take_content(std::string_view bytes) {
        content_size_ += bytes.size();
        if (content_size_ > limits_.max_content) {
            return bad_stream(fmt::format("file content has over {} bytes", limits_.max_content));
        }
        return bytes.empty() ? Result<void>{} : sink_->on_content(as_bytes(bytes));
    }

    Result<void> on_line(std::string_view text) override {
        KB_TRY(const Node json, document::parse_json(text, {}, {.max_depth = 16}));
        KB_TRY(require_table(json, "a line"));
        KB_TRY(const std::string key, string_member(json, "key"));
        const Node* value = json.find("value");
        if (value == nullptr || !value->is_table()) {
            return bad_stream("member 'value' must be a JSON object");
        }
        KB_TRY(take_line(key, *value));
        ++lines_;
        return {};
    }

    Result<void> take_line(std::string_view key, const Node& value) {
        if ((key == "header") == has_header_) {
            return bad_stream(has_header_ ? "the header must come once"
                                          : "the header must come first");
        }
        if (key == "header") {
            has_header_ = true;
            KB_TRY(decoder_.drop());
            KB_TRY(CommitHeader header, parse_header(value));
            return sink_->on_header(std::move(header));
        }
        if (++operations_ > limits_.max_operations) {
            return bad_stream(
                fmt::format("the commit has over {} operations", limits_.max_operations));
        }
        KB_TRY(CommitOp op, parse_operation(key, value));
        if (std::holds_alternative<FileOp>(op)) {
            KB_TRY(string_member(value, "content").context("reading the content of a file"));
            KB_TRY(decoder_.finish(value.text_or("encoding", "utf-8")));
        } else {
            KB_TRY(decoder_.drop());
        }
        content_size_ = 0;
        return sink_->on_operation(std::move(op));
    }

    CommitSink* sink_;
    CommitLimits limits_;
    LineScanner scanner_;
    ContentDecoder decoder_;
    std::uint64_t lines_ = 0;
    std::uint64_t operations_ = 0;
    std::uint64_t content_size_ = 0;
    bool has_header_ = false;
};

CommitParser::CommitParser(CommitSink& sink, CommitLimits limits)
    : impl_{std::make_unique<Impl>(sink, limits)} {}

CommitParser::~CommitParser() = default;
CommitParser::CommitParser(CommitParser&&) noexcept = default;
CommitParser& CommitParser::operator=(CommitParser&&) noexcept = default;

Result<void> CommitParser::feed(Bytes bytes) {
    return impl_->feed(bytes);
}

Result<void> CommitParser::finish() {
    return impl_->finish();
}

} // namespace kb::hub
