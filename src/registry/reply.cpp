// SPDX-License-Identifier: Apache-2.0
#include "registry/reply.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

namespace kb::registry {

hub::HubStatus internal_failure(const Error& error) {
    const std::string text = error.to_text();
    const bool is_full = text.find("No space left") != std::string::npos ||
                         text.find("database or disk is full") != std::string::npos ||
                         text.find("Disk quota exceeded") != std::string::npos;
    return {.http = is_full ? 507 : 500, .message = text};
}

hub::HubStatus revision_not_found(std::string_view revision) {
    return {.http = 404,
            .code = hub::HubErrorCode::RevisionNotFound,
            .message = fmt::format("revision '{}' does not exist", escape_control(revision))};
}

hub::HubStatus entry_not_found(std::string_view path, std::string_view revision) {
    return {.http = 404,
            .code = hub::HubErrorCode::EntryNotFound,
            .message = fmt::format(
                "'{}' does not exist at '{}'", escape_control(path), escape_control(revision))};
}

} // namespace kb::registry
