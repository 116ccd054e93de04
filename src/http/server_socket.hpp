// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "http/tls.hpp"
#include "sys/unique_fd.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace kb::http {

/// A non-blocking socket read and written with deadlines, in the clear or with TLS. Errors are
/// `transient`: the other end went away or was too slow.
class ServerSocket {
public:
    using Time = std::chrono::steady_clock::time_point;

    /// `tls` null: cleartext. It outlives the socket.
    ServerSocket(sys::UniqueFd fd, const TlsContext* tls);

    [[nodiscard]] int descriptor() const { return fd_.get(); }

    /// At least one byte; 0 when the other end has closed.
    [[nodiscard]] Result<std::size_t> read(std::span<std::byte> out, Time deadline);
    /// Never waits: what is there already, with TLS after the handshake; nothing when more has to
    /// come first, 0 when the other end has closed.
    [[nodiscard]] Result<std::optional<std::size_t>> try_read(std::span<std::byte> out);

    /// Decrypted bytes wait to be read: no poll will tell of them.
    [[nodiscard]] bool has_pending() const { return tls_ && tls_->has_pending(); }

    /// Later writes fail when a piece takes longer than `stall`, or all of them together less than
    /// 1 KiB/s beyond that.
    void begin_writing(std::chrono::milliseconds stall);
    /// All of both, in one segment where they fit.
    [[nodiscard]] Result<void> write(std::string_view head, std::string_view body = {});
    /// `head`, then a part of a file, without copying.
    [[nodiscard]] Result<void>
    write_file(std::string_view head, int file, std::uint64_t offset, std::uint64_t length);
    /// Tells the other end that no more comes, then waits shortly for it to read what was sent: a
    /// socket closed with unread input resets the connection and may take the answer with it.
    void linger();

    /// Bytes written since begin_writing().
    [[nodiscard]] std::uint64_t written() const { return written_; }

private:
    [[nodiscard]] Result<void> wait_writable() const;
    [[nodiscard]] Result<std::size_t> write_some(std::string_view head, std::string_view body);
    [[nodiscard]] Result<std::size_t> write_some_tls(std::string_view bytes);
    [[nodiscard]] Result<std::optional<std::size_t>> try_read_tls(std::span<std::byte> out);
    [[nodiscard]] Result<void> write_file_tls(int file, std::uint64_t offset, std::uint64_t length);

    sys::UniqueFd fd_;
    std::unique_ptr<TlsSession> tls_{};
    bool has_shaken_hands_ = false;
    Time write_start_{};
    std::chrono::milliseconds stall_{0};
    std::uint64_t written_ = 0;
};

/// Latest time for the next piece of a transfer that began at `start` and moved `bytes` so far.
[[nodiscard]] ServerSocket::Time
transfer_deadline(ServerSocket::Time start, std::uint64_t bytes, std::chrono::milliseconds stall);

} // namespace kb::http
