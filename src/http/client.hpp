// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "http/headers.hpp"
#include "http/secret.hpp"
#include "http/url.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace kb::http {

enum class Method : std::uint8_t { get, head, post, put, del };

/// As on the wire: "GET", "DELETE".
[[nodiscard]] std::string_view to_text(Method method);

/// Part of a file as a request body: opened when sent and read by position, so that a repeated
/// request begins again. A file that became shorter fails the request (`corrupt`).
struct FileSlice {
    std::string path{};
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

/// Nothing, text from memory, or a file.
using Body = std::variant<std::monostate, std::string, FileSlice>;

[[nodiscard]] std::uint64_t body_size(const Body& body);

/// First and last byte wanted, both counted in.
struct ByteRange {
    std::uint64_t first = 0;
    std::optional<std::uint64_t> last{};
};

struct Timeouts {
    std::chrono::milliseconds connect{15'000};
    /// No byte in either direction for so long ends the request.
    std::chrono::milliseconds stall{120'000};
    /// The whole request; nothing: as long as it moves.
    std::optional<std::chrono::milliseconds> total{};
};

enum class Redirects : std::uint8_t { none, follow };

struct Request {
    Method method = Method::get;
    Url url;
    Headers headers{};
    /// Sent as "Authorization: Bearer ..." to the origin of `url` only.
    Secret bearer{};
    Body body{};
    std::optional<ByteRange> range{};
    Timeouts timeouts{};
    Redirects redirects = Redirects::follow;
    /// More than this in memory fails the request (`corrupt`); without meaning for a sink.
    std::uint64_t max_response_bytes = 64UL << 20U;
    /// Takes the body of a 2xx answer piece by piece instead of Response::body; an Error ends the
    /// request and is its result.
    std::function<Result<void>(Bytes)> sink{};
    /// Told the status before the first piece goes to the sink: 206 or the whole. May be empty.
    std::function<void(int status)> on_begin{};
    /// Bytes of the body sent and received so far, from the calling thread; may be empty.
    std::function<void(std::uint64_t sent, std::uint64_t received)> progress{};
};

struct Response {
    int status = 0;
    Headers headers{};
    std::string body{};
    /// Where the answer came from, after redirects.
    std::optional<Url> final_url{};
    std::uint64_t bytes_sent = 0;

    [[nodiscard]] bool ok() const { return status >= 200 && status < 300; }
};

/// Sends one request and waits; any status is an answer, not an error. Errors: `transient` (no
/// connection, reset, time-out, truncated), `denied` (certificate), `cancelled`, `corrupt`,
/// `unsupported`. An error says nothing about whether the server acted on the request. Usable from
/// several threads at once. An interface because tests answer by hand.
class HttpClient {
public:
    virtual ~HttpClient() = default;
    virtual Result<Response> send(const Request& request) = 0;
};

/// One step of a redirect as a pure function: the request to send next, or nothing when `response`
/// is the answer. GET and HEAD follow 301, 302, 303, 307, 308; others only 307 and 308, which keep
/// method and body. A change of origin drops bearer, Authorization and Cookie; https to http is
/// `denied`.
[[nodiscard]] Result<std::optional<Request>> next_request(const Request& request,
                                                          const Response& response);

} // namespace kb::http
