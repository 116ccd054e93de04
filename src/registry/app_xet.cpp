// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "registry/app.hpp"

#include <fmt/format.h>

namespace kb::registry {

using document::Node;

namespace {

/// Clients ask for another one half a minute before it ends.
constexpr std::int64_t kTokenSeconds = 3600;
constexpr std::string_view kPurpose = "xet-write";

} // namespace

/// "REPO.EXPIRES.USER.SIGNATURE": all that it allows is written in it.
std::string App::xet_token(const UploadGrant& grant) const {
    return fmt::format(
        "{}.{}.{}.{}", grant.repo, grant.expires, grant.user, service_->sign(grant, kPurpose));
}

Reply<UploadGrant> App::xet_grant(const http::ServerRequest& request) {
    const hub::HubStatus refused{.http = 401,
                                 .message = "the Xet token is not valid or not valid any more"};
    std::string_view text = request.headers.find("Authorization").value_or("");
    if (!text.starts_with("Bearer ")) {
        return refused;
    }
    text.remove_prefix(std::string_view{"Bearer "}.size());
    const std::size_t first = text.find('.');
    const std::size_t second = first == text.npos ? first : text.find('.', first + 1);
    const std::size_t last = text.rfind('.'); // a user's name may hold dots
    if (second == text.npos || last <= second) {
        return refused;
    }
    const auto repo = parse_unsigned(text.substr(0, first));
    const auto expires = parse_unsigned(text.substr(first + 1, second - first - 1));
    if (!repo || !expires || *repo > INT64_MAX || *expires > INT64_MAX) {
        return refused;
    }
    UploadGrant grant{.repo = static_cast<RepoKey>(*repo),
                      .user = std::string{text.substr(second + 1, last - second - 1)},
                      .expires = static_cast<std::int64_t>(*expires)};
    if (!service_->is_signed(grant, kPurpose, text.substr(last + 1)) ||
        grant.expires < service_->now()) {
        return refused;
    }
    return grant;
}

Reply<Caller> App::xet_caller(const http::ServerRequest& request) {
    KB_TRY(UploadGrant grant, xet_grant(request));
    return Caller{.user = std::move(grant.user)};
}

App::Answer App::write_token(const Call& call) {
    const UploadGrant grant{.repo = call.repo->key,
                            .user = call.caller.user,
                            .expires = service_->now() + kTokenSeconds};
    const std::string token = xet_token(grant);
    const std::string cas = options_.base_url + "/api/xet";
    http::ServerResponse response = json_response(
        Node::table({{"accessToken", token}, {"exp", grant.expires}, {"casUrl", cas}}));
    response.headers.set("X-Xet-Access-Token", token);
    response.headers.set("X-Xet-Token-Expiration", fmt::format("{}", grant.expires));
    response.headers.set("X-Xet-Cas-Url", cas);
    response.headers.set("Cache-Control", "no-store");
    return response;
}

App::Answer App::put_xorb(const Call& call) {
    KB_TRY(const UploadGrant grant, xet_grant(*call.request));
    KB_TRY(const hub::XetHash hash, or_bad_request(hub::XetHash::parse(call.parameter("hash"))));
    KB_TRY(const bool is_new, service_->receive_xorb(grant, hash, *call.request->body));
    return json_response(Node::table({{"was_inserted", is_new}}));
}

App::Answer App::put_shard(const Call& call) {
    KB_TRY(const UploadGrant grant, xet_grant(*call.request));
    KB_TRY(service_->receive_shard(grant, *call.request->body));
    return json_response(Node::table({{"result", 1}}));
}

} // namespace kb::registry
