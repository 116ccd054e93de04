// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "document/node.hpp"
#include "http/message.hpp"
#include "registry/rate_limit.hpp"
#include "registry/routes.hpp"
#include "registry/service.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kb::registry {

struct AppOptions {
    /// Base of all addresses in answers, without a '/' at the end.
    std::string base_url{};
    /// Told of each failure that is ours, in one line; the client only learns that there was one.
    /// Called from several threads; may be empty.
    std::function<void(const std::string&)> on_failure{};
};

/// The border between HTTP and the service: authenticates, routes, checks the right, turns JSON
/// into values and values into JSON and headers.
class App : public http::RequestHandler {
public:
    App(Service& service, AppOptions options) : service_{&service}, options_{std::move(options)} {}

    http::ServerResponse handle(http::ServerRequest& request) override;

private:
    /// One request after routing.
    struct Call {
        http::ServerRequest* request = nullptr;
        Caller caller{};
        Parameters parameters{};
        Parameters query{};
        /// In the areas of a repository.
        const RepoRow* repo = nullptr;

        [[nodiscard]] std::string parameter(std::string_view name) const {
            return registry::parameter(parameters, name);
        }
    };

    using Answer = Reply<http::ServerResponse>;

    /// What all objects of a batch request share.
    struct BatchKind {
        hub::LfsOperation operation = hub::LfsOperation::upload;
        /// The client can send an object in parts.
        bool in_parts = false;
    };

    Answer answer(http::ServerRequest& request, http::Headers& extra);
    /// Counts the request; 429 when it is one too many. `extra` gets what the client shall know.
    Reply<Done>
    limit(const http::ServerRequest& request, const Caller& caller, http::Headers& extra);
    Answer answer_repo(const RouteMatch& match, Call& call);
    Answer act(Action action, Call& call);
    http::ServerResponse failure(const http::ServerRequest& request, hub::HubStatus status);

    Answer whoami(const Call& call);
    Answer create_repo(const Call& call);
    Answer move_repo(const Call& call);
    Answer delete_repo(const Call& call);
    Answer list_repos(const Call& call);
    Answer owner_overview(const Call& call);
    Answer repo_info(const Call& call);
    Answer refs(const Call& call);
    Answer tree(const Call& call);
    Answer paths_info(const Call& call);
    Answer commits(const Call& call);
    Answer create_branch(const Call& call);
    Answer create_tag(const Call& call);
    Answer settings(const Call& call);
    Answer preupload(const Call& call);
    Answer commit(const Call& call);
    Answer lfs_batch(const Call& call);
    Answer lfs_verify(const Call& call);
    Answer put_object(const Call& call);
    Answer put_part(const Call& call);
    Answer complete_object(const Call& call);
    Answer verify_object(const Call& call);
    Answer get_object(const Call& call);
    Answer discussions(const Call& call);
    Answer discussion(const Call& call);
    Answer open_discussion(const Call& call);
    Answer write_token(const Call& call);
    Answer put_xorb(const Call& call);
    Answer put_shard(const Call& call);
    Answer resolve(const Call& call);
    Answer raw(const Call& call);
    Answer index_page(const Call& call);
    Answer repo_page(const Call& call);

    [[nodiscard]] std::string url_of(const RepoRow& repo) const;
    [[nodiscard]] std::string object_url(const UploadGrant& grant, std::string_view purpose) const;
    [[nodiscard]] hub::LfsAction multipart_action(const UploadGrant& grant,
                                                  std::uint64_t part_bytes) const;
    Reply<UploadGrant> grant_of(const Call& call, std::string_view purpose);
    [[nodiscard]] std::string xet_token(const UploadGrant& grant) const;
    /// 401 unless the request carries a token that xet_token() made and that has not ended.
    Reply<UploadGrant> xet_grant(const http::ServerRequest& request);
    Reply<Caller> xet_caller(const http::ServerRequest& request);
    Reply<Done> confirm(const RepoRow& repo, const hub::LfsObject& object);
    Reply<hub::LfsBatchItem>
    batch_item(const Call& call, const hub::LfsObject& object, const BatchKind& kind);
    http::Headers file_headers(const Call& call, const ResolvedRevision& at, const RelPath& path);

    Service* service_;
    AppOptions options_;
    RateLimiter limiter_{};
};

/// A grant names its repository by number only; the row has no name of use.
[[nodiscard]] RepoRow granted_repo(const UploadGrant& grant);
[[nodiscard]] http::ServerResponse json_response(const document::Node& json, int status = 200);
/// The body as JSON, at most 16 MiB; 400 or 413 else. An empty body is an empty object.
[[nodiscard]] Reply<document::Node> read_json(http::BodyReader& body);

} // namespace kb::registry
