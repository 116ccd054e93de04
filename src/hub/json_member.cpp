// SPDX-License-Identifier: Apache-2.0
#include "hub/json_member.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

namespace kb::hub {

using document::Node;

namespace {

Error wrong(std::string_view key, std::string_view expected) {
    return {.code = ErrorCode::corrupt,
            .message = fmt::format("member '{}' must be {}", key, expected)};
}

} // namespace

Result<void> require_table(const Node& json, std::string_view what) {
    if (!json.is_table()) {
        return Error{.code = ErrorCode::corrupt,
                     .message =
                         fmt::format("{} must be a JSON object, not {}", what, json.kind_text())};
    }
    return {};
}

Result<std::string> string_member(const Node& json, std::string_view key) {
    const Node* node = json.find(key);
    if (node == nullptr || !node->is_string()) {
        return wrong(key, "a string");
    }
    return node->as_string();
}

Result<std::uint64_t> unsigned_member(const Node& json, std::string_view key) {
    const Node* node = json.find(key);
    if (node == nullptr || !node->is_unsigned()) {
        return wrong(key, "a whole number that is not negative");
    }
    return node->as_unsigned();
}

Result<RelPath> path_member(const Node& json, std::string_view key) {
    KB_TRY(const std::string text, string_member(json, key));
    return RelPath::parse(text);
}

Result<digest::Digest> sha256_member(const Node& json, std::string_view key) {
    KB_TRY(const std::string text, string_member(json, key));
    return digest::Digest::from_hex(text).context(fmt::format("reading member '{}'", key));
}

Result<digest::Sha1Digest> sha1_member(const Node& json, std::string_view key) {
    KB_TRY(const std::string text, string_member(json, key));
    return digest::Sha1Digest::from_hex(text).context(fmt::format("reading member '{}'", key));
}

Result<const Node*> array_member(const Node& json, std::string_view key, std::size_t max_items) {
    const Node* node = json.find(key);
    if (node == nullptr || !node->is_array()) {
        return wrong(key, "an array");
    }
    if (node->as_array().size() > max_items) {
        return wrong(key, fmt::format("an array of at most {} items", max_items));
    }
    return node;
}

std::optional<std::string> optional_text(const Node& json, std::string_view key) {
    const Node* node = json.find(key);
    if (node == nullptr || !node->is_string()) {
        return std::nullopt;
    }
    return node->as_string();
}

} // namespace kb::hub
