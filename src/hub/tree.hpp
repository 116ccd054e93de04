// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rel_path.hpp"
#include "document/node.hpp"
#include "hub/git_object.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::hub {

enum class EntryKind : std::uint8_t { file, directory };

/// One row of a tree listing.
struct TreeEntry {
    EntryKind kind = EntryKind::file;
    /// Git id: of the blob (for an LFS file of its pointer) or of the tree.
    GitOid oid{};
    /// Of the content that a reader gets; 0 for a directory.
    std::uint64_t size = 0;
    /// From the root of the repository.
    RelPath path = RelPath::literal("unnamed");
    std::optional<LfsPointer> lfs{};

    bool operator==(const TreeEntry&) const = default;
};

[[nodiscard]] document::Node to_json(const TreeEntry& entry);
/// `corrupt` for a missing member or a path that leaves the repository. Unknown types are refused.
[[nodiscard]] Result<TreeEntry> parse_tree_entry(const document::Node& json);
/// One page of a listing.
[[nodiscard]] Result<std::vector<TreeEntry>> parse_tree_page(const document::Node& json);

/// Target of `rel="next"` in a Link header, if there is one.
[[nodiscard]] std::optional<std::string> next_link(std::string_view link_header);
/// `<url>; rel="next"`
[[nodiscard]] std::string write_next_link(std::string_view url);

} // namespace kb::hub
