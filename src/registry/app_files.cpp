// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "hub/percent.hpp"
#include "registry/app.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace kb::registry {

using document::Node;

namespace {

constexpr std::uint64_t kMaxForm = 4UL << 20U;
constexpr std::size_t kMaxPaths = 1000;
constexpr std::size_t kHistoryPage = 100;

bool is_true(std::string_view text) {
    const std::string lower = to_lower(text);
    return lower == "true" || lower == "1";
}

/// What is named by a commit never changes; what is named by a branch must be asked again.
std::string cache_control(const RepoRow& repo, const ResolvedRevision& at) {
    if (at.ref) {
        return "no-cache";
    }
    return repo.visibility == hub::Visibility::private_ ? "private, max-age=31536000, immutable"
                                                        : "public, max-age=31536000, immutable";
}

Node entries_to_json(const std::vector<hub::TreeEntry>& entries) {
    Node list = Node::array();
    for (const hub::TreeEntry& entry : entries) {
        list.push(hub::to_json(entry));
    }
    return list;
}

/// Stock clients post a form, others JSON.
Reply<std::vector<std::string>> read_paths(const http::ServerRequest& request) {
    std::vector<std::string> paths;
    if (request.headers.text_or("Content-Type").find("json") != std::string::npos) {
        KB_TRY(const Node json, read_json(*request.body));
        const Node* list = json.find("paths");
        if (list == nullptr || !list->is_array()) {
            return hub::HubStatus{.http = 400, .message = "'paths' must be an array"};
        }
        for (const Node& item : list->as_array()) {
            if (item.is_string()) {
                paths.push_back(item.as_string());
            }
        }
    } else {
        const Result<std::string> text = http::read_all(*request.body, kMaxForm);
        if (!text) {
            return hub::HubStatus{.http = 413, .message = text.error().message};
        }
        for (auto& [name, value] : parse_form(*text)) {
            if (name == "paths") {
                paths.push_back(std::move(value));
            }
        }
    }
    if (paths.size() > kMaxPaths) {
        return hub::HubStatus{
            .http = 413, .message = fmt::format("at most {} paths can be asked for", kMaxPaths)};
    }
    return paths;
}

/// A descriptor of our own: the answer outlives the opened file.
Result<sys::UniqueFd> duplicate(int descriptor) {
    sys::UniqueFd copy{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)};
    if (!copy) {
        return error_from_errno(errno, "duplicating a descriptor");
    }
    return copy;
}

bool is_cached(const http::ServerRequest& request, const http::Headers& headers) {
    const auto known = request.headers.find("If-None-Match");
    const auto etag = headers.find("ETag");
    return known && etag && known->find(*etag) != std::string_view::npos;
}

} // namespace

RepoRow granted_repo(const UploadGrant& grant) {
    return {.key = grant.repo,
            .id = hub::RepoId::parse(hub::RepoType::models, "granted/repository").value()};
}

App::Answer App::tree(const Call& call) {
    KB_TRY(const ResolvedRevision at, service_->resolve(*call.repo, call.parameter("rev")));
    TreeQuery query{.path = call.parameter("path"),
                    .recursive = is_true(registry::parameter(call.query, "recursive")),
                    .after = registry::parameter(call.query, "cursor")};
    while (query.path.ends_with('/')) {
        query.path.pop_back();
    }
    if (const auto limit = parse_unsigned(registry::parameter(call.query, "limit"))) {
        query.limit = *limit;
    }
    Reply<TreePage> page = service_->list_tree(*call.repo, at, query);
    if (!page) {
        http::ServerResponse response = failure(*call.request, std::move(page).error());
        response.headers.set("X-Repo-Commit", at.oid.hex());
        return response;
    }
    http::ServerResponse response = json_response(entries_to_json(page->entries));
    response.headers.set("X-Repo-Commit", at.oid.hex());
    response.headers.set("Cache-Control", cache_control(*call.repo, at));
    if (page->next) {
        // By commit, so that the pages fit together whatever happens to the branch meanwhile.
        const std::string path =
            query.path.empty() ? std::string{} : "/" + hub::encode_path(query.path);
        response.headers.set(
            "Link",
            hub::write_next_link(fmt::format("{}{}/tree/{}{}?recursive={}&limit={}&cursor={}",
                                             options_.base_url,
                                             call.repo->id.api_path(),
                                             at.oid.hex(),
                                             path,
                                             query.recursive,
                                             query.limit,
                                             hub::encode_segment(*page->next))));
    }
    return response;
}

App::Answer App::paths_info(const Call& call) {
    KB_TRY(const ResolvedRevision at, service_->resolve(*call.repo, call.parameter("rev")));
    KB_TRY(const std::vector<std::string> paths, read_paths(*call.request));
    KB_TRY(const std::vector<hub::TreeEntry> entries, service_->paths_info(*call.repo, at, paths));
    return json_response(entries_to_json(entries));
}

