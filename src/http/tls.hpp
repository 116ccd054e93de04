// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kb::http {

/// PEM files of a server: the certificate with its chain, leaf first, and the key of the leaf.
struct TlsFiles {
    std::string certificate{};
    std::string key{};
};

/// Certificate and key of a server, TLS 1.2 and 1.3. Shared by its connections, from any thread.
class TlsContext {
public:
    /// `denied` names the file that is missing or wrong, or says that the two do not fit together.
    [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> load(const TlsFiles& files);

    ~TlsContext();
    TlsContext(const TlsContext&) = delete;
    TlsContext& operator=(const TlsContext&) = delete;

private:
    friend class TlsSession;
    class Impl;
    explicit TlsContext(std::unique_ptr<Impl> impl);

    std::unique_ptr<Impl> impl_;
};

/// How far a call got that never waits.
enum class TlsProgress : std::uint8_t { done, wants_read, wants_write, closed, failed };

struct TlsStep {
    TlsProgress progress = TlsProgress::failed;
    /// Bytes moved, when done.
    std::size_t bytes = 0;
};

/// The server's end of TLS over a non-blocking socket, which it does not own. One thread at a time.
class TlsSession {
public:
    TlsSession(const TlsContext& context, int socket);
    ~TlsSession();
    TlsSession(const TlsSession&) = delete;
    TlsSession& operator=(const TlsSession&) = delete;

    /// Goes on with the handshake; `done` once it is over.
    [[nodiscard]] TlsStep handshake();
    [[nodiscard]] TlsStep read(std::span<std::byte> out);
    /// After wants_read or wants_write the same bytes must be offered again.
    [[nodiscard]] TlsStep write(std::string_view bytes);
    /// Decrypted bytes wait here: the socket itself may never become readable for them.
    [[nodiscard]] bool has_pending() const;
    /// Tells the other end that no more comes.
    void close();

private:
    class Impl;

    std::unique_ptr<Impl> impl_;
};

} // namespace kb::http
