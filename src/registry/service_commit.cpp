// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "registry/commit_receiver.hpp"
#include "registry/service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::registry {

namespace {

constexpr std::size_t kReadBlock = 256UL << 10U;

hub::HubStatus moved_on() {
    return {.http = 412,
            .message = "the branch has moved on since this commit was prepared: read it again and "
                       "repeat"};
}

/// The parser's objections are the client's fault, everything else is ours.
hub::HubStatus stream_failure(const Error& error) {
    if (error.code == ErrorCode::corrupt) {
        return {.http = 400, .message = error.to_text()};
    }
    if (error.code == ErrorCode::transient) {
        return {.http = 408, .message = "the request broke off"};
    }
    return internal_failure(error);
}

Reply<Done> receive(http::BodyReader& body, CommitReceiver& receiver, std::uint64_t max_bytes) {
    const auto too_long = [max_bytes] {
        return hub::HubStatus{.http = 413,
                              .message = fmt::format("a commit has at most {} bytes", max_bytes)};
    };
    if (body.length().value_or(0) > max_bytes) {
        return too_long();
    }
    hub::CommitParser parser{receiver};
    std::vector<std::byte> block(kReadBlock);
    std::uint64_t total = 0;
    while (true) {
        const Result<std::size_t> n = body.read(block);
        if (!n) {
            return stream_failure(n.error());
        }
        if (*n == 0) {
            break;
        }
        total += *n;
        if (total > max_bytes) {
            return too_long();
        }
        if (const Result<void> fed = parser.feed(std::span{block}.first(*n)); !fed) {
            return stream_failure(fed.error());
        }
    }
    if (const Result<void> finished = parser.finish(); !finished) {
        return stream_failure(finished.error());
    }
    return Done{};
}

std::string message_of(const hub::CommitHeader& header) {
    const std::string_view title = trim(header.summary);
    const std::string_view body = trim(header.description);
    std::string message{title.empty() ? "commit" : title};
    if (!body.empty()) {
        message += fmt::format("\n\n{}", body);
    }
    return message + "\n";
}

} // namespace

namespace {

using Items = std::vector<hub::GitTreeItem>;

/// A path below `path` of `old_tree` that `new_tree` has no more or otherwise; "" when there is
/// none. What is new is of no interest.
// NOLINTNEXTLINE(misc-no-recursion): as deep as a path, which is limited
Result<std::string> find_loss(const TreeSource& source,
                              const std::string& path,
                              const hub::GitOid& old_tree,
                              const hub::GitOid& new_tree) {
    std::string loss;
    if (old_tree == new_tree) {
        return loss;
    }
    KB_TRY(const Items before, source(old_tree));
    KB_TRY(const Items after, source(new_tree));
    for (const hub::GitTreeItem& item : before) {
        const auto now = std::ranges::find(after, item.name, &hub::GitTreeItem::name);
        if (now == after.end() || now->mode != item.mode) {
            return path + "/" + item.name;
        }
        if (now->oid != item.oid && item.mode == hub::GitMode::tree) {
            KB_TRY(loss, find_loss(source, path + "/" + item.name, item.oid, now->oid));
        } else if (now->oid != item.oid) {
            loss = path + "/" + item.name;
        }
        if (!loss.empty()) {
            return loss;
        }
    }
    return loss;
}

} // namespace

Reply<Done> Service::check_append_only(const Caller& caller,
                                       const RepoRow& repo,
                                       const ResolvedRevision& head,
                                       const TreeEdit::Written& tree) {
    if (!parts_.settings.policy.append_only_versions || caller.scope == Scope::admin || !head.ref ||
        !is_version_branch(*head.ref)) {
        return Done{};
    }
    // A new version begins as a copy of main; what came along is not published yet.
    KB_TRY(const std::optional<hub::GitOid> main,
           parts_.meta.find_ref(repo.key, "refs/heads/main"));
    if (main == head.oid) {
        return Done{};
    }
    const TreeSource source = [&](const hub::GitOid& oid) -> Result<Items> {
        const auto made = std::ranges::find(tree.trees, oid, &GitPayload::oid);
        return made == tree.trees.end() ? parts_.meta.tree(oid) : hub::parse_tree(made->payload);
    };
    const RelPath build = RelPath::literal("build");
    KB_TRY(const auto before, find_item(source, head.commit.tree, build));
    if (!before || before->mode != hub::GitMode::tree) {
        return Done{};
    }
    KB_TRY(const auto after, find_item(source, tree.root, build));
    std::string loss = "build";
    if (after && after->mode == hub::GitMode::tree) {
        KB_TRY(loss, find_loss(source, "build", before->oid, after->oid));
    }
    if (loss.empty()) {
        return Done{};
    }
    return hub::HubStatus{
        .http = 403,
        .message =
            fmt::format("'{}' is published on '{}' and may not change: publish a new version, "
                        "or use a token of scope admin",
                        loss,
                        *head.ref)};
}

