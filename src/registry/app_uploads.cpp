// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "registry/app.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::registry {

using document::Node;

namespace {

/// Long enough for a large file on a slow line to begin; the transfer itself may take longer.
constexpr std::int64_t kGrantSeconds = 3600;

/// A large object on a slow line needs its later parts' addresses later.
constexpr std::uint64_t kSlowBytesPerSecond = 1UL << 20U;
constexpr std::int64_t kLongestGrant = 24 * 3600;

/// What the signature of a part's address, or of the call that ends the upload, is good for.
std::string part_purpose(std::string_view what, std::uint64_t part_bytes) {
    return fmt::format("{} of {}", what, part_bytes);
}

bool is_set(const std::string& value) {
    return !value.empty() && value != "0" && to_lower(value) != "false";
}

/// A client that offers "xet" and of the other transfers sends none: it would put every file into
/// the commit, as base64. Those that do send them are faster that way, and are left alone.
bool wants_xet(const http::ServerRequest& request, const hub::LfsBatchRequest& batch) {
    return request.headers.find("User-Agent").value_or("").starts_with("hf-hub/") &&
           std::ranges::find(batch.transfers, "xet") != batch.transfers.end();
}

http::ServerResponse lfs_response(const Node& json) {
    http::ServerResponse response = json_response(json);
    response.headers.set("Content-Type", std::string{hub::kLfsContentType});
    return response;
}

} // namespace

App::Answer App::preupload(const Call& call) {
    KB_TRY(const Node json, read_json(*call.request->body));
    KB_TRY(const hub::Preupload request, or_bad_request(hub::parse_preupload(json)));
    KB_TRY(const hub::PreuploadAnswer answer,
           service_->preupload(*call.repo, call.parameter("rev"), request));
    return json_response(hub::to_json(answer));
}

App::Answer App::commit(const Call& call) {
    const bool makes_pull = is_set(registry::parameter(call.query, "create_pr"));
    KB_TRY(const CommitResult result,
           service_->commit(call.caller,
                            *call.repo,
                            {.revision = call.parameter("rev"),
                             .create_pull = makes_pull ? CreatePull::yes : CreatePull::no},
                            *call.request->body));
    hub::CommitAnswer answer{
        .commit = result.commit,
        .url = fmt::format("{}/commit/{}", url_of(*call.repo), result.commit.hex())};
    if (result.pull) {
        answer.pull_request_url =
            fmt::format("{}/discussions/{}", url_of(*call.repo), *result.pull);
    }
    return json_response(hub::to_json(answer));
}

/// The parts' addresses are hidden in the header map, as clients of the hub expect.
hub::LfsAction App::multipart_action(const UploadGrant& grant, std::uint64_t part_bytes) const {
    const auto url = [&](const std::string& what) {
        return fmt::format("{}/api/lfs/{}/{}/{}?size={}&user={}&expires={}&part-bytes={}"
                           "&signature={}",
                           options_.base_url,
                           grant.repo,
                           grant.object.oid.hex(),
                           what,
                           grant.object.size,
                           grant.user,
                           grant.expires,
                           part_bytes,
                           service_->sign(grant, part_purpose(what, part_bytes)));
    };
    hub::LfsMultipart multipart{.chunk_size = part_bytes};
    const std::uint64_t count = hub::part_count(grant.object.size, part_bytes);
    for (std::uint64_t i = 1; i <= count; ++i) {
        multipart.part_urls.push_back(url(fmt::format("parts/{}", i)));
    }
    return {.href = url("complete"),
            .header = hub::to_header(multipart),
            .expires_in = static_cast<std::uint64_t>(grant.expires - service_->now())};
}

App::Answer App::put_part(const Call& call) {
    const auto number = parse_unsigned(call.parameter("number"));
    const auto part_bytes = parse_unsigned(registry::parameter(call.query, "part-bytes"));
    const std::string what = fmt::format("parts/{}", number.value_or(0));
    KB_TRY(const UploadGrant grant, grant_of(call, part_purpose(what, part_bytes.value_or(0))));
    KB_TRY(const std::string etag,
           service_->receive_part(grant, *part_bytes, *number, *call.request->body));
    http::ServerResponse response = json_response(Node::table());
    response.headers.set("ETag", fmt::format("\"{}\"", etag));
    return response;
}

App::Answer App::complete_object(const Call& call) {
    const auto part_bytes = parse_unsigned(registry::parameter(call.query, "part-bytes"));
    KB_TRY(const UploadGrant grant,
           grant_of(call, part_purpose("complete", part_bytes.value_or(0))));
    KB_TRY(const Node json, read_json(*call.request->body));
    KB_TRY(const hub::LfsCompletion completion, or_bad_request(hub::parse_completion(json)));
    if (completion.oid != grant.object.oid) {
        return hub::HubStatus{.http = 403, .message = "the address is for another object"};
    }
    KB_TRY(service_->complete_object(grant, *part_bytes, completion.parts));
    return lfs_response(Node::table());
}

std::string App::object_url(const UploadGrant& grant, std::string_view purpose) const {
    return fmt::format("{}/api/lfs/{}/{}{}?size={}&user={}&expires={}&signature={}",
                       options_.base_url,
                       grant.repo,
                       grant.object.oid.hex(),
                       purpose == "verify" ? "/verify" : "",
                       grant.object.size,
                       grant.user,
                       grant.expires,
                       service_->sign(grant, purpose));
}

