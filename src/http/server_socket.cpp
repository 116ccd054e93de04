// SPDX-License-Identifier: Apache-2.0
#include "http/server_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace kb::http {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::uint64_t kSlowestBytesPerSecond = 1024;
constexpr std::size_t kMaxSendfile = 1UL << 30U;

Error connection_error(const char* why) {
    return {.code = ErrorCode::transient, .message = why};
}

/// False when the deadline passes first.
bool wait_for(int fd, short events, ServerSocket::Time deadline) {
    while (true) {
        const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
        pollfd item{.fd = fd, .events = events, .revents = 0};
        const int timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
        const int ready = ::poll(&item, 1, timeout);
        if (ready > 0) {
            return true; // an error shows in the call that follows
        }
        if (ready == 0 || errno != EINTR) {
            return false;
        }
    }
}

bool is_would_block(int error) {
    return error == EAGAIN;
}

} // namespace

ServerSocket::Time
transfer_deadline(ServerSocket::Time start, std::uint64_t bytes, milliseconds stall) {
    const auto slowest = std::chrono::seconds{static_cast<std::int64_t>(
        std::min<std::uint64_t>(bytes / kSlowestBytesPerSecond, 1UL << 32U))};
    return std::min(Clock::now() + stall, start + stall + slowest);
}

Result<std::size_t> ServerSocket::read(std::span<std::byte> out, Time deadline) {
    while (true) {
        const ssize_t n = ::recv(fd_.get(), out.data(), out.size(), 0);
        if (n >= 0) {
            return static_cast<std::size_t>(n);
        }
        if (errno == EINTR) {
            continue;
        }
        if (!is_would_block(errno)) {
            return connection_error("the client reset the connection");
        }
        if (!wait_for(fd_.get(), POLLIN, deadline)) {
            return connection_error("the client sent nothing for too long");
        }
    }
}

bool ServerSocket::is_readable() const {
    return wait_for(fd_.get(), POLLIN, Clock::now());
}

void ServerSocket::begin_writing(milliseconds stall) {
    write_start_ = Clock::now();
    stall_ = stall;
    written_ = 0;
}

Result<void> ServerSocket::wait_writable() const {
    if (!wait_for(fd_.get(), POLLOUT, transfer_deadline(write_start_, written_, stall_))) {
        return connection_error("the client read nothing for too long");
    }
    return {};
}

Result<void> ServerSocket::write(std::string_view head, std::string_view body) {
    while (!head.empty() || !body.empty()) {
        // iovec has no const pointers; sendmsg only reads.
        std::array<iovec, 2> parts{
            iovec{.iov_base = const_cast<char*>(head.data()), .iov_len = head.size()},
            iovec{.iov_base = const_cast<char*>(body.data()), .iov_len = body.size()}};
        msghdr message{};
        message.msg_iov = parts.data();
        message.msg_iovlen = parts.size();
        const ssize_t n = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
        if (n < 0 && is_would_block(errno)) {
            KB_TRY(wait_writable());
            continue;
        }
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return connection_error("the client closed the connection");
        }
        const auto sent = static_cast<std::size_t>(n);
        written_ += sent;
        const std::size_t of_head = std::min(sent, head.size());
        head.remove_prefix(of_head);
        body.remove_prefix(sent - of_head);
    }
    return {};
}

Result<void> ServerSocket::write_file(std::string_view head,
                                      int file,
                                      std::uint64_t offset,
                                      std::uint64_t length) {
    while (!head.empty()) {
        const int more = length > 0 ? MSG_MORE : 0; // keeps the head in one segment with the data
        const ssize_t n = ::send(fd_.get(), head.data(), head.size(), MSG_NOSIGNAL | more);
        if (n < 0 && is_would_block(errno)) {
            KB_TRY(wait_writable());
        } else if (n < 0 && errno != EINTR) {
            return connection_error("the client closed the connection");
        } else if (n > 0) {
            written_ += static_cast<std::size_t>(n);
            head.remove_prefix(static_cast<std::size_t>(n));
        }
    }
    auto position = static_cast<off_t>(offset);
    while (length > 0) {
        const ssize_t n =
            ::sendfile(fd_.get(), file, &position, std::min<std::uint64_t>(length, kMaxSendfile));
        if (n < 0 && is_would_block(errno)) {
            KB_TRY(wait_writable());
        } else if (n < 0 && errno != EINTR) {
            return connection_error("the client closed the connection");
        } else if (n == 0) {
            return Error{.code = ErrorCode::corrupt,
                         .message = "a file became shorter while it was sent"};
        } else if (n > 0) {
            written_ += static_cast<std::size_t>(n);
            length -= static_cast<std::uint64_t>(n);
        }
    }
    return {};
}

void ServerSocket::linger() {
    constexpr milliseconds kLinger{1000};
    constexpr std::size_t kMaxDropped = 4UL << 20U;
    if (::shutdown(fd_.get(), SHUT_WR) != 0) {
        return;
    }
    const Time deadline = Clock::now() + kLinger;
    std::array<std::byte, 16UL << 10U> dropped{};
    std::size_t total = 0;
    while (total < kMaxDropped && Clock::now() < deadline) {
        const Result<std::size_t> n = read(dropped, deadline);
        if (!n || *n == 0) {
            return;
        }
        total += *n;
    }
}

} // namespace kb::http
