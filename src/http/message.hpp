// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "http/headers.hpp"
#include "sys/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace kb::http {

/// The body of a request as it comes from the socket. What a handler leaves unread is dropped.
class BodyReader {
public:
    virtual ~BodyReader() = default;
    /// Fills a part of `out` and says how much; 0 is the end. `transient` when the client stalls,
    /// goes away or breaks the framing: the handler then has nobody to answer.
    virtual Result<std::size_t> read(std::span<std::byte> out) = 0;
    /// The announced length; nothing for a chunked body.
    [[nodiscard]] virtual std::optional<std::uint64_t> length() const = 0;
};

/// Like read(), but fills all of `out` unless the body ends. For what goes to a file: the kernel
/// keeps what came in large pieces in large pages, and sends it more than twice as fast.
[[nodiscard]] Result<std::size_t> read_block(BodyReader& body, std::span<std::byte> out);

/// Whole body; `denied` when it is longer than `max_bytes`, without reading on.
[[nodiscard]] Result<std::string> read_all(BodyReader& body, std::uint64_t max_bytes);

struct ServerRequest {
    /// As on the wire; the server has checked that it is a token.
    std::string method{};
    /// Path without the query, still percent-encoded; begins with '/'.
    std::string path{};
    /// What follows '?', still encoded.
    std::string query{};
    Headers headers{};
    /// Numeric address of the other end.
    std::string peer{};
    BodyReader* body = nullptr;
};

/// A part of an open file; sent without passing through the program.
struct FileBody {
    sys::UniqueFd file{};
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

/// Bytes made while they are sent: fills a part of the buffer, 0 is the end. An error after the
/// first byte can only close the connection.
struct StreamBody {
    std::function<Result<std::size_t>(std::span<std::byte>)> next{};
};

using ServerBody = std::variant<std::string, FileBody, StreamBody>;

/// A HEAD request is answered as GET is: the server announces the length and sends no body.
struct ServerResponse {
    int status = 200;
    /// Without Content-Length, Transfer-Encoding, Connection and Date, which the server writes.
    Headers headers{};
    ServerBody body{};
};

/// Called from several threads at once.
class RequestHandler {
public:
    virtual ~RequestHandler() = default;
    virtual ServerResponse handle(ServerRequest& request) = 0;
};

/// "Not Found"
[[nodiscard]] std::string_view reason_phrase(int status);

/// A part of a representation of known size.
struct RangePart {
    std::uint64_t first = 0;
    std::uint64_t length = 0;

    bool operator==(const RangePart&) const = default;
};

struct WholeRange {
    bool operator==(const WholeRange&) const = default;
};

struct UnsatisfiableRange {
    bool operator==(const UnsatisfiableRange&) const = default;
};

using RangeVerdict = std::variant<WholeRange, RangePart, UnsatisfiableRange>;

/// What a Range header asks of `size` bytes: "bytes=a-b", "a-" or "-n". Several ranges or a form
/// that is not understood mean the whole, as RFC 9110 allows.
[[nodiscard]] RangeVerdict parse_range(std::string_view header, std::uint64_t size);

/// Answer with the whole of `file` (`size` bytes) or the part that `request` asks for: 200, 206 or
/// 416, Accept-Ranges and Content-Range set. `headers` are kept; If-Range is compared with ETag.
[[nodiscard]] ServerResponse file_response(const ServerRequest& request,
                                           sys::UniqueFd file,
                                           std::uint64_t size,
                                           Headers headers);
/// The same for content in memory.
[[nodiscard]] ServerResponse
content_response(const ServerRequest& request, std::string content, Headers headers);

} // namespace kb::http
