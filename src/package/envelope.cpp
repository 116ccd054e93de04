// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "digest/signature.hpp"
#include "document/json.hpp"
#include "package/attestation.hpp"

#include <fmt/format.h>

namespace kb::package {

namespace {

using document::Node;

constexpr std::string_view kPayloadType = "application/vnd.in-toto+json";

std::vector<check::Finding> refused(std::string message, std::string next) {
    return {{.check = "signature",
             .subject = "envelope",
             .policy = "DSSE 1, Ed25519",
             .message = escape_control(message),
             .next_step = std::move(next)}};
}

} // namespace

std::string signed_bytes(std::string_view statement) {
    return fmt::format(
        "DSSEv1 {} {} {} {}", kPayloadType.size(), kPayloadType, statement.size(), statement);
}

std::string
write_envelope(std::string_view statement, std::string_view key_id, std::string_view signature) {
    Node signatures = Node::array();
    signatures.push(
        Node::table({{"keyid", key_id}, {"sig", digest::to_base64(as_bytes(signature))}}));
    return document::write_canonical_json(
        Node::table({{"payloadType", kPayloadType},
                     {"payload", digest::to_base64(as_bytes(statement))},
                     {"signatures", std::move(signatures)}}));
}

std::vector<check::Finding>
judge_envelope(std::string_view statement, std::string_view envelope, std::string_view public_pem) {
    const auto root = document::parse_json(envelope, {.name = "the envelope"});
    const Node* signatures = root && root->is_table() ? root->find("signatures") : nullptr;
    if (signatures == nullptr || !signatures->is_array() ||
        root->text_or("payloadType") != kPayloadType) {
        return refused("is no DSSE envelope of an in-toto statement", "sign it again");
    }
    const auto payload = digest::from_base64(root->text_or("payload"));
    if (!payload || *payload != statement) {
        return refused("is for another statement", "sign it again");
    }
    for (const Node& item : signatures->as_array()) {
        if (!item.is_table()) {
            continue;
        }
        // The key id is a hint by whoever wrote it; only the signature counts.
        const auto signature = digest::from_base64(item.text_or("sig"));
        if (!signature) {
            continue;
        }
        const Result<void> good = digest::verify(public_pem, signed_bytes(statement), *signature);
        if (good) {
            return {};
        }
        if (good.error().code == ErrorCode::corrupt) {
            return refused(fmt::format("cannot be judged by this key: {}", good.error().message),
                           "give the public key that 'sign --new-key' wrote");
        }
    }
    return refused("holds no signature by this key",
                   "ask the signer for the key, or sign it again");
}

} // namespace kb::package
