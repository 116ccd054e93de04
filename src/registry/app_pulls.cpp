// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "registry/app.hpp"

#include <fmt/format.h>

namespace kb::registry {

using document::Node;

namespace {

constexpr std::size_t kMostTitle = 500;

/// A pull request as clients read a discussion: what can be said of one without merging here.
Node to_json(const PullRow& pull, const RepoRow& repo) {
    const std::string_view plural = hub::plural(repo.id.type());
    return Node::table(
        {{"num", pull.number},
         {"title", pull.title},
         {"author", Node::table({{"name", pull.author}, {"type", "user"}})},
         {"createdAt", hub::iso_time(pull.created)},
         {"status", "open"},
         {"isPullRequest", true},
         {"repo",
          Node::table({{"name", repo.id.text()}, {"type", plural.substr(0, plural.size() - 1)}})},
         {"changes", Node::table({{"base", pull.base}})},
         {"filesWithConflicts", Node::array()},
         {"events", Node::array()},
         {"diff", Node{}}});
}

} // namespace

/// Clients that send a folder as a pull request open it empty, and commit to its ref.
App::Answer App::open_discussion(const Call& call) {
    KB_TRY(const Node json, read_json(*call.request->body));
    const Node* is_pull = json.is_table() ? json.find("pullRequest") : nullptr;
    if (is_pull == nullptr || !is_pull->is(Node::Kind::boolean) || !is_pull->as_bool()) {
        return hub::HubStatus{.http = 400,
                              .message = "only pull requests are kept here, no other discussions"};
    }
    const std::string title{trim(json.text_or("title"))};
    if (title.empty() || title.size() > kMostTitle) {
        return hub::HubStatus{.http = 400,
                              .message = fmt::format("a title has 1 to {} bytes", kMostTitle)};
    }
    KB_TRY(const PullRow pull, service_->open_pull(call.caller, *call.repo, title));
    return json_response(to_json(pull, *call.repo));
}

App::Answer App::discussion(const Call& call) {
    const auto number = parse_unsigned(call.parameter("number"));
    KB_TRY(const std::optional<PullRow> pull, service_->find_pull(*call.repo, number.value_or(0)));
    if (!pull) {
        return hub::HubStatus{.http = 404, .message = "there is no such pull request"};
    }
    return json_response(to_json(*pull, *call.repo));
}

App::Answer App::discussions(const Call& call) {
    KB_TRY(const std::vector<PullRow> pulls, service_->pulls(*call.repo));
    Node rows = Node::array();
    for (const PullRow& pull : pulls) {
        rows.push(to_json(pull, *call.repo));
    }
    return json_response(
        Node::table({{"count", pulls.size()}, {"start", 0}, {"discussions", std::move(rows)}}));
}

} // namespace kb::registry
