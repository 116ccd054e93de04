// SPDX-License-Identifier: Apache-2.0
#include "http/message.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::http {

namespace {

struct Phrase {
    int status = 0;
    std::string_view text{};
};

constexpr std::array kPhrases{Phrase{200, "OK"},
                              Phrase{201, "Created"},
                              Phrase{204, "No Content"},
                              Phrase{206, "Partial Content"},
                              Phrase{302, "Found"},
                              Phrase{304, "Not Modified"},
                              Phrase{307, "Temporary Redirect"},
                              Phrase{400, "Bad Request"},
                              Phrase{401, "Unauthorized"},
                              Phrase{403, "Forbidden"},
                              Phrase{404, "Not Found"},
                              Phrase{405, "Method Not Allowed"},
                              Phrase{408, "Request Timeout"},
                              Phrase{409, "Conflict"},
                              Phrase{411, "Length Required"},
                              Phrase{412, "Precondition Failed"},
                              Phrase{413, "Content Too Large"},
                              Phrase{414, "URI Too Long"},
                              Phrase{415, "Unsupported Media Type"},
                              Phrase{416, "Range Not Satisfiable"},
                              Phrase{417, "Expectation Failed"},
                              Phrase{422, "Unprocessable Content"},
                              Phrase{429, "Too Many Requests"},
                              Phrase{431, "Request Header Fields Too Large"},
                              Phrase{500, "Internal Server Error"},
                              Phrase{501, "Not Implemented"},
                              Phrase{503, "Service Unavailable"},
                              Phrase{505, "HTTP Version Not Supported"},
                              Phrase{507, "Insufficient Storage"}};

/// A weak or missing validator never matches (RFC 9110 section 13.1.5).
bool is_range_current(const ServerRequest& request, const Headers& answer) {
    const auto condition = request.headers.find("If-Range");
    return !condition ||
           (!condition->starts_with("W/") && answer.find("ETag").value_or("") == *condition);
}

/// Sets status and headers for the part that is wanted; nothing when there is no such part.
std::optional<RangePart>
choose_part(const ServerRequest& request, std::uint64_t size, ServerResponse& response) {
    Headers& headers = response.headers;
    headers.set("Accept-Ranges", "bytes");
    const std::string range =
        is_range_current(request, headers) ? request.headers.text_or("Range") : std::string{};
    const RangeVerdict verdict = parse_range(range, size);
    if (std::holds_alternative<UnsatisfiableRange>(verdict)) {
        response.status = 416;
        headers.set("Content-Range", fmt::format("bytes */{}", size));
        return std::nullopt;
    }
    if (const auto* part = std::get_if<RangePart>(&verdict)) {
        response.status = 206;
        headers.set(
            "Content-Range",
            fmt::format("bytes {}-{}/{}", part->first, part->first + part->length - 1, size));
        return *part;
    }
    return RangePart{.first = 0, .length = size};
}

} // namespace

Result<std::size_t> read_block(BodyReader& body, std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size()) {
        KB_TRY(const std::size_t n, body.read(out.subspan(done)));
        if (n == 0) {
            break;
        }
        done += n;
    }
    return done;
}

Result<std::string> read_all(BodyReader& body, std::uint64_t max_bytes) {
    const auto too_long = [max_bytes] {
        return Error{.code = ErrorCode::denied,
                     .message = fmt::format("the request body is longer than {} bytes", max_bytes)};
    };
    if (body.length().value_or(0) > max_bytes) {
        return too_long();
    }
    std::string text;
    std::array<std::byte, 16UL << 10U> piece{};
    while (true) {
        KB_TRY(const std::size_t n, body.read(piece));
        if (n == 0) {
            return text;
        }
        if (text.size() + n > max_bytes) {
            return too_long();
        }
        text += as_text(std::span{piece}.first(n));
    }
}

std::string_view reason_phrase(int status) {
    const auto row = std::ranges::find(kPhrases, status, &Phrase::status);
    return row == kPhrases.end() ? std::string_view{"Unknown"} : row->text;
}

RangeVerdict parse_range(std::string_view header, std::uint64_t size) {
    constexpr std::string_view kUnit = "bytes=";
    if (!header.starts_with(kUnit)) {
        return WholeRange{};
    }
    const std::string_view spec = trim(header.substr(kUnit.size()));
    const std::size_t dash = spec.find('-');
    if (dash == std::string_view::npos || spec.find(',') != std::string_view::npos) {
        return WholeRange{};
    }
    const std::string_view first_text = spec.substr(0, dash);
    const std::string_view last_text = spec.substr(dash + 1);
    const auto last = parse_unsigned(last_text);
    if (first_text.empty()) {
        if (!last) {
            return WholeRange{};
        }
        const std::uint64_t length = std::min(*last, size);
        return length == 0 ? RangeVerdict{UnsatisfiableRange{}}
                           : RangePart{.first = size - length, .length = length};
    }
    const auto first = parse_unsigned(first_text);
    if (!first || (!last && !last_text.empty()) || (last && *last < *first)) {
        return WholeRange{};
    }
    if (*first >= size) {
        return UnsatisfiableRange{};
    }
    const std::uint64_t end = last ? std::min(*last, size - 1) : size - 1;
    return RangePart{.first = *first, .length = end - *first + 1};
}

ServerResponse file_response(const ServerRequest& request,
                             sys::UniqueFd file,
                             std::uint64_t size,
                             Headers headers) {
    ServerResponse response{.headers = std::move(headers)};
    if (const auto part = choose_part(request, size, response)) {
        response.body =
            FileBody{.file = std::move(file), .offset = part->first, .length = part->length};
    }
    return response;
}

ServerResponse
content_response(const ServerRequest& request, std::string content, Headers headers) {
    ServerResponse response{.headers = std::move(headers)};
    if (const auto part = choose_part(request, content.size(), response)) {
        response.body = part->length == content.size() ? std::move(content)
                                                       : content.substr(part->first, part->length);
    }
    return response;
}

} // namespace kb::http
