// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "http/message.hpp"
#include "http/tls.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace kb::http {

struct ServerLimits {
    std::uint32_t header_bytes = 32U << 10U;
    std::size_t connections = 1024;
    /// From the first byte of a request, or the start of a connection, to the end of the header.
    std::chrono::milliseconds header_time{20'000};
    /// Between requests of one connection.
    std::chrono::milliseconds idle_time{75'000};
    /// No byte for so long while a body is read or written ends the connection; so does less than
    /// 1 KiB/s on average after that.
    std::chrono::milliseconds stall_time{60'000};
    /// Requests being answered when the server stops get so long.
    std::chrono::milliseconds stop_time{10'000};
};

/// One answered request, for a log. Query values may hold secrets: they are not here.
struct AccessRecord {
    std::string peer{};
    std::string method{};
    std::string path{};
    int status = 0;
    std::uint64_t bytes_sent = 0;
    double seconds = 0;
    std::string user_agent{};
};

struct ServerOptions {
    /// Numeric IPv4 or IPv6 address.
    std::string address = "127.0.0.1";
    /// 0: any free port.
    std::uint16_t port = 0;
    /// Requests that are handled at once; further ones wait.
    unsigned workers = 64;
    ServerLimits limits{};
    /// Null: cleartext.
    std::shared_ptr<const TlsContext> tls{};
    /// Called after each answer, from several threads at once; may be empty.
    std::function<void(const AccessRecord&)> on_access{};
};

/// True for 127.0.0.0/8 and ::1.
[[nodiscard]] bool is_loopback(std::string_view address);

/// HTTP/1.1 over TCP, with TLS when a certificate is given. Parsing is strict: a request with two
/// Content-Length values, or with Content-Length and Transfer-Encoding, is refused and its
/// connection closed. Idle connections, handshakes and headers under way cost no thread.
class HttpServer {
public:
    /// Binds and listens. `denied` when the port is taken or not allowed.
    [[nodiscard]] static Result<std::unique_ptr<HttpServer>> listen(ServerOptions options);

    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    [[nodiscard]] std::uint16_t port() const;
    /// "http://127.0.0.1:8910"; https with TLS.
    [[nodiscard]] std::string endpoint() const;

    /// Serves until stop() or until `stop_descriptor` (-1: none) is readable; then accepts no more,
    /// finishes what was begun and returns.
    [[nodiscard]] Result<void> run(RequestHandler& handler, int stop_descriptor = -1);
    /// From any thread.
    void stop();

private:
    class Impl;
    explicit HttpServer(std::unique_ptr<Impl> impl);

    std::unique_ptr<Impl> impl_;
};

} // namespace kb::http
