// SPDX-License-Identifier: Apache-2.0
#include "hub/tree.hpp"

#include "base/text.hpp"
#include "hub/json_member.hpp"

#include <fmt/format.h>

namespace kb::hub {

using document::Node;

namespace {

/// {"oid": sha256, "size": n, "pointerSize": n}
Result<LfsPointer> parse_lfs_member(const Node& json) {
    KB_TRY(require_table(json, "member 'lfs'"));
    KB_TRY(const digest::Digest oid, sha256_member(json, "oid"));
    KB_TRY(const std::uint64_t size, unsigned_member(json, "size"));
    return LfsPointer{.oid = oid, .size = size};
}

} // namespace

Node to_json(const TreeEntry& entry) {
    Node json = Node::table({{"type", Node{entry.kind == EntryKind::file ? "file" : "directory"}},
                             {"oid", Node{entry.oid.hex()}},
                             {"size", Node{entry.size}},
                             {"path", Node{entry.path.text()}}});
    if (entry.lfs) {
        json.set("lfs",
                 Node::table({{"oid", Node{entry.lfs->oid.hex()}},
                              {"size", Node{entry.lfs->size}},
                              {"pointerSize", Node{to_text(*entry.lfs).size()}}}));
    }
    return json;
}

Result<TreeEntry> parse_tree_entry(const Node& json) {
    KB_TRY(require_table(json, "a tree entry"));
    KB_TRY(const std::string type, string_member(json, "type"));
    if (type != "file" && type != "directory") {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("a tree entry of type '{}' is unknown, expected 'file' "
                                            "or 'directory'",
                                            escape_control(type))};
    }
    TreeEntry entry{.kind = type == "file" ? EntryKind::file : EntryKind::directory};
    KB_TRY(entry.path, path_member(json, "path"));
    const auto where = [&] {
        return fmt::format("reading the entry '{}'", entry.path.text());
    };
    KB_TRY(entry.oid, sha1_member(json, "oid").context(where()));
    if (entry.kind == EntryKind::directory) {
        return entry;
    }
    KB_TRY(entry.size, unsigned_member(json, "size").context(where()));
    if (const Node* lfs = json.find("lfs"); lfs != nullptr && lfs->is_table()) {
        KB_TRY(entry.lfs, parse_lfs_member(*lfs).context(where()));
    }
    return entry;
}

Result<std::vector<TreeEntry>> parse_tree_page(const Node& json) {
    if (!json.is_array()) {
        return Error{.code = ErrorCode::corrupt, .message = "a tree listing must be a JSON array"};
    }
    std::vector<TreeEntry> entries;
    entries.reserve(json.as_array().size());
    for (const Node& item : json.as_array()) {
        KB_TRY(TreeEntry entry, parse_tree_entry(item));
        entries.push_back(std::move(entry));
    }
    return entries;
}

std::optional<std::string> next_link(std::string_view link_header) {
    // <https://host/a?cursor=x>; rel="next", <...>; rel="last"
    while (true) {
        const std::size_t open = link_header.find('<');
        const std::size_t close = link_header.find('>', open == std::string_view::npos ? 0 : open);
        if (open == std::string_view::npos || close == std::string_view::npos) {
            return std::nullopt;
        }
        const std::string_view url = link_header.substr(open + 1, close - open - 1);
        link_header.remove_prefix(close + 1);
        const std::string_view own = link_header.substr(0, link_header.find('<'));
        if (own.find("rel=\"next\"") != std::string_view::npos ||
            own.find("rel=next") != std::string_view::npos) {
            return std::string{url};
        }
    }
}

std::string write_next_link(std::string_view url) {
    return fmt::format("<{}>; rel=\"next\"", url);
}

} // namespace kb::hub
