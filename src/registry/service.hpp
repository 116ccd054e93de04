// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http/message.hpp"
#include "hub/commit_stream.hpp"
#include "hub/lfs.hpp"
#include "hub/messages.hpp"
#include "hub/revision.hpp"
#include "hub/tree.hpp"
#include "registry/auth.hpp"
#include "registry/meta_store.hpp"
#include "registry/parts.hpp"
#include "registry/read_cache.hpp"
#include "registry/reply.hpp"
#include "registry/settings.hpp"
#include "registry/tree_edit.hpp"
#include "registry/xorb_store.hpp"
#include "store/blob_store.hpp"
#include "sys/clock.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kb::registry {

/// What the service works on; all outlive it.
struct ServiceParts {
    MetaStore& meta;
    store::BlobStore& blobs;
    sys::FileSystem& fs;
    sys::Clock& clock;
    Settings settings{};
    /// For spilled commit contents; on the disk of the blobs.
    sys::Path temporary{};
    /// For objects that come in parts; on the disk of the blobs.
    sys::Path parts{};
    /// For what comes by the Xet protocol; on the disk of the blobs.
    sys::Path xorbs{};
    /// Key of upload addresses.
    std::string signing_key{};
};

/// A revision that exists.
struct ResolvedRevision {
    hub::GitOid oid{};
    hub::GitCommit commit{};
    /// The ref that led here; nothing for a commit id.
    std::optional<std::string> ref{};
};

struct TreeQuery {
    /// Empty: the root.
    std::string path{};
    bool recursive = false;
    /// Only what comes after this path.
    std::string after{};
    std::size_t limit = 1000;
};

struct TreePage {
    std::vector<hub::TreeEntry> entries{};
    /// Value of `after` for the next page.
    std::optional<std::string> next{};
};

/// A file as a reader gets it.
struct FileContent {
    FileRow file{};
    std::variant<std::string, std::unique_ptr<sys::InputFile>> bytes{};
};

struct CreatedRepo {
    RepoRow repo;
    bool existed = false;
};

enum class CreatePull : std::uint8_t { no, yes };

enum class Pin : std::uint8_t { no, yes };

struct CommitRequest {
    std::string revision{};
    CreatePull create_pull = CreatePull::no;
};

struct CommitResult {
    hub::GitOid commit{};
    std::optional<std::uint64_t> pull{};
};

/// An upload address before it is text: what its signature covers.
struct UploadGrant {
    RepoKey repo = 0;
    hub::LfsObject object{};
    std::string user{};
    std::int64_t expires = 0;

    bool operator==(const UploadGrant&) const = default;
};

/// Everything that can be asked of the registry, on values. Rights on the repository were checked
/// by the caller (see open_repo). Usable from several threads.
class Service {
public:
    explicit Service(ServiceParts parts)
        : parts_{std::move(parts)},
          uploads_{parts_.fs, parts_.parts},
          xorbs_{parts_.fs, parts_.blobs, parts_.xorbs, parts_.temporary} {}

    [[nodiscard]] Reply<Caller> authenticate(std::optional<std::string_view> authorization);
    /// The repository, if the caller has that right on it; hidden and missing look alike.
    [[nodiscard]] Reply<RepoRow>
    open_repo(const Caller& caller, const hub::RepoId& id, Right right);
    [[nodiscard]] Reply<hub::WhoAmI> whoami(const Caller& caller);
    [[nodiscard]] bool is_trusted(std::string_view owner) const;

    [[nodiscard]] Reply<CreatedRepo> create_repo(const Caller& caller,
                                                 const hub::CreateRepo& request);
    [[nodiscard]] Reply<Done> delete_repo(const Caller& caller, const RepoRow& repo);
    /// To a free name where the caller may write; the old name leads on.
    [[nodiscard]] Reply<Done>
    move_repo(const Caller& caller, const RepoRow& repo, const hub::RepoId& to);
    /// Where a repository of that name is now, if the caller may read it there.
    [[nodiscard]] Reply<std::optional<hub::RepoId>> moved_to(const Caller& caller,
                                                             const hub::RepoId& id);
    [[nodiscard]] Reply<Done>
    set_visibility(const Caller& caller, const RepoRow& repo, hub::Visibility visibility);
    [[nodiscard]] Reply<std::vector<RepoRow>> visible_repos(const Caller& caller,
                                                            hub::RepoType type);

    [[nodiscard]] Reply<hub::Refs> refs(const RepoRow& repo, bool with_pulls);
    [[nodiscard]] Reply<ResolvedRevision> resolve(const RepoRow& repo, std::string_view revision);

    struct NewBranch {
        std::string name{};
        std::string start{};
        bool empty = false;
        bool overwrite = false;
    };

    [[nodiscard]] Reply<Done>
    create_branch(const Caller& caller, const RepoRow& repo, const NewBranch& branch);
    [[nodiscard]] Reply<Done>
    delete_branch(const Caller& caller, const RepoRow& repo, std::string_view name);
    [[nodiscard]] Reply<Done> create_tag(const Caller& caller,
                                         const RepoRow& repo,
                                         std::string_view name,
                                         std::string_view revision);
    [[nodiscard]] Reply<Done>
    delete_tag(const Caller& caller, const RepoRow& repo, std::string_view name);

    /// An empty pull request for main: its ref is there, commits go to it.
    [[nodiscard]] Reply<PullRow>
    open_pull(const Caller& caller, const RepoRow& repo, const std::string& title);
    [[nodiscard]] Reply<std::optional<PullRow>> find_pull(const RepoRow& repo,
                                                          std::uint64_t number);
    /// Newest first.
    [[nodiscard]] Reply<std::vector<PullRow>> pulls(const RepoRow& repo);

