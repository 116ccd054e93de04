// SPDX-License-Identifier: Apache-2.0
#include "registry/service.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::registry {

namespace {

/// First parts of our own addresses: an owner of that name could not be told from them.
constexpr std::array<std::string_view, 12> kReservedOwners{"api",
                                                           "models",
                                                           "datasets",
                                                           "spaces",
                                                           "kernels",
                                                           "health",
                                                           "metrics",
                                                           "static",
                                                           "search",
                                                           "login",
                                                           "settings",
                                                           "resolve"};

Reply<Done> check_owner(std::string_view owner) {
    if (std::ranges::find(kReservedOwners, to_lower(owner)) != kReservedOwners.end()) {
        return hub::HubStatus{.http = 400,
                              .message = fmt::format("'{}' cannot be an owner: it is part of "
                                                     "the registry's own addresses",
                                                     owner)};
    }
    return Done{};
}

/// "v1", and for tags also "v1.2-rc3".
bool is_version(std::string_view name) {
    return name.size() > 1 && name[0] == 'v' && name[1] >= '0' && name[1] <= '9';
}

hub::HubStatus is_published(std::string_view kind, std::string_view name) {
    return {.http = 403,
            .message = fmt::format("the {} '{}' is published: only a token of scope admin can "
                                   "delete it",
                                   kind,
                                   name)};
}

} // namespace

AuditRow Service::audit(const Caller& caller,
                        const RepoRow& repo,
                        std::string_view action,
                        std::string detail) {
    return {.time = now(),
            .actor = caller.user,
            .action = std::string{action},
            .repo = fmt::format("{}/{}", hub::plural(repo.id.type()), repo.id.text()),
            .detail = std::move(detail)};
}

Reply<Caller> Service::authenticate(std::optional<std::string_view> authorization) {
    if (!authorization) {
        return Caller{};
    }
    const std::optional<std::string> token = token_of(*authorization);
    if (!token) {
        return bad_credentials();
    }
    KB_TRY(const std::optional<TokenRow> row, parts_.meta.find_token(token_hash(*token)));
    if (!row || (row->expires && *row->expires <= now())) {
        return bad_credentials();
    }
    return Caller{.user = row->user, .scope = row->scope, .namespaces = row->namespaces};
}

Reply<RepoRow> Service::open_repo(const Caller& caller, const hub::RepoId& id, Right right) {
    KB_TRY(std::optional<RepoRow> repo, parts_.meta.find_repo(id));
    if (!repo || !may_read(caller, id, repo->visibility, parts_.settings.anonymous_read)) {
        return repo_not_found(caller);
    }
    if ((right == Right::write && !may_write(caller, id.owner())) ||
        (right == Right::own && !may_own(caller, id.owner()))) {
        return forbidden(caller);
    }
    return std::move(*repo);
}

Reply<hub::WhoAmI> Service::whoami(const Caller& caller) {
    hub::WhoAmI who{.name = caller.user, .role = std::string{to_text(caller.scope)}};
    for (const std::string& name : caller.namespaces) {
        if (name != caller.user) {
            who.organizations.push_back(name);
        }
    }
    return who;
}

bool Service::is_trusted(std::string_view owner) const {
    const auto& trusted = parts_.settings.trusted_publishers;
    return !trusted || std::ranges::find(*trusted, owner) != trusted->end();
}

Reply<CreatedRepo> Service::create_repo(const Caller& caller, const hub::CreateRepo& request) {
    if (caller.is_anonymous()) {
        return forbidden(caller);
    }
    const std::string owner = request.organization.value_or(caller.user);
    KB_TRY(hub::RepoId id,
           or_bad_request(
               hub::RepoId::parse(request.type, fmt::format("{}/{}", owner, request.name))));
    KB_TRY(check_owner(owner));
    if (!may_write(caller, owner)) {
        return forbidden(caller);
    }
    KB_TRY(std::optional<RepoRow> existing, parts_.meta.find_repo_any_case(id));
    if (!existing) {
        Result<RepoRow> made = parts_.meta.create_repo(
            id, request.visibility, audit(caller, {.id = id}, "create-repo"));
        if (!made) {
            // Somebody else may have made it since.
            KB_TRY(existing, parts_.meta.find_repo_any_case(id));
        }
        if (!made && !existing) {
            return std::move(made).error();
        }
        return with_main(
            caller, {.repo = made ? std::move(*made) : std::move(*existing), .existed = !made});
    }
    return with_main(caller, {.repo = std::move(*existing), .existed = true});
}

