// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kb {

/// For callers that branch; the text is for people. Closed and small.
enum class ErrorCode : std::uint8_t {
    not_found,
    denied,
    transient,
    corrupt,
    cancelled,
    unsupported,
    internal
};

/// "The world failed", with one cause. `message`: lower case, no full stop, 'quoted' names, and
/// where possible the next step. `context` grows on the way up, innermost first: what each layer
/// was doing.
struct Error {
    ErrorCode code = ErrorCode::internal;
    std::string message{};
    std::vector<std::string> context{};

    /// "outermost context: ...: message", on one line.
    [[nodiscard]] std::string to_text() const;
};

/// Error of a failed system call: `what` says what was tried ("opening '/a/b'"), errno gives code
/// and text.
[[nodiscard]] Error error_from_errno(int errno_value, std::string what);

/// Name as in messages: "not_found" and so on.
[[nodiscard]] const char* to_text(ErrorCode code);

} // namespace kb
