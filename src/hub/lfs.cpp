// SPDX-License-Identifier: Apache-2.0
#include "hub/lfs.hpp"

#include "base/text.hpp"
#include "hub/json_member.hpp"

#include <fmt/format.h>

namespace kb::hub {

using document::Node;

namespace {

constexpr std::size_t kMaxObjects = 1000;
constexpr std::size_t kMaxTransfers = 16;
constexpr std::size_t kMaxParts = 10'000;

Node to_json(const LfsAction& action) {
    Node json = Node::table({{"href", Node{action.href}}});
    Node header = Node::table();
    for (const auto& [name, value] : action.header) {
        header.set(name, Node{value});
    }
    json.set("header", std::move(header));
    if (action.expires_in) {
        json.set("expires_in", Node{*action.expires_in});
    }
    return json;
}

/// {"href": "...", "header": {...}, "expires_in": 600}
Result<LfsAction> parse_action(const Node& json) {
    KB_TRY(require_table(json, "an LFS action"));
    LfsAction action;
    KB_TRY(action.href, string_member(json, "href"));
    if (const Node* header = json.find("header"); header != nullptr && header->is_table()) {
        for (const document::Entry& entry : header->entries()) {
            // One server writes the numbers of a multipart header as numbers.
            if (entry.value.is_string()) {
                action.header.emplace(entry.key, entry.value.as_string());
            } else if (entry.value.is_unsigned()) {
                action.header.emplace(entry.key, fmt::format("{}", entry.value.as_unsigned()));
            }
        }
    }
    if (const Node* expires = json.find("expires_in");
        expires != nullptr && expires->is_unsigned()) {
        action.expires_in = expires->as_unsigned();
    }
    return action;
}

Result<std::optional<LfsAction>> optional_action(const Node& actions, std::string_view name) {
    const Node* json = actions.find(name);
    if (json == nullptr || !json->is_table()) {
        return std::optional<LfsAction>{};
    }
    KB_TRY(LfsAction action,
           parse_action(*json).context(fmt::format("reading the action '{}'", name)));
    return std::optional{std::move(action)};
}

Result<LfsBatchItem> parse_item(const Node& json) {
    LfsBatchItem item;
    KB_TRY(item.object, parse_lfs_object(json));
    if (const Node* actions = json.find("actions"); actions != nullptr && actions->is_table()) {
        KB_TRY(item.upload, optional_action(*actions, "upload"));
        KB_TRY(item.download, optional_action(*actions, "download"));
        KB_TRY(item.verify, optional_action(*actions, "verify"));
    }
    if (const Node* error = json.find("error"); error != nullptr && error->is_table()) {
        KB_TRY(const std::uint64_t code, unsigned_member(*error, "code"));
        item.error = LfsObjectError{.code = static_cast<int>(std::min<std::uint64_t>(code, 999)),
                                    .message = escape_control(error->text_or("message"))};
    }
    return item;
}

Node to_json(const LfsBatchItem& item) {
    Node json = to_json(item.object);
    Node actions = Node::table();
    const auto add = [&](std::string_view name, const std::optional<LfsAction>& action) {
        if (action) {
            actions.set(name, to_json(*action));
        }
    };
    add("upload", item.upload);
    add("download", item.download);
    add("verify", item.verify);
    if (!actions.entries().empty()) {
        json.set("authenticated", Node{true});
        json.set("actions", std::move(actions));
    }
    if (item.error) {
        json.set("error",
                 Node::table(
                     {{"code", Node{item.error->code}}, {"message", Node{item.error->message}}}));
    }
    return json;
}

} // namespace

Node to_json(const LfsObject& object) {
    return Node::table({{"oid", Node{object.oid.hex()}}, {"size", Node{object.size}}});
}

Result<LfsObject> parse_lfs_object(const Node& json) {
    KB_TRY(require_table(json, "an LFS object"));
    LfsObject object;
    KB_TRY(object.oid, sha256_member(json, "oid"));
    KB_TRY(object.size, unsigned_member(json, "size"));
    return object;
}

Node to_json(const LfsBatchRequest& request) {
    Node json = Node::table(
        {{"operation", Node{request.operation == LfsOperation::upload ? "upload" : "download"}},
         {"transfers", Node::strings(request.transfers)}});
    Node objects = Node::array();
    for (const LfsObject& object : request.objects) {
        objects.push(to_json(object));
    }
    json.set("objects", std::move(objects));
    json.set("hash_algo", Node{"sha256"});
    if (request.ref) {
        json.set("ref", Node::table({{"name", Node{*request.ref}}}));
    }
    return json;
}

Result<LfsBatchRequest> parse_batch_request(const Node& json) {
    KB_TRY(require_table(json, "an LFS batch request"));
    LfsBatchRequest request;
    KB_TRY(const std::string operation, string_member(json, "operation"));
    if (operation != "upload" && operation != "download") {
        return Error{.code = ErrorCode::corrupt,
                     .message = "member 'operation' must be 'upload' or 'download'"};
    }
    request.operation = operation == "upload" ? LfsOperation::upload : LfsOperation::download;
    // Two spellings of one algorithm are in use.
    if (const auto algo = optional_text(json, "hash_algo");
        algo && *algo != "sha256" && *algo != "sha_256") {
        return Error{.code = ErrorCode::unsupported,
                     .message = "member 'hash_algo' must be 'sha256'"};
    }
    if (json.find("transfers") != nullptr) {
        KB_TRY(const Node* transfers, array_member(json, "transfers", kMaxTransfers));
        for (const Node& item : transfers->as_array()) {
            if (item.is_string()) {
                request.transfers.push_back(item.as_string());
            }
        }
    }
    KB_TRY(const Node* objects, array_member(json, "objects", kMaxObjects));
    for (const Node& item : objects->as_array()) {
        KB_TRY(request.objects.emplace_back(), parse_lfs_object(item));
    }
    if (const Node* ref = json.find("ref"); ref != nullptr && ref->is_table()) {
        request.ref = optional_text(*ref, "name");
    }
    return request;
}

Node to_json(const LfsBatchAnswer& answer) {
    Node objects = Node::array();
    for (const LfsBatchItem& item : answer.objects) {
        objects.push(to_json(item));
    }
    return Node::table({{"transfer", Node{answer.transfer}}, {"objects", std::move(objects)}});
}

Result<LfsBatchAnswer> parse_batch_answer(const Node& json) {
    KB_TRY(require_table(json, "an LFS batch answer"));
    LfsBatchAnswer answer;
    if (const auto transfer = optional_text(json, "transfer")) {
        answer.transfer = *transfer;
    }
    KB_TRY(const Node* objects, array_member(json, "objects", kMaxObjects));
    for (const Node& item : objects->as_array()) {
        KB_TRY(answer.objects.emplace_back(), parse_item(item));
    }
    return answer;
}

std::uint64_t part_count(std::uint64_t size, std::uint64_t chunk_size) {
    return chunk_size == 0 ? 0 : size / chunk_size + (size % chunk_size == 0 ? 0 : 1);
}

std::map<std::string, std::string> to_header(const LfsMultipart& multipart) {
    std::map<std::string, std::string> header{
        {"chunk_size", fmt::format("{}", multipart.chunk_size)}};
    for (std::size_t i = 0; i < multipart.part_urls.size(); ++i) {
        header.emplace(fmt::format("{:05}", i + 1), multipart.part_urls[i]);
    }
    return header;
}

Result<LfsMultipart> parse_multipart(const LfsAction& upload, std::uint64_t size) {
    const auto bad = [](std::string why) {
        return Error{.code = ErrorCode::corrupt,
                     .message = "the multipart header of an LFS action " + std::move(why)};
    };
    const auto chunk = upload.header.find("chunk_size");
    const auto chunk_size =
        chunk == upload.header.end() ? std::nullopt : parse_unsigned(chunk->second);
    if (!chunk_size || *chunk_size == 0) {
        return bad("has no usable 'chunk_size'");
    }
    std::map<std::uint64_t, std::string> parts;
    for (const auto& [name, value] : upload.header) {
        if (const auto number = parse_unsigned(name)) {
            if (!parts.emplace(*number, value).second) {
                return bad(fmt::format("names part {} twice", *number));
            }
        }
    }
    const std::uint64_t expected = part_count(size, *chunk_size);
    if (expected > kMaxParts || parts.size() != expected) {
        return bad(fmt::format("lists {} parts where {} are needed", parts.size(), expected));
    }
    LfsMultipart multipart{.chunk_size = *chunk_size};
    for (auto& [number, url] : parts) {
        if (number != multipart.part_urls.size() + 1) {
            return bad(fmt::format("lacks part {}", multipart.part_urls.size() + 1));
        }
        multipart.part_urls.push_back(std::move(url));
    }
    return multipart;
}

Node to_json(const LfsCompletion& completion) {
    Node parts = Node::array();
    for (const LfsPart& part : completion.parts) {
        parts.push(Node::table({{"partNumber", Node{part.number}}, {"etag", Node{part.etag}}}));
    }
    return Node::table({{"oid", Node{completion.oid.hex()}}, {"parts", std::move(parts)}});
}

Result<LfsCompletion> parse_completion(const Node& json) {
    KB_TRY(require_table(json, "the end of a multipart upload"));
    LfsCompletion completion;
    KB_TRY(completion.oid, sha256_member(json, "oid"));
    KB_TRY(const Node* parts, array_member(json, "parts", kMaxParts));
    for (const Node& item : parts->as_array()) {
        KB_TRY(require_table(item, "a part"));
        LfsPart part;
        KB_TRY(part.number, unsigned_member(item, "partNumber"));
        KB_TRY(part.etag, string_member(item, "etag"));
        completion.parts.push_back(std::move(part));
    }
    return completion;
}

} // namespace kb::hub
