// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <cerrno>
#include <system_error>

namespace kb {

std::string Error::to_text() const {
    std::string out;
    for (auto it = context.rbegin(); it != context.rend(); ++it) {
        out += *it;
        out += ": ";
    }
    return out + message;
}

Error error_from_errno(int errno_value, std::string what) {
    ErrorCode code = ErrorCode::internal;
    switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
        code = ErrorCode::not_found;
        break;
    case EACCES:
    case EPERM:
    case EROFS:
        code = ErrorCode::denied;
        break;
    case EINTR:
    case EAGAIN:
    case ETIMEDOUT:
    case ECONNREFUSED:
    case ECONNRESET:
        code = ErrorCode::transient;
        break;
    case ENOSYS:
    case ENOTSUP:
        code = ErrorCode::unsupported;
        break;
    default:
        break;
    }
    // generic_category: std::strerror is not safe among threads.
    return {.code = code,
            .message = std::move(what) + ": " + std::generic_category().message(errno_value)};
}

const char* to_text(ErrorCode code) {
    switch (code) {
    case ErrorCode::not_found:
        return "not_found";
    case ErrorCode::denied:
        return "denied";
    case ErrorCode::transient:
        return "transient";
    case ErrorCode::corrupt:
        return "corrupt";
    case ErrorCode::cancelled:
        return "cancelled";
    case ErrorCode::unsupported:
        return "unsupported";
    case ErrorCode::internal:
        return "internal";
    }
    return "internal";
}

} // namespace kb
