// SPDX-License-Identifier: Apache-2.0
#include "hub/git_object.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace kb::hub {

namespace {

struct ModeText {
    GitMode mode{};
    std::string_view text{};
};

constexpr std::array kModes{ModeText{GitMode::file, "100644"},
                            ModeText{GitMode::executable, "100755"},
                            ModeText{GitMode::symlink, "120000"},
                            ModeText{GitMode::submodule, "160000"},
                            ModeText{GitMode::tree, "40000"}};

constexpr std::string_view kPointerVersion = "version https://git-lfs.github.com/spec/v1\n";
constexpr std::size_t kMaxPointer = 1024;

std::string_view kind_name(GitKind kind) {
    switch (kind) {
    case GitKind::blob:
        return "blob";
    case GitKind::tree:
        return "tree";
    case GitKind::commit:
        return "commit";
    case GitKind::tag:
        return "tag";
    }
    return "blob";
}

/// Git compares a directory's name as if a '/' followed it.
std::string sort_key(const GitTreeItem& item) {
    return item.mode == GitMode::tree ? item.name + "/" : item.name;
}

Error bad_object(std::string why) {
    return {.code = ErrorCode::corrupt, .message = std::move(why)};
}

/// Removes `prefix` from the front of `text` when it is there.
bool consume(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) {
        return false;
    }
    text.remove_prefix(prefix.size());
    return true;
}

Result<std::string_view> take_line(std::string_view& text, std::string_view key) {
    const std::size_t end = text.find('\n');
    if (!text.starts_with(key) || end == std::string_view::npos) {
        return bad_object(fmt::format("a commit lacks its '{}' line", trim(key)));
    }
    const std::string_view value = text.substr(key.size(), end - key.size());
    text.remove_prefix(end + 1);
    return value;
}

std::string clean_name(std::string_view name) {
    std::string out;
    for (const char c : name) {
        if (c != '<' && c != '>' && static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) {
            out += c;
        }
    }
    return out;
}

std::string write_signature(const GitSignature& who) {
    return fmt::format("{} <{}> {} +0000", clean_name(who.name), clean_name(who.email), who.time);
}

/// "Name <mail> 1700000000 +0000"
Result<GitSignature> parse_signature(std::string_view text) {
    const std::size_t open = text.find(" <");
    const std::size_t close = text.rfind("> ");
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
        return bad_object("a commit holds a signature line that git would not write");
    }
    const std::string_view stamp = text.substr(close + 2);
    std::int64_t time = 0;
    const auto [end, failed] = std::from_chars(stamp.data(), stamp.data() + stamp.size(), time);
    if (failed != std::errc{} || end == stamp.data() + stamp.size() || *end != ' ') {
        return bad_object("a commit holds a signature line without a time");
    }
    return GitSignature{.name = std::string{text.substr(0, open)},
                        .email = std::string{text.substr(open + 2, close - open - 2)},
                        .time = time};
}

} // namespace

GitOid git_id(GitKind kind, std::string_view payload) {
    digest::Sha1 sha1;
    sha1.update(fmt::format("{} {}", kind_name(kind), payload.size()));
    sha1.update(std::string_view{"\0", 1});
    sha1.update(payload);
    return sha1.finish();
}

GitBlobHasher::GitBlobHasher(std::uint64_t size) {
    sha1_.update(fmt::format("blob {}", size));
    sha1_.update(std::string_view{"\0", 1});
}

std::string to_text(const LfsPointer& pointer) {
    return fmt::format(
        "{}oid sha256:{}\nsize {}\n", kPointerVersion, pointer.oid.hex(), pointer.size);
}

std::optional<LfsPointer> parse_pointer(std::string_view text) {
    std::string_view rest = text;
    if (text.size() > kMaxPointer || !consume(rest, kPointerVersion) ||
        !consume(rest, "oid sha256:")) {
        return std::nullopt;
    }
    Result<digest::Digest> oid = digest::Digest::from_hex(rest.substr(0, 64));
    rest.remove_prefix(std::min<std::size_t>(64, rest.size()));
    if (!oid || !consume(rest, "\nsize ") || !rest.ends_with('\n')) {
        return std::nullopt;
    }
    const auto size = parse_unsigned(rest.substr(0, rest.size() - 1));
    if (!size) {
        return std::nullopt;
    }
    return LfsPointer{.oid = *oid, .size = *size};
}

