// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "base/error.hpp"
#include "base/result.hpp"
#include "base/version.hpp"
#include "document/reader.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace kb::plan {

/// The first problem of a machine-written document as one error: such files are rejected whole.
[[nodiscard]] inline std::optional<Error> first_error(const Diagnostics& diagnostics) {
    for (const Diagnostic& item : diagnostics.items()) {
        if (item.severity == Severity::error) {
            return Error{ErrorCode::corrupt, to_text(item), {}};
        }
    }
    return std::nullopt;
}

/// String members of a document that we write ourselves; what is wrong goes to the reader's
/// diagnostics at the member's place.
[[nodiscard]] std::string text_member(document::Reader& reader, std::string_view key);
/// "" or absent gives the empty version.
[[nodiscard]] Version version_member(document::Reader& reader, std::string_view key);

} // namespace kb::plan
