// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace kb::hub {

/// True for exactly 40 lower-case hex digits, which clients always take for a commit.
[[nodiscard]] bool is_commit_id(std::string_view text);

enum class RefKind : std::uint8_t { heads, tags, pr };

/// A ref with git's naming rules, at most 200 bytes, valid UTF-8. A name that looks like a commit
/// id, "HEAD" or one that starts with '-' or "refs/" is refused.
class RefName {
public:
    [[nodiscard]] static Result<RefName> branch(std::string_view name);
    [[nodiscard]] static Result<RefName> tag(std::string_view name);
    [[nodiscard]] static RefName pull_request(std::uint64_t number);
    /// The full form: "refs/heads/v1", "refs/tags/x", "refs/pr/3".
    [[nodiscard]] static Result<RefName> parse_full(std::string_view text);

    [[nodiscard]] RefKind kind() const { return kind_; }

    /// "v1"; for a pull request its number.
    [[nodiscard]] const std::string& name() const { return name_; }

    /// "refs/heads/v1"
    [[nodiscard]] std::string full() const;

    auto operator<=>(const RefName&) const = default;

private:
    RefName(RefKind kind, std::string name) : kind_{kind}, name_{std::move(name)} {}

    RefKind kind_;
    std::string name_;
};

/// What a client names a state of a repository with: a branch, a tag, a full ref name or a commit.
/// Only the form is known here; whether it exists is the server's business.
class Revision {
public:
    /// `text` is already percent-decoded. "HEAD" means "main".
    [[nodiscard]] static Result<Revision> parse(std::string_view text);

    [[nodiscard]] const std::string& text() const { return text_; }

    [[nodiscard]] bool is_commit() const { return is_commit_id(text_); }

    /// "refs/..." spelt in full.
    [[nodiscard]] bool is_full_ref() const { return text_.starts_with("refs/"); }

    /// As one path segment of a URL: "refs%2Fpr%2F1".
    [[nodiscard]] std::string encoded() const;

    auto operator<=>(const Revision&) const = default;

private:
    explicit Revision(std::string text) : text_{std::move(text)} {}

    std::string text_;
};

} // namespace kb::hub
