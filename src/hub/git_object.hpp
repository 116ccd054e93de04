// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "digest/digest.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::hub {

/// Git's own object id (SHA-1), so that ids equal those of any other git host.
using GitOid = digest::Sha1Digest;

enum class GitKind : std::uint8_t { blob, tree, commit, tag };

/// Id of an object from its payload.
[[nodiscard]] GitOid git_id(GitKind kind, std::string_view payload);

/// Id of a blob that is not in memory; its size must be known first, and exactly so many bytes
/// must come.
class GitBlobHasher {
public:
    explicit GitBlobHasher(std::uint64_t size);

    void update(Bytes bytes) { sha1_.update(bytes); }

    [[nodiscard]] GitOid finish() { return sha1_.finish(); }

private:
    digest::Sha1 sha1_;
};

/// What git stores in place of a large file.
struct LfsPointer {
    digest::Digest oid{};
    std::uint64_t size = 0;

    auto operator<=>(const LfsPointer&) const = default;
};

/// The canonical text of three lines.
[[nodiscard]] std::string to_text(const LfsPointer& pointer);
/// The pointer, when `text` is one (at most 1 KiB; extension lines are refused).
[[nodiscard]] std::optional<LfsPointer> parse_pointer(std::string_view text);
/// Blob id of the pointer text.
[[nodiscard]] GitOid pointer_id(const LfsPointer& pointer);

enum class GitMode : std::uint8_t { file, executable, symlink, submodule, tree };

struct GitTreeItem {
    GitMode mode = GitMode::file;
    std::string name{};
    GitOid oid{};

    bool operator==(const GitTreeItem&) const = default;
};

/// Payload of a tree object. Items come in any order and are sorted as git does, where a
/// directory's name compares as if it ended in '/'. Names are unique and hold no '/': else our bug.
[[nodiscard]] std::string write_tree(std::vector<GitTreeItem> items);
/// In git's order. `corrupt` for any payload that git would not accept.
[[nodiscard]] Result<std::vector<GitTreeItem>> parse_tree(std::string_view payload);

struct GitSignature {
    std::string name{};
    std::string email{};
    /// Seconds since 1970; always written with zone +0000.
    std::int64_t time = 0;

    bool operator==(const GitSignature&) const = default;
};

struct GitCommit {
    GitOid tree{};
    std::vector<GitOid> parents{};
    GitSignature author{};
    GitSignature committer{};
    /// Title, and after an empty line the body.
    std::string message{};

    bool operator==(const GitCommit&) const = default;

    [[nodiscard]] std::string_view title() const;
    [[nodiscard]] std::string_view body() const;
};

/// Payload of a commit object. Line breaks and angle brackets in names are dropped.
[[nodiscard]] std::string write_commit(const GitCommit& commit);
[[nodiscard]] Result<GitCommit> parse_commit(std::string_view payload);

} // namespace kb::hub
