// SPDX-License-Identifier: Apache-2.0
#include "document/json.hpp"
#include "hub/commit_stream.hpp"

namespace kb::hub {

using document::Node;

namespace {

std::string line(std::string_view key, Node value) {
    return document::write_json(Node::table({{"key", Node{key}}, {"value", std::move(value)}}),
                                {.indent = 0});
}

} // namespace

std::string write_line(const CommitHeader& header) {
    Node value =
        Node::table({{"summary", Node{header.summary}}, {"description", Node{header.description}}});
    if (header.parent_commit) {
        value.set("parentCommit", Node{*header.parent_commit});
    }
    return line("header", std::move(value));
}

std::string write_line(const FileOp& op, std::string_view content) {
    // Path and encoding first: a reader then knows where the content belongs before it comes.
    return line("file",
                Node::table({{"path", Node{op.path.text()}},
                             {"encoding", Node{"base64"}},
                             {"content", Node{digest::to_base64(as_bytes(content))}}}));
}

std::string write_line(const LfsFileOp& op) {
    Node value = Node::table(
        {{"path", Node{op.path.text()}}, {"algo", Node{"sha256"}}, {"oid", Node{op.oid.hex()}}});
    if (op.size) {
        value.set("size", Node{*op.size});
    }
    return line("lfsFile", std::move(value));
}

std::string write_line(const DeletedFileOp& op) {
    return line("deletedFile", Node::table({{"path", Node{op.path.text()}}}));
}

std::string write_line(const DeletedFolderOp& op) {
    return line("deletedFolder", Node::table({{"path", Node{op.path.text()}}}));
}

std::string write_line(const CopyFileOp& op) {
    Node value = Node::table({{"path", Node{op.path.text()}}, {"srcPath", Node{op.source.text()}}});
    if (!op.source_revision.empty()) {
        value.set("srcRevision", Node{op.source_revision});
    }
    return line("copyFile", std::move(value));
}

} // namespace kb::hub