/// Clients send no token to these addresses: the signature is the right, for one purpose, one
/// object of one repository and a limited time.
Reply<UploadGrant> App::grant_of(const Call& call, std::string_view purpose) {
    const hub::HubStatus refused{.http = 403,
                                 .message = "the address is not valid or not valid any more"};
    const auto number = [&call](std::string_view name) {
        return parse_unsigned(registry::parameter(call.query, name));
    };
    const auto repo = parse_unsigned(call.parameter("repo"));
    const Result<digest::Digest> oid = digest::Digest::from_hex(call.parameter("oid"));
    const auto size = number("size");
    const auto expires = number("expires");
    if (!repo || !oid || !size || !expires || *repo > INT64_MAX || *expires > INT64_MAX) {
        return refused;
    }
    UploadGrant grant{.repo = static_cast<RepoKey>(*repo),
                      .object = {.oid = *oid, .size = *size},
                      .user = registry::parameter(call.query, "user"),
                      .expires = static_cast<std::int64_t>(*expires)};
    const std::string signature = registry::parameter(call.query, "signature");
    if (!service_->is_signed(grant, purpose, signature) || grant.expires < service_->now()) {
        return refused;
    }
    return grant;
}

App::Answer App::put_object(const Call& call) {
    KB_TRY(const UploadGrant grant, grant_of(call, "put"));
    KB_TRY(service_->receive_object(grant, *call.request->body));
    http::ServerResponse response = json_response(Node::table());
    response.headers.set("ETag", fmt::format("\"{}\"", grant.object.oid.hex()));
    return response;
}

Reply<hub::LfsBatchItem>
App::batch_item(const Call& call, const hub::LfsObject& object, const BatchKind& kind) {
    const hub::LfsOperation operation = kind.operation;
    hub::LfsBatchItem item{.object = object};
    KB_TRY(const bool is_present,
           service_->has_object(call.repo->key,
                                object,
                                operation == hub::LfsOperation::upload ? Pin::yes : Pin::no));
    const UploadGrant grant{.repo = call.repo->key,
                            .object = object,
                            .user = call.caller.user,
                            .expires = service_->now() + kGrantSeconds};
    if (operation == hub::LfsOperation::download) {
        if (is_present) {
            item.download =
                hub::LfsAction{.href = object_url(grant, "get"), .expires_in = kGrantSeconds};
        } else {
            item.error = hub::LfsObjectError{.code = 404, .message = "the object does not exist"};
        }
        return item;
    }
    if (is_present) {
        return item;
    }
    if (object.size > service_->settings().object_bytes) {
        item.error = hub::LfsObjectError{.code = 422,
                                         .message = fmt::format("an object has at most {} bytes",
                                                                service_->settings().object_bytes)};
        return item;
    }
    const std::uint64_t part_bytes = service_->settings().part_bytes;
    if (kind.in_parts && object.size / 2 > part_bytes) {
        UploadGrant longer = grant;
        const std::uint64_t slow = object.size / kSlowBytesPerSecond;
        longer.expires += std::min(static_cast<std::int64_t>(slow), kLongestGrant - kGrantSeconds);
        item.upload = multipart_action(longer, choose_part_bytes(object.size, part_bytes));
        item.verify = hub::LfsAction{.href = object_url(longer, "verify")};
        return item;
    }
    item.upload = hub::LfsAction{.href = object_url(grant, "put"), .expires_in = kGrantSeconds};
    // Signed as well: git-lfs sends its password to the batch address only.
    item.verify = hub::LfsAction{.href = object_url(grant, "verify"), .expires_in = kGrantSeconds};
    return item;
}

App::Answer App::lfs_batch(const Call& call) {
    KB_TRY(const Node json, read_json(*call.request->body));
    const Result<hub::LfsBatchRequest> request = hub::parse_batch_request(json);
    if (!request) {
        return hub::HubStatus{.http = 422, .message = request.error().to_text()};
    }
    if (request->operation == hub::LfsOperation::upload &&
        !may_write(call.caller, call.repo->id.owner())) {
        return forbidden(call.caller);
    }
    const BatchKind kind{.operation = request->operation,
                         .in_parts = std::ranges::find(request->transfers, "multipart") !=
                                     request->transfers.end()};
    hub::LfsBatchAnswer answer;
    for (const hub::LfsObject& object : request->objects) {
        KB_TRY(hub::LfsBatchItem item, batch_item(call, object, kind));
        if (item.upload && item.upload->header.contains("chunk_size")) {
            answer.transfer = "multipart"; // smaller objects of the batch still go in one piece
        }
        answer.objects.push_back(std::move(item));
    }
    if (request->operation == hub::LfsOperation::upload && wants_xet(*call.request, *request)) {
        answer.transfer = "xet";
    }
    return lfs_response(hub::to_json(answer));
}

Reply<Done> App::confirm(const RepoRow& repo, const hub::LfsObject& object) {
    KB_TRY(const bool is_present, service_->has_object(repo.key, object, Pin::yes));
    if (!is_present) {
        return hub::HubStatus{.http = 404, .message = "the object was not uploaded"};
    }
    return Done{};
}

App::Answer App::lfs_verify(const Call& call) {
    KB_TRY(const Node json, read_json(*call.request->body));
    KB_TRY(const hub::LfsObject object, or_bad_request(hub::parse_lfs_object(json)));
    KB_TRY(confirm(*call.repo, object));
    return lfs_response(Node::table());
}

App::Answer App::verify_object(const Call& call) {
    KB_TRY(const UploadGrant grant, grant_of(call, "verify"));
    KB_TRY(const Node json, read_json(*call.request->body));
    KB_TRY(const hub::LfsObject object, or_bad_request(hub::parse_lfs_object(json)));
    if (object != grant.object) {
        return hub::HubStatus{.http = 403, .message = "the address is for another object"};
    }
    KB_TRY(confirm(granted_repo(grant), object));
    return lfs_response(Node::table());
}

} // namespace kb::registry
