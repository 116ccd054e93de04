// SPDX-License-Identifier: Apache-2.0
#include "upload/hub_client.hpp"

#include "base/text.hpp"
#include "document/json.hpp"
#include "hub/percent.hpp"

#include <fmt/format.h>

#include <set>

namespace kb::upload {

namespace {

using document::Node;

constexpr std::size_t kMaxPages = 10'000;
/// A registry writes and syncs everything before it answers a commit.
constexpr std::chrono::milliseconds kCommitStall{600'000};

Result<Node> parse_answer(const http::Response& response, std::string_view doing) {
    auto json = document::parse_json(response.body, {.name = "answer"});
    if (!json) {
        return std::move(json)
            .context(fmt::format("{}: the registry's answer is not what was expected", doing))
            .error();
    }
    return std::move(*json);
}

std::string oneline(const Node& node) {
    return document::write_json(node, {.indent = 0, .final_newline = false});
}

std::string_view meaning_of(int status, HasToken has_token, TokenPlace place) {
    switch (status) {
    case 401:
        if (place == TokenPlace::file) {
            return has_token == HasToken::yes
                       ? "the registry does not accept the token of --token-file"
                       : "the registry wants a token; name a file with it by --token-file "
                         "(HF_TOKEN is not sent)";
        }
        return has_token == HasToken::yes
                   ? "the registry does not accept the token; make a new one and set HF_TOKEN"
                   : "the registry wants a token; set HF_TOKEN or HF_TOKEN_PATH";
    case 403:
        return "the token may not do this; ask the owner for the right to write, or use another "
               "token";
    case 404:
        return "not found, or the token may not see it; check --repo-id, --branch and --endpoint";
    case 409:
        return "the registry is busy with another change of the same thing, or the name is taken";
    case 412:
        return "somebody else committed in the meantime; run the same command again";
    case 413:
        return "too large for this registry; its administrator sets the limit";
    case 429:
        return "too many requests; wait and run the same command again, it goes on from here";
    case 507:
        return "the registry has no space left or the quota is used up; nothing was published";
    default:
        return status >= 500 ? "the registry failed; run the same command again, it goes on from "
                               "here"
                             : "the registry refused the request";
    }
}

ErrorCode code_of(int status) {
    if (status == 401 || status == 403 || status == 413 || status == 507) {
        return ErrorCode::denied;
    }
    if (status == 404) {
        return ErrorCode::not_found;
    }
    return status == 429 || status >= 500 ? ErrorCode::transient : ErrorCode::corrupt;
}

} // namespace

Error explain_status(const hub::HubStatus& status,
                     std::string_view doing,
                     HasToken has_token,
                     TokenPlace place) {
    std::string text = fmt::format(
        "{} failed: {} (status {}", doing, meaning_of(status.http, has_token, place), status.http);
    if (!status.message.empty()) {
        text += fmt::format(", the registry says: {}", status.message);
    }
    return Error{.code = code_of(status.http), .message = text + ")"};
}

Error HubClient::explain(const http::Response& response, std::string_view doing) const {
    const hub::HubStatus status =
        hub::parse_status(response.status,
                          response.headers.text_or("X-Error-Code"),
                          http::without_secret(response.headers.text_or("X-Error-Message"), token_),
                          http::without_secret(response.body, token_));
    Error error =
        explain_status(status, doing, has_token() ? HasToken::yes : HasToken::no, token_place_);
    if (const auto id = response.headers.find("X-Request-Id")) {
        error.message += fmt::format(" [request {}]", escape_control(id->substr(0, 80)));
    }
    return error;
}

http::Request HubClient::request(http::Method method, const http::Url& url) const {
    return {.method = method, .url = url, .bearer = token_};
}

http::Url HubClient::web_url(std::string_view tail) const {
    return endpoint_.below(repo_.web_path() + std::string{tail});
}

Result<http::Response>
HubClient::send_json(http::Method method, std::string_view path, const Node& body) const {
    http::Request message = request(method, endpoint_.below(path));
    message.headers.add("Content-Type", "application/json");
    message.body = oneline(body);
    return retrier_->send(message);
}

Result<std::optional<hub::Refs>> HubClient::read_refs() const {
    constexpr std::string_view kDoing = "listing the branches";
    const auto url = endpoint_.below(repo_.api_path() + "/refs");
    KB_TRY(const http::Response response, retrier_->send(request(http::Method::get, url)));
    if (response.status == 404) {
        return std::optional<hub::Refs>{};
    }
    if (!response.ok()) {
        return explain(response, kDoing);
    }
    KB_TRY(const Node json, parse_answer(response, kDoing));
    KB_TRY(hub::Refs refs, hub::parse_refs(json));
    return std::optional{std::move(refs)};
}

Result<hub::Refs> HubClient::read_refs_with_pull_requests() const {
    constexpr std::string_view kDoing = "listing the pull requests";
    const auto url = endpoint_.below(repo_.api_path() + "/refs?include_prs=1");
    KB_TRY(const http::Response response, retrier_->send(request(http::Method::get, url)));
    if (!response.ok()) {
        return explain(response, kDoing);
    }
    KB_TRY(const Node json, parse_answer(response, kDoing));
    return hub::parse_refs(json);
}

Result<RemoteTree> HubClient::read_tree(const hub::GitOid& commit) const {
    const std::string doing = fmt::format("listing the files of commit {}", commit.hex());
    http::Url url = endpoint_.below(
        fmt::format("{}/tree/{}?recursive=true&expand=false", repo_.api_path(), commit.hex()));
    std::vector<hub::TreeEntry> entries;
    std::set<std::string> seen;
    for (;;) {
        if (seen.size() == kMaxPages || !seen.insert(url.to_wire()).second) {
            return Error{.code = ErrorCode::corrupt,
                         .message = doing + " failed: its pages do not end"};
        }
        KB_TRY(const http::Response response, retrier_->send(request(http::Method::get, url)));
        if (!response.ok()) {
            return explain(response, doing);
        }
        KB_TRY(const Node json, parse_answer(response, doing));
        KB_TRY(std::vector<hub::TreeEntry> page, hub::parse_tree_page(json).context(doing));
        entries.insert(entries.end(),
                       std::make_move_iterator(page.begin()),
                       std::make_move_iterator(page.end()));
        const auto next = hub::next_link(response.headers.text_or("Link"));
        if (!next) {
            return make_remote_tree(commit, entries);
        }
        KB_TRY(http::Url target, url.resolve(*next));
        // A registry behind a proxy may call itself by another name; the token goes only to ours.
        url = target.has_origin_of(endpoint_)
                  ? std::move(target)
                  : endpoint_.below(fmt::format(
                        "{}/tree/{}?{}", repo_.api_path(), commit.hex(), target.query()));
    }
}

std::string HubClient::describe_commit(const hub::GitOid& commit) const {
    const auto url =
        endpoint_.below(fmt::format("{}/commits/{}?limit=1", repo_.api_path(), commit.hex()));
    const auto response = retrier_->client->send(request(http::Method::get, url));
    if (!response || !response->ok()) {
        return {};
    }
    const auto json = document::parse_json(response->body, {.name = "answer"});
    if (!json || !json->is_array() || json->as_array().empty()) {
        return {};
    }
    const Node& row = json->as_array().front();
    std::string text = fmt::format("'{}'", escape_control(row.text_or("title")));
    const Node* authors = row.find("authors");
    if (authors != nullptr && authors->is_array() && !authors->as_array().empty()) {
        text +=
            fmt::format(" by '{}'", escape_control(authors->as_array().front().text_or("user")));
    }
    return text;
}

Result<void> HubClient::create_repo(hub::Visibility visibility) const {
    const hub::CreateRepo body{.type = repo_.type(),
                               .name = repo_.name(),
                               .organization = repo_.owner(),
                               .visibility = visibility};
    KB_TRY(const http::Response response,
           send_json(http::Method::post, "/api/repos/create", hub::to_json(body)));
    if (response.ok() || response.status == 409) {
        return {};
    }
    return explain(response, fmt::format("creating repository '{}'", repo_.text()));
}

Result<bool> HubClient::create_branch(const std::string& branch) const {
    KB_TRY(const http::Response response,
           send_json(http::Method::post,
                     fmt::format("{}/branch/{}", repo_.api_path(), hub::encode_segment(branch)),
                     Node::table()));
    if (response.ok() || response.status == 409) {
        return response.ok();
    }
    return explain(response, fmt::format("creating branch '{}'", branch));
}

Result<hub::PreuploadAnswer> HubClient::preupload(const std::string& revision,
                                                  const hub::Preupload& body) const {
    constexpr std::string_view kDoing = "asking how each file shall travel";
    KB_TRY(
        const http::Response response,
        send_json(http::Method::post,
                  fmt::format("{}/preupload/{}", repo_.api_path(), hub::encode_segment(revision)),
                  hub::to_json(body)));
    if (!response.ok()) {
        return explain(response, kDoing);
    }
    KB_TRY(const Node json, parse_answer(response, kDoing));
    return hub::parse_preupload_answer(json).context(std::string{kDoing});
}

Result<hub::LfsBatchAnswer> HubClient::lfs_batch(const hub::LfsBatchRequest& body) const {
    constexpr std::string_view kDoing = "asking where large files go";
    http::Request message = request(http::Method::post, web_url(".git/info/lfs/objects/batch"));
    message.headers.add("Content-Type", std::string{hub::kLfsContentType});
    message.headers.add("Accept", std::string{hub::kLfsContentType});
    message.body = oneline(hub::to_json(body));
    KB_TRY(const http::Response response, retrier_->send(message));
    if (!response.ok()) {
        return explain(response, kDoing);
    }
    KB_TRY(const Node json, parse_answer(response, kDoing));
    return hub::parse_batch_answer(json).context(std::string{kDoing});
}

Result<void> HubClient::lfs_verify(const hub::LfsAction& verify,
                                   const hub::LfsObject& object) const {
    KB_TRY(const http::Url url, endpoint_.resolve(verify.href));
    http::Request message{.method = http::Method::post, .url = url};
    for (const auto& [name, value] : verify.header) {
        message.headers.set(name, value);
    }
    if (url.has_origin_of(endpoint_) && !message.headers.find("Authorization")) {
        message.bearer = token_;
    }
    message.headers.set("Content-Type", std::string{hub::kLfsContentType});
    message.headers.set("Accept", std::string{hub::kLfsContentType});
    message.body = oneline(hub::to_json(object));
    KB_TRY(const http::Response response, retrier_->send(message));
    return response.ok()
               ? Result<void>{}
               : explain(response, fmt::format("having object {} verified", object.oid.hex()));
}

Result<http::Response> HubClient::post_commit(const std::string& revision,
                                              std::string body,
                                              std::string_view query) const {
    std::string path = fmt::format("{}/commit/{}", repo_.api_path(), hub::encode_segment(revision));
    if (!query.empty()) {
        path += fmt::format("?{}", query);
    }
    http::Request message = request(http::Method::post, endpoint_.below(path));
    message.headers.add("Content-Type", std::string{hub::kCommitContentType});
    message.body = std::move(body);
    message.timeouts.stall = kCommitStall;
    return retrier_->client->send(message);
}

} // namespace kb::upload
