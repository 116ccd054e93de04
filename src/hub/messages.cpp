// SPDX-License-Identifier: Apache-2.0
#include "hub/messages.hpp"

#include "base/text.hpp"
#include "hub/json_member.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::hub {

using document::Node;

namespace {

constexpr std::size_t kMaxRefs = 100'000;
constexpr std::size_t kMaxPreupload = 10'000;
constexpr std::size_t kMaxSample = 4096;

Node to_json(const Ref& ref) {
    return Node::table({{"name", Node{ref.name}},
                        {"ref", Node{ref.ref}},
                        {"targetCommit", Node{ref.target.hex()}}});
}

Node refs_to_json(const std::vector<Ref>& refs) {
    Node list = Node::array();
    for (const Ref& ref : refs) {
        list.push(to_json(ref));
    }
    return list;
}

Result<std::vector<Ref>> parse_ref_list(const Node& json, std::string_view key) {
    KB_TRY(const Node* list, array_member(json, key, kMaxRefs));
    std::vector<Ref> refs;
    for (const Node& item : list->as_array()) {
        KB_TRY(require_table(item, "a ref"));
        Ref ref;
        KB_TRY(ref.name, string_member(item, "name"));
        KB_TRY(ref.ref, string_member(item, "ref"));
        KB_TRY(ref.target, sha1_member(item, "targetCommit"));
        refs.push_back(std::move(ref));
    }
    return refs;
}

/// Days since 1970-01-01 to year, month, day (proleptic Gregorian calendar, shifted to March).
struct Date {
    std::int64_t year = 0;
    std::int64_t month = 0;
    std::int64_t day = 0;
};

Date date_of_days(std::int64_t days) {
    days += 719'468; // days from 0000-03-01
    const std::int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
    const std::int64_t of_era = days - era * 146'097;
    const std::int64_t year_of_era =
        (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
    const std::int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const std::int64_t shifted = (5 * of_year + 2) / 153;
    const std::int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
    return {.year = year_of_era + era * 400 + (month <= 2 ? 1 : 0),
            .month = month,
            .day = of_year - (153 * shifted + 2) / 5 + 1};
}

Result<PreuploadVerdict> parse_verdict(const Node& item) {
    KB_TRY(require_table(item, "a preupload verdict"));
    PreuploadVerdict verdict;
    KB_TRY(verdict.path, path_member(item, "path"));
    KB_TRY(const std::string mode, string_member(item, "uploadMode"));
    if (mode != "lfs" && mode != "regular") {
        return Error{.code = ErrorCode::corrupt,
                     .message =
                         fmt::format("upload mode '{}' of '{}' is unknown, expected 'lfs' or "
                                     "'regular'",
                                     escape_control(mode),
                                     verdict.path.text())};
    }
    verdict.mode = mode == "lfs" ? UploadMode::lfs : UploadMode::regular;
    const Node* ignore = item.find("shouldIgnore");
    verdict.should_ignore =
        ignore != nullptr && ignore->is(Node::Kind::boolean) && ignore->as_bool();
    verdict.remote_oid = optional_text(item, "oid");
    return verdict;
}

} // namespace

Node to_json(const CreateRepo& request) {
    Node json = Node::table(
        {{"type", Node{singular(request.type)}},
         {"name", Node{request.name}},
         {"organization", request.organization ? Node{*request.organization} : Node{}}});
    if (request.visibility == Visibility::private_) {
        json.set("visibility", Node{"private"});
        json.set("private", Node{true}); // older servers know this member only
    }
    return json;
}

Result<CreateRepo> parse_create_repo(const Node& json) {
    KB_TRY(require_table(json, "the request"));
    CreateRepo request;
    KB_TRY(request.name, string_member(json, "name"));
    request.organization = optional_text(json, "organization");
    // Old clients send "owner/name" in the name.
    if (const std::size_t slash = request.name.find('/');
        slash != std::string::npos && !request.organization) {
        request.organization = request.name.substr(0, slash);
        request.name = request.name.substr(slash + 1);
    }
    if (const auto type = optional_text(json, "type")) {
        const auto known = parse_repo_type(*type);
        if (!known) {
            return Error{.code = ErrorCode::corrupt,
                         .message =
                             "member 'type' must be 'model', 'dataset', 'space' or 'kernel'"};
        }
        request.type = *known;
    }
    const Node* flag = json.find("private");
    const bool is_private = flag != nullptr && flag->is(Node::Kind::boolean) && flag->as_bool();
    const auto visibility = optional_text(json, "visibility");
    if (visibility && *visibility != "private" && *visibility != "public") {
        return Error{.code = ErrorCode::corrupt,
                     .message = "member 'visibility' must be 'public' or 'private'"};
    }
    if (is_private || visibility == "private") {
        request.visibility = Visibility::private_;
    }
    return request;
}

const Ref* Refs::branch(std::string_view name) const {
    const auto found = std::ranges::find(branches, name, &Ref::name);
    return found == branches.end() ? nullptr : &*found;
}

Node to_json(const Refs& refs) {
    Node json = Node::table({{"branches", refs_to_json(refs.branches)},
                             {"converts", Node::array()},
                             {"tags", refs_to_json(refs.tags)}});
    if (refs.pull_requests) {
        json.set("pullRequests", refs_to_json(*refs.pull_requests));
    }
    return json;
}

Result<Refs> parse_refs(const Node& json) {
    KB_TRY(require_table(json, "the list of refs"));
    Refs refs;
    KB_TRY(refs.branches, parse_ref_list(json, "branches"));
    if (json.find("tags") != nullptr) {
        KB_TRY(refs.tags, parse_ref_list(json, "tags"));
    }
    if (const Node* pulls = json.find("pullRequests"); pulls != nullptr && pulls->is_array()) {
        KB_TRY(refs.pull_requests, parse_ref_list(json, "pullRequests"));
    }
    return refs;
}

Node to_json(const Preupload& request) {
    Node files = Node::array();
    for (const PreuploadFile& file : request.files) {
        files.push(Node::table({{"path", Node{file.path.text()}},
                                {"size", Node{file.size}},
                                {"sample", Node{digest::to_base64(as_bytes(file.sample))}}}));
    }
    return Node::table({{"files", std::move(files)}});
}

Result<Preupload> parse_preupload(const Node& json) {
    KB_TRY(require_table(json, "the request"));
    KB_TRY(const Node* files, array_member(json, "files", kMaxPreupload));
    Preupload request;
    for (const Node& item : files->as_array()) {
        KB_TRY(require_table(item, "a file"));
        PreuploadFile file;
        KB_TRY(file.path, path_member(item, "path"));
        KB_TRY(file.size, unsigned_member(item, "size"));
        if (const auto sample = optional_text(item, "sample");
            sample && sample->size() <= kMaxSample) {
            KB_TRY(file.sample, digest::from_base64(*sample).context("reading member 'sample'"));
        }
        request.files.push_back(std::move(file));
    }
    return request;
}

Node to_json(const PreuploadAnswer& answer) {
    Node files = Node::array();
    for (const PreuploadVerdict& verdict : answer.files) {
        Node json =
            Node::table({{"path", Node{verdict.path.text()}},
                         {"uploadMode", Node{verdict.mode == UploadMode::lfs ? "lfs" : "regular"}},
                         {"shouldIgnore", Node{verdict.should_ignore}}});
        if (verdict.remote_oid) {
            json.set("oid", Node{*verdict.remote_oid});
        }
        files.push(std::move(json));
    }
    return Node::table({{"files", std::move(files)}});
}

Result<PreuploadAnswer> parse_preupload_answer(const Node& json) {
    KB_TRY(require_table(json, "the preupload answer"));
    KB_TRY(const Node* files, array_member(json, "files", kMaxPreupload));
    PreuploadAnswer answer;
    for (const Node& item : files->as_array()) {
        KB_TRY(PreuploadVerdict verdict, parse_verdict(item));
        answer.files.push_back(std::move(verdict));
    }
    return answer;
}

Node to_json(const CommitAnswer& answer) {
    Node json = Node::table({{"success", Node{true}},
                             {"commitOid", Node{answer.commit.hex()}},
                             {"commitUrl", Node{answer.url}},
                             {"hookOutput", Node{""}}});
    if (answer.pull_request_url) {
        json.set("pullRequestUrl", Node{*answer.pull_request_url});
    }
    return json;
}

Result<CommitAnswer> parse_commit_answer(const Node& json) {
    KB_TRY(require_table(json, "the answer to a commit"));
    CommitAnswer answer;
    KB_TRY(answer.commit, sha1_member(json, "commitOid"));
    answer.url = json.text_or("commitUrl");
    answer.pull_request_url = optional_text(json, "pullRequestUrl");
    return answer;
}

Node to_json(const CommitInfo& info) {
    Node authors = Node::array();
    for (const std::string& author : info.authors) {
        authors.push(Node::table({{"user", Node{author}}, {"avatar", Node{""}}}));
    }
    return Node::table({{"id", Node{info.id.hex()}},
                        {"title", Node{info.title}},
                        {"message", Node{info.message}},
                        {"authors", std::move(authors)},
                        {"date", Node{iso_time(info.time)}}});
}

Node to_json(const WhoAmI& who) {
    Node orgs = Node::array();
    for (const std::string& name : who.organizations) {
        orgs.push(Node::table({{"type", Node{"org"}},
                               {"name", Node{name}},
                               {"fullname", Node{name}},
                               {"avatarUrl", Node{""}},
                               {"isEnterprise", Node{false}},
                               {"roleInOrg", Node{who.role}}}));
    }
    Node access = Node::table({{"displayName", Node{who.name}}, {"role", Node{who.role}}});
    return Node::table(
        {{"type", Node{"user"}},
         {"id", Node{who.name}},
         {"name", Node{who.name}},
         {"fullname", Node{who.name}},
         {"email", Node{}},
         {"emailVerified", Node{false}},
         {"avatarUrl", Node{""}},
         {"isPro", Node{false}},
         {"canPay", Node{false}},
         {"orgs", std::move(orgs)},
         {"auth",
          Node::table({{"type", Node{"access_token"}}, {"accessToken", std::move(access)}})}});
}

Result<WhoAmI> parse_whoami(const Node& json) {
    KB_TRY(require_table(json, "the answer to whoami"));
    WhoAmI who;
    KB_TRY(who.name, string_member(json, "name"));
    if (const Node* auth = json.find("auth"); auth != nullptr) {
        if (const Node* access = auth->find("accessToken"); access != nullptr) {
            who.role = access->text_or("role");
        }
    }
    if (const Node* orgs = json.find("orgs"); orgs != nullptr && orgs->is_array()) {
        for (const Node& org : orgs->as_array()) {
            if (const auto name = optional_text(org, "name")) {
                who.organizations.push_back(*name);
            }
        }
    }
    return who;
}

std::string iso_time(std::int64_t seconds) {
    constexpr std::int64_t kDay = 86'400;
    const std::int64_t days = (seconds >= 0 ? seconds : seconds - kDay + 1) / kDay;
    const std::int64_t rest = seconds - days * kDay;
    const Date date = date_of_days(days);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.000Z",
                       date.year,
                       date.month,
                       date.day,
                       rest / 3600,
                       rest / 60 % 60,
                       rest % 60);
}

} // namespace kb::hub
