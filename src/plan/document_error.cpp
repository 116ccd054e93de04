// SPDX-License-Identifier: Apache-2.0
#include "plan/document_error.hpp"

#include <fmt/format.h>

namespace kb::plan {

std::string text_member(document::Reader& reader, std::string_view key) {
    auto text = reader.string(key);
    return text ? std::move(text->value) : std::string{};
}

Version version_member(document::Reader& reader, std::string_view key) {
    const auto text = reader.string(key);
    if (!text || text->value.empty()) {
        return Version{};
    }
    auto version = Version::parse(text->value);
    if (!version) {
        reader.diagnostics().error(
            "bad-version",
            text->span,
            fmt::format("'{}' of {} is not a version: '{}'", key, reader.path(), text->value));
        return Version{};
    }
    return std::move(*version);
}

} // namespace kb::plan
