// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http/server.hpp"
#include "http/server_socket.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace kb::http {

/// `wait_more`: a request has begun and its header is not whole yet; nobody waits for it.
enum class AfterRequest : std::uint8_t { wait, wait_more, close };

/// One client's connection; used by one thread at a time.
class ServerConnection {
public:
    ServerConnection(sys::UniqueFd fd, std::string peer, const ServerOptions& options);
    ~ServerConnection();
    ServerConnection(const ServerConnection&) = delete;
    ServerConnection& operator=(const ServerConnection&) = delete;

    [[nodiscard]] int descriptor() const;

    /// Answers the requests at hand. `is_stopping` is asked before each answer: the last one then
    /// closes the connection.
    AfterRequest serve(RequestHandler& handler, const std::function<bool()>& is_stopping);

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace kb::http