/// What store_commit() writes.
struct Service::Draft {
    const ResolvedRevision& head;
    const CommitReceiver& staged;
    TreeEdit::Written tree{};
    std::vector<FileRow> files{};
    CreatePull create_pull = CreatePull::no;
};

/// One commit on its way: staged operations against the state of the repository.
class CommitJob {
public:
    struct Applied {
        TreeEdit::Written tree{};
        std::vector<FileRow> files{};
    };

    CommitJob(Service& service, const RepoRow& repo, const CommitReceiver& staged)
        : service_{&service}, repo_{&repo}, staged_{&staged} {}

    /// The tree that the operations make of `base`.
    Reply<Applied> apply(const hub::GitOid& base) {
        TreeEdit edit{service_->tree_source(), base};
        Applied applied;
        for (const StagedOp& op : staged_->ops()) {
            KB_TRY(std::visit([&](const auto& value) { return take(value, op, edit, applied); },
                              op.op));
        }
        KB_TRY(applied.tree, edit.write());
        return applied;
    }

    /// True when `head` is what this commit made already, with the answer lost on its way.
    Reply<bool> is_repeated(const ResolvedRevision& head, const Caller& caller) {
        if (head.commit.parents.size() != 1 || head.commit.author.name != caller.user ||
            head.commit.message != message_of(staged_->header())) {
            return false;
        }
        const hub::GitOid parent = head.commit.parents.front();
        if (const auto& expected = staged_->header().parent_commit;
            expected && !parent.hex().starts_with(*expected)) {
            return false;
        }
        KB_TRY(const std::optional<hub::GitCommit> before,
               service_->parts_.meta.find_commit(repo_->key, parent));
        if (!before) {
            return false;
        }
        Reply<Applied> again = apply(before->tree);
        return again && again->tree.root == head.commit.tree;
    }

private:
    static Reply<Done> put(TreeEdit& edit, const RelPath& path, const FileRow& file, Applied& out) {
        KB_TRY(edit.put(path, file.oid));
        out.files.push_back(file);
        return Done{};
    }

    Reply<Done>
    take(const hub::FileOp& op, const StagedOp& staged, TreeEdit& edit, Applied& out) const {
        return put(edit, op.path, staged.file, out);
    }

    Reply<Done>
    take(const hub::LfsFileOp& op, const StagedOp& /*staged*/, TreeEdit& edit, Applied& out) const {
        KB_TRY(const std::optional<LfsRow> object,
               service_->parts_.meta.find_lfs(repo_->key, op.oid));
        if (!object) {
            return hub::HubStatus{
                .http = 422,
                .message = fmt::format("'{}' cannot be committed: its object {} was not uploaded "
                                       "to this repository",
                                       op.path.text(),
                                       op.oid.hex())};
        }
        if (op.size && *op.size != object->size) {
            return hub::HubStatus{
                .http = 422,
                .message = fmt::format(
                    "'{}' has {} bytes, not {}", op.path.text(), object->size, *op.size)};
        }
        const hub::LfsPointer pointer{.oid = op.oid, .size = object->size};
        return put(edit,
                   op.path,
                   {.oid = hub::pointer_id(pointer),
                    .sha256 = op.oid,
                    .size = object->size,
                    .is_lfs = true},
                   out);
    }

    Reply<Done> take(const hub::DeletedFileOp& op,
                     const StagedOp& /*staged*/,
                     TreeEdit& edit,
                     Applied& /*out*/) const {
        KB_TRY(const bool was_there, edit.remove_file(op.path));
        if (!was_there) {
            // A stock client looks for these words.
            return hub::HubStatus{
                .http = 404,
                .code = hub::HubErrorCode::EntryNotFound,
                .message = fmt::format("A file with this name doesn't exist: {}", op.path.text())};
        }
        return Done{};
    }

    Reply<Done> take(const hub::DeletedFolderOp& op,
                     const StagedOp& /*staged*/,
                     TreeEdit& edit,
                     Applied& /*out*/) const {
        KB_TRY([[maybe_unused]] const bool was_there, edit.remove_directory(op.path));
        return Done{};
    }

