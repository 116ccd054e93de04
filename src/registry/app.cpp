// SPDX-License-Identifier: Apache-2.0
#include "registry/app.hpp"

#include "base/text.hpp"
#include "document/json.hpp"

#include <fmt/format.h>

namespace kb::registry {

using document::Node;

namespace {

constexpr std::uint64_t kMaxJson = 16UL << 20U;

http::ServerResponse ok_response() {
    return {.headers = {{"Content-Type", "text/plain; charset=utf-8"}}, .body = std::string{"OK"}};
}

/// The same request at the new name. A relative address: clients take another host for a mirror,
/// and send it no token.
http::ServerResponse
moved_response(const http::ServerRequest& request, const hub::RepoId& from, const hub::RepoId& to) {
    const bool is_api = request.path.starts_with("/api/");
    const std::string old_path = is_api ? from.api_path() : from.web_path();
    const std::string new_path = is_api ? to.api_path() : to.web_path();
    std::string location = new_path;
    if (to_lower(request.path.substr(0, old_path.size())) == to_lower(old_path)) {
        location += request.path.substr(old_path.size());
    }
    if (!request.query.empty()) {
        location += "?" + request.query;
    }
    return {.status = 307,
            .headers = {{"Location", location}, {"Content-Type", "text/plain; charset=utf-8"}},
            .body = fmt::format("the repository is now {}", to.text())};
}

} // namespace

http::ServerResponse json_response(const Node& json, int status) {
    return {.status = status,
            .headers = {{"Content-Type", "application/json; charset=utf-8"}},
            .body = document::write_json(json, {.indent = 0, .final_newline = false})};
}

Reply<Node> read_json(http::BodyReader& body) {
    const Result<std::string> text = http::read_all(body, kMaxJson);
    if (!text && text.error().code == ErrorCode::denied) {
        return hub::HubStatus{.http = 413, .message = text.error().message};
    }
    if (!text) {
        return hub::HubStatus{.http = 408, .message = "the request broke off"};
    }
    if (trim(*text).empty()) {
        return Node::table();
    }
    return or_bad_request(document::parse_json(*text, {.name = "the request"}, {.max_depth = 32}));
}

std::string App::url_of(const RepoRow& repo) const {
    return options_.base_url + repo.id.web_path();
}

http::ServerResponse App::failure(const http::ServerRequest& request, hub::HubStatus status) {
    if (status.http >= 500) {
        if (options_.on_failure) {
            options_.on_failure(fmt::format("{} {}: {}",
                                            request.method,
                                            escape_control(request.path),
                                            escape_control(status.message)));
        }
        status.message = status.http == 507 ? "the registry has no space left"
                                            : "the registry failed to answer; its log says why";
    }
    http::ServerResponse response = json_response(hub::to_json(status), status.http);
    response.headers.set("X-Error-Message", escape_control(status.message));
    response.headers.set("Cache-Control", "no-store");
    if (status.code) {
        response.headers.set("X-Error-Code", std::string{to_text(*status.code)});
    }
    if (status.http == 401) {
        // git and git-lfs ask for a password only when told so.
        response.headers.set("WWW-Authenticate", "Basic realm=\"registry\"");
    }
    return response;
}

http::ServerResponse App::handle(http::ServerRequest& request) {
    http::Headers extra;
    Answer answered = answer(request, extra);
    http::ServerResponse response =
        answered ? std::move(answered).value() : failure(request, std::move(answered).error());
    for (const http::Header& field : extra.fields()) {
        response.headers.set(field.name, field.value);
    }
    response.headers.set("X-Request-Id",
                         digest::sha256(digest::random_bytes(16)).hex().substr(0, 16));
    response.headers.set("X-Content-Type-Options", "nosniff");
    return response;
}

Reply<Done>
App::limit(const http::ServerRequest& request, const Caller& caller, http::Headers& extra) {
    const RateLimits& rate = service_->settings().rate;
    const unsigned most = caller.is_anonymous() ? rate.per_address : rate.per_user;
    if (most == 0) {
        return Done{};
    }
    const std::string key =
        caller.is_anonymous() ? "address " + request.peer : "user " + caller.user;
    const RateVerdict verdict = limiter_.count(key, most, service_->now());
    add_rate_headers(verdict, extra);
    if (!verdict.allowed) {
        return hub::HubStatus{
            .http = 429,
            .message = fmt::format("at most {} requests a minute: wait {} s", most, verdict.reset)};
    }
    return Done{};
}

App::Answer App::answer(http::ServerRequest& request, http::Headers& extra) {
    const RouteVerdict verdict = find_route(request.method, request.path);
    if (const auto* wrong = std::get_if<WrongMethod>(&verdict)) {
        http::ServerResponse response =
            failure(request, {.http = 405, .message = "this address has no such method"});
        response.headers.set("Allow", wrong->allow);
        return response;
    }
    if (std::holds_alternative<NoRoute>(verdict)) {
        return hub::HubStatus{.http = 404, .message = "there is nothing at this address"};
    }
    const RouteMatch& match = std::get<RouteMatch>(verdict);
    Call call{
        .request = &request, .parameters = match.parameters, .query = parse_form(request.query)};
    // Data of Xet comes with a token of its own kind.
    const bool is_xet =
        match.row->action == Action::put_xorb || match.row->action == Action::put_shard;
    Reply<Caller> caller = is_xet ? xet_caller(request)
                                  : service_->authenticate(request.headers.find("Authorization"));
    if (match.row->action != Action::health) {
        // A wrong token counts for its address: guessing is slow.
        KB_TRY(limit(request, caller ? *caller : Caller{}, extra));
    }
    KB_TRY(call.caller, std::move(caller));
    if (match.row->right != Right::nothing && !match.repo && call.caller.is_anonymous()) {
        return bad_credentials();
    }
    return match.repo ? answer_repo(match, call) : act(match.row->action, call);
}

App::Answer App::answer_repo(const RouteMatch& match, Call& call) {
    Reply<RepoRow> repo = service_->open_repo(call.caller, *match.repo, match.row->right);
    if (repo) {
        call.repo = &*repo;
        return act(match.row->action, call);
    }
    if (repo.error().code == hub::HubErrorCode::RepoNotFound) {
        KB_TRY(const std::optional<hub::RepoId> now, service_->moved_to(call.caller, *match.repo));
        if (now) {
            return moved_response(*call.request, *match.repo, *now);
        }
    }
    return std::move(repo).error();
}

// NOLINTNEXTLINE(readability-function-size): a table of one line an action
App::Answer App::act(Action action, Call& call) {
    switch (action) {
    case Action::health:
    case Action::auth_check:
        return ok_response();
    case Action::whoami:
        return whoami(call);
    case Action::validate_yaml:
        return json_response(Node::table({{"errors", Node::array()}, {"warnings", Node::array()}}));
    case Action::create_repo:
        return create_repo(call);
    case Action::delete_repo:
        return delete_repo(call);
    case Action::move_repo:
        return move_repo(call);
    case Action::list_repos:
        return list_repos(call);
    case Action::owner_overview:
        return owner_overview(call);
    case Action::put_object:
        return put_object(call);
    case Action::put_part:
        return put_part(call);
    case Action::complete_object:
        return complete_object(call);
    case Action::get_object:
        return get_object(call);
    case Action::verify_object:
        return verify_object(call);
    case Action::repo_info:
        return repo_info(call);
    case Action::refs:
        return refs(call);
    case Action::tree:
        return tree(call);
    case Action::paths_info:
        return paths_info(call);
    case Action::commits:
        return commits(call);
    case Action::create_branch:
        return create_branch(call);
    case Action::delete_branch: {
        KB_TRY(service_->delete_branch(call.caller, *call.repo, call.parameter("name")));
        return ok_response();
    }
    case Action::create_tag:
        return create_tag(call);
    case Action::delete_tag: {
        KB_TRY(service_->delete_tag(call.caller, *call.repo, call.parameter("rev")));
        return ok_response();
    }
    case Action::preupload:
        return preupload(call);
    case Action::commit:
        return commit(call);
    case Action::settings:
        return settings(call);
    case Action::lfs_batch:
        return lfs_batch(call);
    case Action::lfs_verify:
        return lfs_verify(call);
    case Action::discussions:
        return discussions(call);
    case Action::discussion:
        return discussion(call);
    case Action::open_discussion:
        return open_discussion(call);
    case Action::xet_write_token:
        return write_token(call);
    case Action::put_xorb:
        return put_xorb(call);
    case Action::put_shard:
        return put_shard(call);
    case Action::resolve:
        return resolve(call);
    case Action::raw:
        return raw(call);
    case Action::index_page:
        return index_page(call);
    case Action::repo_page:
        return repo_page(call);
    }
    return hub::HubStatus{.http = 500, .message = "a route has no action"};
}

} // namespace kb::registry
