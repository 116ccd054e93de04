// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "hub/git_object.hpp"
#include "hub/messages.hpp"
#include "hub/repo_id.hpp"
#include "registry/auth.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::registry {

/// Number of a repository; never used again after a deletion.
using RepoKey = std::int64_t;

struct RepoRow {
    RepoKey key = 0;
    hub::RepoId id;
    hub::Visibility visibility = hub::Visibility::public_;
    std::int64_t created = 0;
};

struct RefRow {
    /// "refs/heads/main"
    std::string name{};
    hub::GitOid commit{};

    bool operator==(const RefRow&) const = default;
};

/// What a git blob of a repository stands for.
struct FileRow {
    hub::GitOid oid{};
    digest::Digest sha256{};
    std::uint64_t size = 0;
    /// The blob is a pointer; size and sha256 are those of the content.
    bool is_lfs = false;

    bool operator==(const FileRow&) const = default;
};

struct GitPayload {
    hub::GitOid oid{};
    std::string payload{};
};

/// Content short enough to live beside the metadata, where it is durable with the commit.
struct SmallBlob {
    digest::Digest sha256{};
    std::string content{};
};

/// Who did what; kept for ever.
struct AuditRow {
    std::int64_t time = 0;
    std::string actor{};
    std::string action{};
    std::string repo{};
    std::string detail{};

    bool operator==(const AuditRow&) const = default;
};

/// The move of one ref, with everything that it makes reachable.
struct RefChange {
    RepoKey repo = 0;
    std::string name{};
    /// What the ref must be now; nothing: it must not exist.
    std::optional<hub::GitOid> from{};
    /// Nothing: the ref goes away.
    std::optional<hub::GitOid> to{};
    std::vector<GitPayload> commits{};
    std::vector<GitPayload> trees{};
    std::vector<FileRow> files{};
    /// Produces the i-th small blob, until nothing is left; one at a time in memory.
    std::function<Result<std::optional<SmallBlob>>(std::size_t)> small_blobs{};
    AuditRow audit{};
};

/// `moved`: the ref was not what the change expected, nothing was written.
enum class ChangeOutcome : std::uint8_t { done, moved };

struct LfsRow {
    digest::Digest sha256{};
    std::uint64_t size = 0;
};

struct TokenRow {
    digest::Digest hash{};
    std::string user{};
    Scope scope = Scope::read;
    /// Empty: the user's own namespace; for scope admin all.
    std::vector<std::string> namespaces{};
    std::int64_t created = 0;
    std::optional<std::int64_t> expires{};
};

/// A pull request: refs/pr/<number>.
struct PullRow {
    std::uint64_t number = 0;
    std::string title{};
    std::string author{};
    /// The branch it is for, in full.
    std::string base{};
    std::int64_t created = 0;
};

/// Everything that is not file content. Every call is one transaction; usable from several threads.
class MetaStore {
public:
    virtual ~MetaStore() = default;

    virtual Result<std::optional<RepoRow>> find_repo(const hub::RepoId& id) = 0;
    /// Names are unique without regard to case: the row that holds the name, when it is taken.
    virtual Result<std::optional<RepoRow>> find_repo_any_case(const hub::RepoId& id) = 0;
    virtual Result<std::vector<RepoRow>> repos() = 0;
    /// `denied` when the name is taken.
    virtual Result<RepoRow>
    create_repo(const hub::RepoId& id, hub::Visibility visibility, const AuditRow& audit) = 0;
    /// The name becomes free; commits and files stay until they are collected.
    virtual Result<void> delete_repo(RepoKey repo, const AuditRow& audit) = 0;
    /// The old name leads here until another repository takes it. `denied` when the new name is
    /// taken.
    virtual Result<void> move_repo(RepoKey repo, const hub::RepoId& to, const AuditRow& audit) = 0;
    /// The repository that had this name before it was moved, without regard to case.
    virtual Result<std::optional<RepoRow>> find_moved(const hub::RepoId& id) = 0;
    virtual Result<void>
    set_visibility(RepoKey repo, hub::Visibility visibility, const AuditRow& audit) = 0;

    virtual Result<std::vector<RefRow>> refs(RepoKey repo) = 0;
    virtual Result<std::optional<hub::GitOid>> find_ref(RepoKey repo, std::string_view name) = 0;
    virtual Result<ChangeOutcome> change_ref(const RefChange& change) = 0;

    /// Payloads are `corrupt` when their bytes no longer have the id.
    virtual Result<std::optional<hub::GitCommit>> find_commit(RepoKey repo,
                                                              const hub::GitOid& oid) = 0;
    virtual Result<std::vector<hub::GitTreeItem>> tree(const hub::GitOid& oid) = 0;
    virtual Result<std::optional<FileRow>> find_file(RepoKey repo, const hub::GitOid& oid) = 0;
    virtual Result<std::optional<std::string>> small_blob(const digest::Digest& sha256) = 0;

    /// An object counts as present only in the repository it was uploaded to.
    virtual Result<std::optional<LfsRow>> find_lfs(RepoKey repo, const digest::Digest& sha256) = 0;
    virtual Result<void> add_lfs(RepoKey repo, const LfsRow& object, std::int64_t now) = 0;

    virtual Result<std::uint64_t> add_pull(RepoKey repo, const PullRow& pull) = 0;
    virtual Result<std::optional<PullRow>> find_pull(RepoKey repo, std::uint64_t number) = 0;

    virtual Result<void> add_token(const TokenRow& token, const AuditRow& audit) = 0;
    virtual Result<std::optional<TokenRow>> find_token(const digest::Digest& hash) = 0;
    /// Oldest first.
    virtual Result<std::vector<TokenRow>> tokens() = 0;
    /// False when there is no such token.
    virtual Result<bool> remove_token(const digest::Digest& hash, const AuditRow& audit) = 0;
    virtual Result<std::vector<AuditRow>> audit(std::size_t newest) = 0;
    /// A random secret of this registry, made on first use.
    virtual Result<std::string> signing_key() = 0;
};

} // namespace kb::registry