    Reply<Done>
    take(const hub::CopyFileOp& op, const StagedOp& /*staged*/, TreeEdit& edit, Applied& /*out*/) {
        std::optional<hub::GitOid> blob;
        if (op.source_revision.empty()) {
            KB_TRY(blob, edit.find_file(op.source));
        } else {
            KB_TRY(const ResolvedRevision at, service_->resolve(*repo_, op.source_revision));
            KB_TRY(const auto item, find_item(service_->tree_source(), at.commit.tree, op.source));
            if (item && item->mode != hub::GitMode::tree) {
                blob = item->oid;
            }
        }
        if (!blob) {
            return entry_not_found(op.source.text(), op.source_revision);
        }
        return edit.put(op.path, *blob); // its file row is there already
    }

    Service* service_;
    const RepoRow* repo_;
    const CommitReceiver* staged_;
};

Reply<CommitResult> Service::commit(const Caller& caller,
                                    const RepoRow& repo,
                                    const CommitRequest& request,
                                    http::BodyReader& body) {
    // Said before gigabytes are read.
    KB_TRY(resolve(repo, request.revision));
    KB_TRY(SpillFile spill, SpillFile::create(parts_.temporary));
    CommitReceiver staged{parts_.blobs, std::move(spill)};
    KB_TRY(receive(body, staged, parts_.settings.commit_bytes));

    const std::scoped_lock lock{commit_mutex_};
    KB_TRY(const ResolvedRevision head, resolve(repo, request.revision));
    const bool makes_pull = request.create_pull == CreatePull::yes;
    if (!makes_pull && (!head.ref || head.ref->starts_with("refs/tags/"))) {
        return revision_not_found(request.revision);
    }
    CommitJob job{*this, repo, staged};
    const auto& expected = staged.header().parent_commit;
    const bool is_current = !expected || head.oid.hex().starts_with(*expected);
    Reply<CommitJob::Applied> applied = is_current ? job.apply(head.commit.tree) : moved_on();
    if (!applied) {
        if (!makes_pull) {
            KB_TRY(const bool is_repeated, job.is_repeated(head, caller));
            if (is_repeated) {
                return CommitResult{.commit = head.oid};
            }
        }
        return std::move(applied).error();
    }
    if (applied->tree.root == head.commit.tree && !makes_pull) {
        return CommitResult{.commit = head.oid};
    }
    if (!makes_pull) {
        KB_TRY(check_append_only(caller, repo, head, applied->tree));
    }
    return store_commit(caller,
                        repo,
                        {.head = head,
                         .staged = staged,
                         .tree = std::move(applied->tree),
                         .files = std::move(applied->files),
                         .create_pull = request.create_pull});
}

Reply<CommitResult> Service::store_commit(const Caller& caller, const RepoRow& repo, Draft draft) {
    const std::int64_t time = now();
    const hub::GitSignature who{
        .name = caller.user, .email = caller.user + "@localhost", .time = time};
    GitPayload commit{.payload = hub::write_commit({.tree = draft.tree.root,
                                                    .parents = {draft.head.oid},
                                                    .author = who,
                                                    .committer = who,
                                                    .message = message_of(draft.staged.header())})};
    commit.oid = hub::git_id(hub::GitKind::commit, commit.payload);
    CommitResult result{.commit = commit.oid};
    RefChange change{.repo = repo.key, .from = draft.head.oid, .to = commit.oid};
    if (draft.create_pull == CreatePull::yes) {
        KB_TRY(result.pull,
               parts_.meta.add_pull(repo.key,
                                    {.title = draft.staged.header().summary,
                                     .author = caller.user,
                                     .base = draft.head.ref.value_or(draft.head.oid.hex()),
                                     .created = time}));
        change.name = hub::RefName::pull_request(*result.pull).full();
        change.from = std::nullopt;
    } else {
        change.name = *draft.head.ref;
    }
    change.audit = audit(caller, repo, "commit", change.name + " " + commit.oid.hex());
    change.commits.push_back(std::move(commit));
    change.trees = std::move(draft.tree.trees);
    change.files = std::move(draft.files);
    change.small_blobs = [&draft](std::size_t i) {
        return draft.staged.small_contents().read(i);
    };
    KB_TRY(const ChangeOutcome outcome, parts_.meta.change_ref(change));
    return outcome == ChangeOutcome::done ? Reply<CommitResult>{result}
                                          : Reply<CommitResult>{moved_on()};
}

} // namespace kb::registry
