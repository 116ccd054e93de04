// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "document/node.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kb::hub {

/// Values of the header X-Error-Code, by which clients tell errors apart; spelt as on the wire.
enum class HubErrorCode : std::uint8_t { RepoNotFound, RevisionNotFound, EntryNotFound, GatedRepo };

[[nodiscard]] std::string_view to_text(HubErrorCode code);
[[nodiscard]] std::optional<HubErrorCode> parse_error_code(std::string_view text);

/// How a call ended that did not succeed.
struct HubStatus {
    /// HTTP status.
    int http = 500;
    std::optional<HubErrorCode> code{};
    /// For people; travels in X-Error-Message and in the body.
    std::string message{};

    bool operator==(const HubStatus&) const = default;
};

/// {"error": message}
[[nodiscard]] document::Node to_json(const HubStatus& status);
/// Message of an error answer: X-Error-Message if given, else "error", "message" or "errors" of the
/// JSON body, else the start of a text body; control characters are escaped, at most 500 bytes.
[[nodiscard]] std::string error_message(std::string_view header, std::string_view body);
/// What a client knows about a failed call. `code_header` and `message_header` may be empty.
[[nodiscard]] HubStatus parse_status(int http,
                                     std::string_view code_header,
                                     std::string_view message_header,
                                     std::string_view body);

} // namespace kb::hub
