// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "registry/app.hpp"

#include <fmt/format.h>

namespace kb::registry {

using document::Node;

namespace {

http::ServerResponse ok_response() {
    return {.headers = {{"Content-Type", "text/plain; charset=utf-8"}}, .body = std::string{"OK"}};
}

bool bool_member(const Node& json, std::string_view key) {
    const Node* node = json.find(key);
    return node != nullptr && node->is(Node::Kind::boolean) && node->as_bool();
}

Node summary_of(const RepoRow& repo) {
    const std::string id = repo.id.text();
    return Node::table({{"_id", Node{fmt::format("{:024}", repo.key)}},
                        {"id", Node{id}},
                        {"modelId", Node{id}},
                        {"author", Node{repo.id.owner()}},
                        {"private", Node{repo.visibility == hub::Visibility::private_}},
                        {"gated", Node{false}},
                        {"disabled", Node{false}},
                        {"downloads", Node{0}},
                        {"likes", Node{0}},
                        {"tags", Node::array()},
                        {"createdAt", Node{hub::iso_time(repo.created)}}});
}

Node sibling_of(const hub::TreeEntry& entry) {
    Node json = Node::table({{"rfilename", Node{entry.path.text()}},
                             {"size", Node{entry.size}},
                             {"blobId", Node{entry.oid.hex()}}});
    if (entry.lfs) {
        json.set("lfs",
                 Node::table({{"sha256", Node{entry.lfs->oid.hex()}},
                              {"size", Node{entry.lfs->size}},
                              {"pointerSize", Node{to_text(*entry.lfs).size()}}}));
    }
    return json;
}

} // namespace

App::Answer App::whoami(const Call& call) {
    KB_TRY(const hub::WhoAmI who, service_->whoami(call.caller));
    return json_response(hub::to_json(who));
}

App::Answer App::create_repo(const Call& call) {
    KB_TRY(const Node json, read_json(*call.request->body));
    KB_TRY(const hub::CreateRepo request, or_bad_request(hub::parse_create_repo(json)));
    KB_TRY(const CreatedRepo created, service_->create_repo(call.caller, request));
    const std::string id = created.repo.id.text();
    Node answer = Node::table({{"url", Node{url_of(created.repo)}},
                               {"name", Node{id}},
                               {"id", Node{fmt::format("{:024}", created.repo.key)}}});
    if (!created.existed) {
        return json_response(answer);
    }
    // Clients that do not mind read the address from the conflict.
    const std::string message = fmt::format(
        "You already created this {} repo: {}", hub::singular(created.repo.id.type()), id);
    answer.set("error", Node{message});
    http::ServerResponse response = json_response(answer, 409);
    response.headers.set("X-Error-Message", message);
    return response;
}

App::Answer App::delete_repo(const Call& call) {
    KB_TRY(const Node json, read_json(*call.request->body));
    KB_TRY(const hub::CreateRepo request, or_bad_request(hub::parse_create_repo(json)));
    const std::string owner = request.organization.value_or(call.caller.user);
    KB_TRY(const hub::RepoId id,
           or_bad_request(hub::RepoId::parse(request.type, owner + "/" + request.name)));
    KB_TRY(const RepoRow repo, service_->open_repo(call.caller, id, Right::own));
    KB_TRY(service_->delete_repo(call.caller, repo));
    return ok_response();
}

/// {fromRepo, toRepo, type}
App::Answer App::move_repo(const Call& call) {
    KB_TRY(const Node json, read_json(*call.request->body));
    const std::string word = json.text_or("type", "model");
    const auto type = hub::parse_repo_type(word);
    if (!type) {
        return hub::HubStatus{.http = 400, .message = "'type' is no type of repository"};
    }
    KB_TRY(const hub::RepoId from,
           or_bad_request(hub::RepoId::parse(*type, json.text_or("fromRepo"))));
    KB_TRY(const hub::RepoId to, or_bad_request(hub::RepoId::parse(*type, json.text_or("toRepo"))));
    KB_TRY(const RepoRow repo, service_->open_repo(call.caller, from, Right::own));
    KB_TRY(service_->move_repo(call.caller, repo, to));
    return json_response(Node::table({{"url", Node{options_.base_url + to.web_path()}}}));
}

/// ?author=&search=, sorted by name.
App::Answer App::list_repos(const Call& call) {
    const std::string word = call.parameter("type");
    const auto type = hub::parse_repo_type(word);
    if (!type || hub::plural(*type) != word) {
        return hub::HubStatus{.http = 404, .message = "there is nothing at this address"};
    }
    const std::string author = registry::parameter(call.query, "author");
    const std::string search = to_lower(registry::parameter(call.query, "search"));
    KB_TRY(const std::vector<RepoRow> repos, service_->visible_repos(call.caller, *type));
    Node list = Node::array();
    for (const RepoRow& repo : repos) {
        if ((author.empty() || repo.id.owner() == author) &&
            to_lower(repo.id.text()).find(search) != std::string::npos) {
            list.push(summary_of(repo));
        }
    }
    return json_response(list);
}

App::Answer App::owner_overview(const Call& call) {
    // The same for every name: that an owner has nothing but private repositories is not told.
    const std::string owner = call.parameter("owner");
    if (!hub::check_repo_part(owner)) {
        return hub::HubStatus{.http = 404, .message = "no such owner"};
    }
    return json_response(
        Node::table({{"name", Node{owner}},
                     {"fullname", Node{owner}},
                     {"avatarUrl", Node{""}},
                     {"trustedKernelPublisher", Node{service_->is_trusted(owner)}}}));
}

App::Answer App::repo_info(const Call& call) {
    const std::string revision = call.parameter("rev");
    KB_TRY(const ResolvedRevision at,
           service_->resolve(*call.repo, revision.empty() ? std::string_view{"main"} : revision));
    Node siblings = Node::array();
    std::uint64_t total = 0;
    TreeQuery query{.recursive = true};
    while (true) {
        KB_TRY(const TreePage page, service_->list_tree(*call.repo, at, query));
        for (const hub::TreeEntry& entry : page.entries) {
            if (entry.kind == hub::EntryKind::file) {
                siblings.push(sibling_of(entry));
                total += entry.size;
            }
        }
        if (!page.next) {
            break;
        }
        query.after = *page.next;
    }
    Node json = summary_of(*call.repo);
    json.set("sha", Node{at.oid.hex()});
    json.set("lastModified", Node{hub::iso_time(at.commit.committer.time)});
    json.set("siblings", std::move(siblings));
    json.set("usedStorage", Node{total});
    http::ServerResponse response = json_response(json);
    response.headers.set("X-Repo-Commit", at.oid.hex());
    return response;
}

App::Answer App::refs(const Call& call) {
    const std::string pulls = registry::parameter(call.query, "include_prs");
    const bool with_pulls = !pulls.empty() && pulls != "0" && to_lower(pulls) != "false";
    KB_TRY(const hub::Refs refs, service_->refs(*call.repo, with_pulls));
    return json_response(hub::to_json(refs));
}

App::Answer App::create_branch(const Call& call) {
    KB_TRY(const Node json, read_json(*call.request->body));
    KB_TRY(service_->create_branch(call.caller,
                                   *call.repo,
                                   {.name = call.parameter("name"),
                                    .start = json.text_or("startingPoint"),
                                    .empty = bool_member(json, "emptyBranch"),
                                    .overwrite = bool_member(json, "overwrite")}));
    return ok_response();
}

App::Answer App::create_tag(const Call& call) {
    KB_TRY(const Node json, read_json(*call.request->body));
    KB_TRY(
        service_->create_tag(call.caller, *call.repo, json.text_or("tag"), call.parameter("rev")));
    return ok_response();
}

App::Answer App::settings(const Call& call) {
    KB_TRY(const Node json, read_json(*call.request->body));
    const std::string visibility = json.text_or("visibility");
    if (json.find("private") == nullptr && visibility.empty()) {
        return hub::HubStatus{.http = 400, .message = "only 'visibility' and 'private' can be set"};
    }
    const bool is_private = visibility == "private" || bool_member(json, "private");
    KB_TRY(service_->set_visibility(call.caller,
                                    *call.repo,
                                    is_private ? hub::Visibility::private_
                                               : hub::Visibility::public_));
    return json_response(Node::table({{"private", Node{is_private}}}));
}

} // namespace kb::registry