/// A server that was killed while it made a repository may have left it without its first branch.
Reply<CreatedRepo> Service::with_main(const Caller& caller, CreatedRepo created) {
    KB_TRY(const hub::RefName main, hub::RefName::branch("main"));
    KB_TRY(const std::optional<hub::GitOid> head,
           parts_.meta.find_ref(created.repo.key, main.full()));
    if (!head) {
        const Reply<Done> added = add_empty_branch(caller, created.repo, main);
        if (!added && added.error().http != 409) {
            return added.error();
        }
    }
    return created;
}

Reply<Done> Service::delete_repo(const Caller& caller, const RepoRow& repo) {
    const std::scoped_lock lock{commit_mutex_};
    KB_TRY(parts_.meta.delete_repo(repo.key, audit(caller, repo, "delete-repo")));
    return Done{};
}

Reply<Done> Service::move_repo(const Caller& caller, const RepoRow& repo, const hub::RepoId& to) {
    KB_TRY(check_owner(to.owner()));
    if (!may_write(caller, to.owner())) {
        return forbidden(caller);
    }
    const std::scoped_lock lock{commit_mutex_};
    const Result<void> moved =
        parts_.meta.move_repo(repo.key, to, audit(caller, repo, "move-repo", to.text()));
    if (!moved && moved.error().code == ErrorCode::denied) {
        return hub::HubStatus{.http = 409, .message = moved.error().message};
    }
    KB_TRY(moved);
    return Done{};
}

Reply<std::optional<hub::RepoId>> Service::moved_to(const Caller& caller, const hub::RepoId& id) {
    KB_TRY(const std::optional<RepoRow> repo, parts_.meta.find_moved(id));
    if (!repo || !may_read(caller, repo->id, repo->visibility, parts_.settings.anonymous_read)) {
        return std::optional<hub::RepoId>{};
    }
    return std::optional{repo->id};
}

Reply<Done>
Service::set_visibility(const Caller& caller, const RepoRow& repo, hub::Visibility visibility) {
    const bool is_private = visibility == hub::Visibility::private_;
    KB_TRY(parts_.meta.set_visibility(
        repo.key,
        visibility,
        audit(caller, repo, "set-visibility", is_private ? "private" : "public")));
    return Done{};
}

Reply<std::vector<RepoRow>> Service::visible_repos(const Caller& caller, hub::RepoType type) {
    KB_TRY(std::vector<RepoRow> all, parts_.meta.repos());
    std::erase_if(all, [&](const RepoRow& repo) {
        return repo.id.type() != type ||
               !may_read(caller, repo.id, repo.visibility, parts_.settings.anonymous_read);
    });
    return all;
}

Reply<hub::Refs> Service::refs(const RepoRow& repo, bool with_pulls) {
    KB_TRY(const std::vector<RefRow> rows, parts_.meta.refs(repo.key));
    hub::Refs refs;
    if (with_pulls) {
        refs.pull_requests.emplace();
    }
    for (const RefRow& row : rows) {
        KB_TRY(const hub::RefName name, hub::RefName::parse_full(row.name));
        switch (name.kind()) {
        case hub::RefKind::heads:
            refs.branches.push_back({.name = name.name(), .ref = row.name, .target = row.commit});
            break;
        case hub::RefKind::tags:
            refs.tags.push_back({.name = name.name(), .ref = row.name, .target = row.commit});
            break;
        case hub::RefKind::pr:
            if (with_pulls) {
                refs.pull_requests->push_back(
                    {.name = row.name, .ref = row.name, .target = row.commit});
            }
            break;
        }
    }
    return refs;
}