    [[nodiscard]] Reply<TreePage>
    list_tree(const RepoRow& repo, const ResolvedRevision& at, const TreeQuery& query);
    /// Missing paths are left out.
    [[nodiscard]] Reply<std::vector<hub::TreeEntry>> paths_info(
        const RepoRow& repo, const ResolvedRevision& at, const std::vector<std::string>& paths);
    /// Newest first, along first parents.
    [[nodiscard]] Reply<std::vector<hub::CommitInfo>>
    history(const RepoRow& repo, const ResolvedRevision& at, std::size_t limit);
    [[nodiscard]] Reply<FileContent>
    open_file(const RepoRow& repo, const ResolvedRevision& at, const RelPath& path);

    [[nodiscard]] Reply<hub::PreuploadAnswer>
    preupload(const RepoRow& repo, std::string_view revision, const hub::Preupload& request);
    /// Reads the whole stream, then applies it in one transaction.
    [[nodiscard]] Reply<CommitResult> commit(const Caller& caller,
                                             const RepoRow& repo,
                                             const CommitRequest& request,
                                             http::BodyReader& body);

    /// True when the object is in this repository with that size. `pin` keeps it from collection
    /// for the time that an upload may take.
    [[nodiscard]] Reply<bool> has_object(RepoKey repo, const hub::LfsObject& object, Pin pin);
    [[nodiscard]] Reply<std::unique_ptr<sys::InputFile>> open_object(const RepoRow& repo,
                                                                     const hub::LfsObject& object);
    [[nodiscard]] std::string sign(const UploadGrant& grant, std::string_view purpose) const;
    [[nodiscard]] bool
    is_signed(const UploadGrant& grant, std::string_view purpose, std::string_view signature) const;
    /// Streams the body in; its digest and size are what the grant says, or nothing is kept.
    [[nodiscard]] Reply<Done> receive_object(const UploadGrant& grant, http::BodyReader& body);
    /// One part of it; its ETag.
    [[nodiscard]] Reply<std::string> receive_part(const UploadGrant& grant,
                                                  std::uint64_t part_bytes,
                                                  std::uint64_t number,
                                                  http::BodyReader& body);
    /// Puts the parts together; they must be the object. Repeating it is success.
    [[nodiscard]] Reply<Done> complete_object(const UploadGrant& grant,
                                              std::uint64_t part_bytes,
                                              const std::vector<hub::LfsPart>& parts);

    /// A xorb of the grant's user; false when it is known. Its object is not looked at.
    [[nodiscard]] Reply<bool>
    receive_xorb(const UploadGrant& grant, const hub::XetHash& hash, http::BodyReader& body);
    /// Puts the files of a shard together from xorbs that the user sent; they become objects of the
    /// grant's repository. 400 names the file that is not what the shard says.
    [[nodiscard]] Reply<Done> receive_shard(const UploadGrant& grant, http::BodyReader& body);

    [[nodiscard]] const Settings& settings() const { return parts_.settings; }

    [[nodiscard]] std::int64_t now() { return parts_.clock.unix_seconds(); }

private:
    struct Draft;
    friend class CommitJob;
    friend class XetJob;

    [[nodiscard]] AuditRow audit(const Caller& caller,
                                 const RepoRow& repo,
                                 std::string_view action,
                                 std::string detail = {});
    [[nodiscard]] TreeSource tree_source();
    [[nodiscard]] Reply<hub::TreeEntry>
    entry_of(const RepoRow& repo, const std::string& path, const hub::GitTreeItem& item);
    [[nodiscard]] Reply<Done> add_ref(const Caller& caller,
                                      const RepoRow& repo,
                                      const hub::RefName& name,
                                      const hub::GitOid& target);
    [[nodiscard]] Reply<Done>
    drop_ref(const Caller& caller, const RepoRow& repo, const hub::RefName& name);
    [[nodiscard]] Reply<CreatedRepo> with_main(const Caller& caller, CreatedRepo created);
    [[nodiscard]] Reply<Done>
    add_empty_branch(const Caller& caller, const RepoRow& repo, const hub::RefName& name);

    [[nodiscard]] PartialUpload partial_upload(const UploadGrant& grant,
                                               std::uint64_t part_bytes) const;
    /// 403 when the new tree takes something from what the version branch has published.
    [[nodiscard]] Reply<Done> check_append_only(const Caller& caller,
                                                const RepoRow& repo,
                                                const ResolvedRevision& head,
                                                const TreeEdit::Written& tree);
    [[nodiscard]] Reply<CommitResult>
    store_commit(const Caller& caller, const RepoRow& repo, Draft draft);

    /// A file at a path of a tree of a repository, which never changes, with its bytes when small.
    struct KnownFile {
        FileRow row{};
        std::string bytes{};
    };

    [[nodiscard]] Reply<std::shared_ptr<const KnownFile>>
    known_file(const RepoRow& repo, const ResolvedRevision& at, const RelPath& path);

    static constexpr std::size_t kFileCacheBytes = 12UL << 20U;
    static constexpr std::size_t kCommitCacheBytes = 2UL << 20U;

    ServiceParts parts_;
    PartStore uploads_;
    XorbStore xorbs_;
    ReadCache<KnownFile> files_{kFileCacheBytes};
    ReadCache<hub::GitCommit> commits_{kCommitCacheBytes};
    /// One commit is applied at a time: the database has one writer anyway, and so two commits
    /// without a parent queue up instead of failing.
    std::mutex commit_mutex_;
};

} // namespace kb::registry