App::Answer App::commits(const Call& call) {
    KB_TRY(const ResolvedRevision at, service_->resolve(*call.repo, call.parameter("rev")));
    std::size_t limit = kHistoryPage;
    if (const auto asked = parse_unsigned(registry::parameter(call.query, "limit"))) {
        limit = std::clamp<std::uint64_t>(*asked, 1, kHistoryPage);
    }
    KB_TRY(std::vector<hub::CommitInfo> history, service_->history(*call.repo, at, limit + 1));
    std::optional<std::string> next;
    if (history.size() > limit) {
        next = history.back().id.hex();
        history.pop_back();
    }
    Node list = Node::array();
    for (const hub::CommitInfo& info : history) {
        list.push(hub::to_json(info));
    }
    http::ServerResponse response = json_response(list);
    if (next) {
        response.headers.set("Link",
                             hub::write_next_link(fmt::format("{}{}/commits/{}?limit={}",
                                                              options_.base_url,
                                                              call.repo->id.api_path(),
                                                              *next,
                                                              limit)));
    }
    return response;
}

http::Headers App::file_headers(const Call& call, const ResolvedRevision& at, const RelPath& path) {
    // Stored pages and scripts must not run in the registry's origin.
    return {{"Content-Type", "application/octet-stream"},
            {"X-Repo-Commit", at.oid.hex()},
            {"Cache-Control", cache_control(*call.repo, at)},
            {"Content-Disposition",
             fmt::format("attachment; filename*=UTF-8''{}", hub::encode_segment(path.name()))},
            {"Content-Security-Policy", "default-src 'none'; sandbox"}};
}

App::Answer App::resolve(const Call& call) {
    KB_TRY(const ResolvedRevision at, service_->resolve(*call.repo, call.parameter("rev")));
    const std::string text = call.parameter("path");
    const Result<RelPath> path = RelPath::parse(text);
    Reply<FileContent> content =
        path ? service_->open_file(*call.repo, at, *path) : entry_not_found(text, at.oid.hex());
    if (!content) {
        http::ServerResponse response = failure(*call.request, std::move(content).error());
        // Clients remember by commit that a file is not there.
        response.headers.set("X-Repo-Commit", at.oid.hex());
        return response;
    }
    const FileRow& file = content->file;
    http::Headers headers = file_headers(call, at, *path);
    const std::string name = file.is_lfs ? file.sha256.hex() : file.oid.hex();
    headers.set("ETag", fmt::format("\"{}\"", name));
    if (file.is_lfs) {
        headers.set("X-Linked-Etag", fmt::format("\"{}\"", name));
        headers.set("X-Linked-Size", fmt::format("{}", file.size));
    }
    if (is_cached(*call.request, headers)) {
        return http::ServerResponse{.status = 304, .headers = std::move(headers), .body = {}};
    }
    if (auto* bytes = std::get_if<std::string>(&content->bytes)) {
        return http::content_response(*call.request, std::move(*bytes), std::move(headers));
    }
    const auto& opened = std::get<std::unique_ptr<sys::InputFile>>(content->bytes);
    KB_TRY(sys::UniqueFd descriptor, duplicate(opened->descriptor()));
    return http::file_response(*call.request, std::move(descriptor), file.size, std::move(headers));
}

/// What git stores: the pointer of a large file.
App::Answer App::raw(const Call& call) {
    KB_TRY(const ResolvedRevision at, service_->resolve(*call.repo, call.parameter("rev")));
    const std::string text = call.parameter("path");
    const Result<RelPath> path = RelPath::parse(text);
    if (!path) {
        return entry_not_found(text, at.oid.hex());
    }
    KB_TRY(FileContent content, service_->open_file(*call.repo, at, *path));
    if (!content.file.is_lfs) {
        return resolve(call);
    }
    const hub::LfsPointer pointer{.oid = content.file.sha256, .size = content.file.size};
    http::Headers headers = file_headers(call, at, *path);
    headers.set("ETag", fmt::format("\"{}\"", content.file.oid.hex()));
    return http::content_response(*call.request, hub::to_text(pointer), std::move(headers));
}

App::Answer App::get_object(const Call& call) {
    KB_TRY(const UploadGrant grant, grant_of(call, "get"));
    KB_TRY(const auto opened, service_->open_object(granted_repo(grant), grant.object));
    KB_TRY(sys::UniqueFd descriptor, duplicate(opened->descriptor()));
    return http::file_response(*call.request,
                               std::move(descriptor),
                               opened->size(),
                               {{"Content-Type", "application/octet-stream"},
                                {"ETag", fmt::format("\"{}\"", grant.object.oid.hex())}});
}

} // namespace kb::registry
