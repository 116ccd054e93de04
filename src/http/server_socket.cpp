// SPDX-License-Identifier: Apache-2.0
#include "http/server_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <string>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

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

ServerSocket::ServerSocket(sys::UniqueFd fd, const TlsContext* tls) : fd_{std::move(fd)} {
    if (tls != nullptr) {
        tls_ = std::make_unique<TlsSession>(*tls, fd_.get());
    }
}

Result<std::optional<std::size_t>> ServerSocket::try_read(std::span<std::byte> out) {
    if (tls_) {
        return try_read_tls(out);
    }
    while (true) {
        const ssize_t n = ::recv(fd_.get(), out.data(), out.size(), 0);
        if (n >= 0) {
            return std::optional{static_cast<std::size_t>(n)};
        }
        if (is_would_block(errno)) {
            return std::optional<std::size_t>{};
        }
        if (errno != EINTR) {
            return connection_error("the client reset the connection");
        }
    }
}

Result<std::optional<std::size_t>> ServerSocket::try_read_tls(std::span<std::byte> out) {
    while (true) {
        const TlsStep step = has_shaken_hands_ ? tls_->read(out) : tls_->handshake();
        switch (step.progress) {
        case TlsProgress::done:
            if (has_shaken_hands_) {
                return std::optional{step.bytes};
            }
            has_shaken_hands_ = true;
            continue;
        case TlsProgress::wants_read:
            return std::optional<std::size_t>{};
        case TlsProgress::wants_write: {
            // A few kilobytes of handshake find room in any socket buffer but a hostile one.
            constexpr milliseconds kShort{200};
            if (!wait_for(fd_.get(), POLLOUT, Clock::now() + kShort)) {
                return connection_error("the client does not read the handshake");
            }
            continue;
        }
        case TlsProgress::closed:
            return std::optional{std::size_t{0}};
        case TlsProgress::failed:
            return connection_error("the client reset the connection or broke TLS");
        }
    }
}

Result<std::size_t> ServerSocket::read(std::span<std::byte> out, Time deadline) {
    while (true) {
        KB_TRY(const std::optional<std::size_t> n, try_read(out));
        if (n) {
            return *n;
        }
        if (!wait_for(fd_.get(), POLLIN, deadline)) {
            return connection_error("the client sent nothing for too long");
        }
    }
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

Result<std::size_t> ServerSocket::write_some(std::string_view head, std::string_view body) {
    if (tls_) {
        return write_some_tls(head.empty() ? body : head);
    }
    // iovec has no const pointers; sendmsg only reads.
    std::array<iovec, 2> parts{
        iovec{.iov_base = const_cast<char*>(head.data()), .iov_len = head.size()},
        iovec{.iov_base = const_cast<char*>(body.data()), .iov_len = body.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    while (true) {
        const ssize_t n = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
        if (n >= 0) {
            return static_cast<std::size_t>(n);
        }
        if (is_would_block(errno)) {
            KB_TRY(wait_writable());
        } else if (errno != EINTR) {
            return connection_error("the client closed the connection");
        }
    }
}

Result<std::size_t> ServerSocket::write_some_tls(std::string_view bytes) {
    while (true) {
        const TlsStep step = tls_->write(bytes);
        switch (step.progress) {
        case TlsProgress::done:
            return step.bytes;
        case TlsProgress::wants_write:
            KB_TRY(wait_writable());
            continue;
        case TlsProgress::wants_read: // renegotiation is off: only a key update can ask for this
            if (!wait_for(fd_.get(), POLLIN, transfer_deadline(write_start_, written_, stall_))) {
                return connection_error("the client sent nothing for too long");
            }
            continue;
        case TlsProgress::closed:
        case TlsProgress::failed:
            return connection_error("the client closed the connection");
        }
    }
}

Result<void> ServerSocket::write(std::string_view head, std::string_view body) {
    // A record each would cost a segment each: a short head travels with its body.
    constexpr std::size_t kOneRecord = 16UL << 10U;
    std::string joined;
    if (tls_ && !body.empty() && head.size() + body.size() <= kOneRecord) {
        joined = std::string{head} + std::string{body};
        head = joined;
        body = {};
    }
    while (!head.empty() || !body.empty()) {
        KB_TRY(const std::size_t sent, write_some(head, body));
        written_ += sent;
        const std::size_t of_head = std::min(sent, head.size());
        head.remove_prefix(of_head);
        body.remove_prefix(sent - of_head);
    }
    return {};
}

Result<void> ServerSocket::write_file_tls(int file, std::uint64_t offset, std::uint64_t length) {
    std::string block(std::min<std::uint64_t>(length, 256UL << 10U), '\0');
    while (length > 0) {
        const std::size_t wanted = std::min<std::uint64_t>(length, block.size());
        const ssize_t n = ::pread(file, block.data(), wanted, static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return Error{.code = ErrorCode::corrupt,
                         .message = "a file became shorter while it was sent"};
        }
        const auto got = static_cast<std::size_t>(n);
        KB_TRY(write(std::string_view{block}.substr(0, got)));
        offset += got;
        length -= got;
    }
    return {};
}

Result<void> ServerSocket::write_file(std::string_view head,
                                      int file,
                                      std::uint64_t offset,
                                      std::uint64_t length) {
    if (tls_) {
        KB_TRY(write(head));
        return write_file_tls(file, offset, length);
    }
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
    if (tls_ && has_shaken_hands_) {
        tls_->close();
    }
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
