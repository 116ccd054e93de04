// SPDX-License-Identifier: Apache-2.0
#pragma once
// A server on a free loopback port that answers with the raw bytes a test gives it: what a real
// server would never send (a broken answer, a closed connection) is one line here. One thread a
// connection; joined at the end.
#include <arpa/inet.h>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace kb::test {

struct RawRequest {
    std::string method{};
    std::string target{};
    std::string head{}; ///< Request line and header fields.
    std::string body{};
};

class LoopbackServer {
public:
    /// "" closes the connection without an answer.
    using Handler = std::function<std::string(const RawRequest&)>;

    explicit LoopbackServer(Handler handler) : handler_{std::move(handler)} {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ::sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
        ::socklen_t length = sizeof address;
        auto* generic = reinterpret_cast<::sockaddr*>(&address);
        if (::bind(listener_, generic, length) != 0 || ::listen(listener_, 64) != 0 ||
            ::getsockname(listener_, generic, &length) != 0) {
            std::abort();
        }
        port_ = ::ntohs(address.sin_port);
        acceptor_ = std::thread{[this] {
            accept_all();
        }};
    }

    ~LoopbackServer() {
        stopping_ = true;
        ::shutdown(listener_, SHUT_RDWR);
        acceptor_.join();
        ::close(listener_);
        {
            const std::lock_guard lock{mutex_};
            for (const int fd : open_) {
                ::shutdown(fd, SHUT_RDWR);
            }
        }
        for (std::thread& thread : threads_) {
            thread.join();
        }
    }

    LoopbackServer(const LoopbackServer&) = delete;
    LoopbackServer& operator=(const LoopbackServer&) = delete;

    [[nodiscard]] std::string url(std::string_view path = "/") const {
        return "http://127.0.0.1:" + std::to_string(port_) + std::string{path};
    }

    [[nodiscard]] int connections() const { return connections_; }

private:
    void accept_all() {
        while (!stopping_) {
            const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0) {
                continue;
            }
            ++connections_;
            const std::lock_guard lock{mutex_};
            open_.push_back(fd);
            threads_.emplace_back([this, fd] {
                serve(fd);
                const std::lock_guard inner{mutex_};
                std::erase(open_, fd);
                ::close(fd);
            });
        }
    }

    static std::size_t content_length(const std::string& head) {
        const std::size_t at = head.find("Content-Length: ");
        return at == std::string::npos ? 0 : std::strtoul(head.c_str() + at + 16, nullptr, 10);
    }

    /// False when the peer is gone.
    static bool fill(int fd, std::string& buffer, std::size_t wanted) {
        std::string chunk(1 << 16, '\0');
        while (buffer.size() < wanted) {
            const auto n = ::recv(fd, chunk.data(), chunk.size(), 0);
            if (n <= 0) {
                return false;
            }
            buffer.append(chunk, 0, static_cast<std::size_t>(n));
        }
        return true;
    }

    void serve(int fd) {
        std::string buffer;
        for (;;) {
            std::size_t end = buffer.find("\r\n\r\n");
            while (end == std::string::npos) {
                if (!fill(fd, buffer, buffer.size() + 1)) {
                    return;
                }
                end = buffer.find("\r\n\r\n");
            }
            RawRequest request{.head = buffer.substr(0, end + 2)};
            const std::size_t length = content_length(request.head);
            if (!fill(fd, buffer, end + 4 + length)) {
                return;
            }
            request.body = buffer.substr(end + 4, length);
            buffer.erase(0, end + 4 + length);
            const std::size_t space = request.head.find(' ');
            request.method = request.head.substr(0, space);
            request.target =
                request.head.substr(space + 1, request.head.find(' ', space + 1) - space - 1);
            const std::string answer = handler_(request);
            if (answer.empty() || ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) !=
                                      static_cast<::ssize_t>(answer.size())) {
                ::shutdown(fd, SHUT_RDWR);
                return;
            }
        }
    }

    Handler handler_;
    int listener_ = -1;
    int port_ = 0;
    std::atomic<bool> stopping_ = false;
    std::atomic<int> connections_ = 0;
    std::mutex mutex_;
    std::vector<int> open_;
    std::vector<std::thread> threads_;
    std::thread acceptor_;
};

/// A whole answer with its length.
inline std::string http_answer(int status, std::string_view body, std::string_view fields = "") {
    return "HTTP/1.1 " + std::to_string(status) + " X\r\n" + std::string{fields} +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string{body};
}

} // namespace kb::test
