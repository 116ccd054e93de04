// SPDX-License-Identifier: Apache-2.0
#include "hub/status.hpp"

#include "base/text.hpp"
#include "document/json.hpp"
#include "hub/json_member.hpp"

#include <algorithm>
#include <array>

namespace kb::hub {

using document::Node;

namespace {

constexpr std::size_t kMaxMessage = 500;

struct CodeText {
    HubErrorCode code{};
    std::string_view text{};
};

constexpr std::array kCodes{CodeText{HubErrorCode::RepoNotFound, "RepoNotFound"},
                            CodeText{HubErrorCode::RevisionNotFound, "RevisionNotFound"},
                            CodeText{HubErrorCode::EntryNotFound, "EntryNotFound"},
                            CodeText{HubErrorCode::GatedRepo, "GatedRepo"}};

std::string shown(std::string_view text) {
    return escape_control(trim(text.substr(0, kMaxMessage)));
}

/// {"error": "..." | [...], "message": "...", "errors": [{"message": "..."}]}
std::string message_of_json(const Node& json) {
    if (auto text = optional_text(json, "error"); text && !text->empty()) {
        return *text;
    }
    if (auto text = optional_text(json, "message"); text && !text->empty()) {
        return *text;
    }
    std::vector<std::string> parts;
    for (const std::string_view key : {"error", "errors"}) {
        const Node* list = json.find(key);
        if (list == nullptr || !list->is_array()) {
            continue;
        }
        for (const Node& item : list->as_array()) {
            parts.push_back(item.is_string() ? item.as_string() : item.text_or("message"));
        }
    }
    return join(parts, "; ");
}

} // namespace

std::string_view to_text(HubErrorCode code) {
    return std::ranges::find(kCodes, code, &CodeText::code)->text;
}

std::optional<HubErrorCode> parse_error_code(std::string_view text) {
    const auto row = std::ranges::find(kCodes, text, &CodeText::text);
    return row == kCodes.end() ? std::nullopt : std::optional{row->code};
}

Node to_json(const HubStatus& status) {
    return Node::table({{"error", Node{status.message}}});
}

std::string error_message(std::string_view header, std::string_view body) {
    if (!trim(header).empty()) {
        return shown(header);
    }
    if (const auto json = document::parse_json(body, {}); json) {
        if (const std::string text = message_of_json(*json); !text.empty()) {
            return shown(text);
        }
    }
    return shown(body);
}

HubStatus parse_status(int http,
                       std::string_view code_header,
                       std::string_view message_header,
                       std::string_view body) {
    return {.http = http,
            .code = parse_error_code(trim(code_header)),
            .message = error_message(message_header, body)};
}

} // namespace kb::hub