GitOid pointer_id(const LfsPointer& pointer) {
    return git_id(GitKind::blob, to_text(pointer));
}

std::string write_tree(std::vector<GitTreeItem> items) {
    std::ranges::sort(items, {}, sort_key);
    std::string out;
    for (const GitTreeItem& item : items) {
        KB_ASSERT(!item.name.empty() && item.name.find('/') == std::string::npos &&
                      item.name.find('\0') == std::string::npos,
                  "a tree item has one plain name");
        out += std::ranges::find(kModes, item.mode, &ModeText::mode)->text;
        out += ' ';
        out += item.name;
        out += '\0';
        out += as_text(std::as_bytes(std::span{item.oid.bytes}));
    }
    return out;
}

Result<std::vector<GitTreeItem>> parse_tree(std::string_view payload) {
    std::vector<GitTreeItem> items;
    while (!payload.empty()) {
        const std::size_t space = payload.find(' ');
        const std::size_t nul = payload.find('\0');
        if (space == std::string_view::npos || nul == std::string_view::npos || nul < space ||
            payload.size() - nul - 1 < 20) {
            return bad_object("a tree object is cut short");
        }
        const auto mode = std::ranges::find(kModes, payload.substr(0, space), &ModeText::text);
        const std::string_view name = payload.substr(space + 1, nul - space - 1);
        if (mode == kModes.end() || name.empty() || name.find('/') != std::string_view::npos) {
            return bad_object("a tree object holds an item with a bad mode or name");
        }
        GitTreeItem item{.mode = mode->mode, .name = std::string{name}};
        std::ranges::copy(payload.substr(nul + 1, 20), item.oid.bytes.begin());
        payload.remove_prefix(nul + 21);
        if (!items.empty() && sort_key(items.back()) >= sort_key(item)) {
            return bad_object("the items of a tree object are out of order");
        }
        items.push_back(std::move(item));
    }
    return items;
}

std::string_view GitCommit::title() const {
    const std::string_view text = message;
    return text.substr(0, text.find('\n'));
}

std::string_view GitCommit::body() const {
    const std::string_view text = message;
    const std::size_t end = text.find('\n');
    return end == std::string_view::npos ? std::string_view{} : trim(text.substr(end));
}

std::string write_commit(const GitCommit& commit) {
    std::string out = fmt::format("tree {}\n", commit.tree.hex());
    for (const GitOid& parent : commit.parents) {
        out += fmt::format("parent {}\n", parent.hex());
    }
    out += fmt::format("author {}\ncommitter {}\n\n{}",
                       write_signature(commit.author),
                       write_signature(commit.committer),
                       commit.message);
    if (!out.ends_with('\n')) {
        out += '\n';
    }
    return out;
}

Result<GitCommit> parse_commit(std::string_view payload) {
    GitCommit commit;
    KB_TRY(const std::string_view tree, take_line(payload, "tree "));
    KB_TRY(commit.tree, GitOid::from_hex(tree));
    while (payload.starts_with("parent ")) {
        KB_TRY(const std::string_view parent, take_line(payload, "parent "));
        KB_TRY(commit.parents.emplace_back(), GitOid::from_hex(parent));
    }
    KB_TRY(const std::string_view author, take_line(payload, "author "));
    KB_TRY(commit.author, parse_signature(author));
    KB_TRY(const std::string_view committer, take_line(payload, "committer "));
    KB_TRY(commit.committer, parse_signature(committer));
    // Further headers (a signature, an encoding) end at the empty line.
    while (!payload.starts_with('\n')) {
        const std::size_t end = payload.find('\n');
        if (end == std::string_view::npos) {
            return bad_object("a commit has no message");
        }
        payload.remove_prefix(end + 1);
    }
    commit.message = std::string{payload.substr(1)};
    return commit;
}

} // namespace kb::hub