Reply<ResolvedRevision> Service::resolve(const RepoRow& repo, std::string_view text) {
    const Result<hub::Revision> revision = hub::Revision::parse(text);
    if (!revision) {
        return revision_not_found(text);
    }
    ResolvedRevision at;
    std::optional<hub::GitOid> oid;
    if (revision->is_commit()) {
        KB_TRY(oid, hub::GitOid::from_hex(revision->text()));
    }
    const std::vector<std::string> names =
        revision->is_full_ref()
            ? std::vector{revision->text()}
            : std::vector{"refs/heads/" + revision->text(), "refs/tags/" + revision->text()};
    for (std::size_t i = 0; !oid && i < names.size(); ++i) {
        KB_TRY(oid, parts_.meta.find_ref(repo.key, names[i]));
        at.ref = oid ? std::optional{names[i]} : std::nullopt;
    }
    if (!oid) {
        return revision_not_found(text);
    }
    at.oid = *oid;
    const std::string key = fmt::format("{} {}", repo.key, oid->hex());
    if (const auto known = commits_.find(key)) {
        at.commit = *known;
        return at;
    }
    KB_TRY(std::optional<hub::GitCommit> commit, parts_.meta.find_commit(repo.key, *oid));
    if (!commit) {
        return revision_not_found(text);
    }
    at.commit = std::move(*commit);
    commits_.put(key,
                 std::make_shared<const hub::GitCommit>(at.commit),
                 sizeof(hub::GitCommit) + at.commit.message.size());
    return at;
}

Reply<Done> Service::add_ref(const Caller& caller,
                             const RepoRow& repo,
                             const hub::RefName& name,
                             const hub::GitOid& target) {
    // Git keeps refs as files: beside 'a' there is no place for 'a/b', in a clone or an export.
    KB_TRY(const std::vector<RefRow> others, parts_.meta.refs(repo.key));
    for (const RefRow& other : others) {
        if (name.full().starts_with(other.name + "/") ||
            other.name.starts_with(name.full() + "/")) {
            return hub::HubStatus{.http = 409,
                                  .message = fmt::format("'{}' and '{}' cannot exist side by side",
                                                         name.full(),
                                                         other.name)};
        }
    }
    KB_TRY(const ChangeOutcome outcome,
           parts_.meta.change_ref(
               {.repo = repo.key,
                .name = name.full(),
                .to = target,
                .audit = audit(caller, repo, "create-ref", name.full() + " " + target.hex())}));
    if (outcome == ChangeOutcome::moved) {
        return hub::HubStatus{.http = 409,
                              .message = fmt::format("Reference already exists: {}", name.full())};
    }
    return Done{};
}

/// The name must be there; whatever it points to.
Reply<Done> Service::drop_ref(const Caller& caller, const RepoRow& repo, const hub::RefName& name) {
    const std::scoped_lock lock{commit_mutex_};
    KB_TRY(const std::optional<hub::GitOid> now, parts_.meta.find_ref(repo.key, name.full()));
    if (!now) {
        return revision_not_found(name.full());
    }
    KB_TRY(const ChangeOutcome outcome,
           parts_.meta.change_ref(
               {.repo = repo.key,
                .name = name.full(),
                .from = now,
                .audit = audit(caller, repo, "delete-ref", name.full() + " " + now->hex())}));
    if (outcome == ChangeOutcome::moved) { // by an import or a mirror beside us
        return hub::HubStatus{.http = 409,
                              .message = fmt::format("'{}' is being changed", name.full())};
    }
    return Done{};
}

Reply<Done>
Service::add_empty_branch(const Caller& caller, const RepoRow& repo, const hub::RefName& name) {
    const hub::GitSignature who{
        .name = caller.user, .email = caller.user + "@localhost", .time = now()};
    GitPayload tree{.oid = hub::git_id(hub::GitKind::tree, "")};
    GitPayload commit{
        .payload = hub::write_commit(
            {.tree = tree.oid, .author = who, .committer = who, .message = "initial commit"})};
    commit.oid = hub::git_id(hub::GitKind::commit, commit.payload);
    RefChange change{.repo = repo.key,
                     .name = name.full(),
                     .to = commit.oid,
                     .audit = audit(caller, repo, "create-ref", name.full())};
    change.trees.push_back(std::move(tree));
    change.commits.push_back(std::move(commit));
    KB_TRY(const ChangeOutcome outcome, parts_.meta.change_ref(change));
    if (outcome == ChangeOutcome::moved) {
        return hub::HubStatus{.http = 409,
                              .message = fmt::format("Reference already exists: {}", name.full())};
    }
    return Done{};
}

