// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hub/messages.hpp"
#include "hub/repo_id.hpp"
#include "hub/tree.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::registry {

/// What build/<name>/ holds, and what its metadata.json says about it.
struct PageVariant {
    std::string name{};
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
    /// Architectures of the device code, as the metadata spells them.
    std::vector<std::string> archs{};
    /// "0123abcd... (uncommitted changes)"; "" when unknown.
    std::string source{};
    bool has_digest = false;
    bool is_signed = false;
};

/// What the metadata of all variants agrees on; of the first one otherwise.
struct PageKernel {
    std::string version{};
    std::string license{};
    std::string upstream{};
};

/// Everything that the page of a repository at one revision shows.
struct RepoPage {
    /// Base of this registry, for HF_ENDPOINT.
    std::string endpoint{};
    hub::RepoId id;
    hub::Visibility visibility = hub::Visibility::public_;
    /// As it was asked for: "main", "v1", a commit.
    std::string revision{};
    hub::GitOid commit{};
    hub::Refs refs{};
    /// README.md, or "".
    std::string card{};
    std::optional<PageKernel> kernel{};
    std::vector<PageVariant> variants{};
    std::vector<hub::TreeEntry> files{};
    /// Files beyond those in `files`.
    bool has_more_files = false;
    std::vector<hub::CommitInfo> history{};
};

struct IndexRow {
    hub::RepoId id;
    hub::Visibility visibility = hub::Visibility::public_;
    std::int64_t created = 0;
};

struct IndexPage {
    std::string search{};
    std::vector<IndexRow> rows{};
};

/// PURE. A page without scripts; every text is escaped, whatever a publisher wrote.
[[nodiscard]] std::string write_page(const RepoPage& page);
[[nodiscard]] std::string write_page(const IndexPage& page);

/// Value of Content-Security-Policy for these pages: their one style sheet and nothing else.
[[nodiscard]] const std::string& page_policy();

} // namespace kb::registry