Reply<Done>
Service::create_branch(const Caller& caller, const RepoRow& repo, const NewBranch& branch) {
    KB_TRY(const hub::RefName name, or_bad_request(hub::RefName::branch(branch.name)));
    if (branch.empty) {
        return add_empty_branch(caller, repo, name);
    }
    KB_TRY(const ResolvedRevision start,
           resolve(repo, branch.start.empty() ? std::string_view{"main"} : branch.start));
    if (branch.overwrite) {
        KB_TRY(const std::optional<hub::GitOid> now, parts_.meta.find_ref(repo.key, name.full()));
        if (now == start.oid) {
            return Done{};
        }
        if (now) {
            return hub::HubStatus{.http = 403,
                                  .message = "a branch cannot be moved back: its commits may be in "
                                             "use by their ids"};
        }
    }
    return add_ref(caller, repo, name, start.oid);
}

Reply<Done>
Service::delete_branch(const Caller& caller, const RepoRow& repo, std::string_view text) {
    KB_TRY(const hub::RefName name, or_bad_request(hub::RefName::branch(text)));
    if (name.name() == "main") {
        return hub::HubStatus{.http = 403, .message = "the branch 'main' cannot be deleted"};
    }
    const bool is_fixed = parts_.settings.policy.append_only_versions &&
                          caller.scope != Scope::admin && is_version_branch(name.full());
    KB_TRY(const std::optional<hub::GitOid> there, parts_.meta.find_ref(repo.key, name.full()));
    if (is_fixed && there) {
        return is_published("branch", name.name());
    }
    return drop_ref(caller, repo, name);
}

Reply<Done> Service::create_tag(const Caller& caller,
                                const RepoRow& repo,
                                std::string_view text,
                                std::string_view revision) {
    KB_TRY(const hub::RefName name, or_bad_request(hub::RefName::tag(text)));
    KB_TRY(const ResolvedRevision target, resolve(repo, revision));
    return add_ref(caller, repo, name, target.oid);
}

Reply<PullRow>
Service::open_pull(const Caller& caller, const RepoRow& repo, const std::string& title) {
    KB_TRY(const ResolvedRevision head, resolve(repo, "main"));
    PullRow pull{.title = title,
                 .author = caller.user,
                 .base = head.ref.value_or("refs/heads/main"),
                 .created = now()};
    KB_TRY(pull.number, parts_.meta.add_pull(repo.key, pull));
    KB_TRY(add_ref(caller, repo, hub::RefName::pull_request(pull.number), head.oid));
    return pull;
}

Reply<std::optional<PullRow>> Service::find_pull(const RepoRow& repo, std::uint64_t number) {
    KB_TRY(std::optional<PullRow> pull, parts_.meta.find_pull(repo.key, number));
    return pull;
}

Reply<std::vector<PullRow>> Service::pulls(const RepoRow& repo) {
    KB_TRY(const std::vector<RefRow> rows, parts_.meta.refs(repo.key));
    std::vector<PullRow> out;
    for (const RefRow& row : rows) {
        KB_TRY(const hub::RefName name, hub::RefName::parse_full(row.name));
        if (name.kind() == hub::RefKind::pr) {
            KB_TRY(std::optional<PullRow> pull,
                   parts_.meta.find_pull(repo.key, parse_unsigned(name.name()).value_or(0)));
            if (pull) {
                out.push_back(std::move(*pull));
            }
        }
    }
    std::ranges::sort(out, std::greater{}, &PullRow::number);
    return out;
}

Reply<Done> Service::delete_tag(const Caller& caller, const RepoRow& repo, std::string_view text) {
    KB_TRY(const hub::RefName name, or_bad_request(hub::RefName::tag(text)));
    if (parts_.settings.policy.fixed_release_tags && caller.scope != Scope::admin &&
        is_version(name.name())) {
        return is_published("tag", name.name());
    }
    return drop_ref(caller, repo, name);
}

} // namespace kb::registry
