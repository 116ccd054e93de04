// SPDX-License-Identifier: Apache-2.0
#include "http/tls.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <cerrno>
#include <climits>
#include <sys/socket.h>

namespace kb::http {

namespace {

struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

struct FreeSession {
    void operator()(SSL* session) const { SSL_free(session); }
};

struct FreeMethod {
    void operator()(BIO_METHOD* method) const { BIO_meth_free(method); }
};

int socket_of(BIO* bio) {
    return *static_cast<const int*>(BIO_get_data(bio));
}

// OpenSSL's own socket BIO raises SIGPIPE when the client is gone; these two do not.
int send_some(BIO* bio, const char* bytes, int length) {
    BIO_clear_retry_flags(bio);
    const ssize_t n = ::send(socket_of(bio), bytes, static_cast<std::size_t>(length), MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        BIO_set_retry_write(bio);
    }
    return static_cast<int>(n);
}

int receive_some(BIO* bio, char* bytes, int length) {
    BIO_clear_retry_flags(bio);
    const ssize_t n = ::recv(socket_of(bio), bytes, static_cast<std::size_t>(length), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        BIO_set_retry_read(bio);
    }
    return static_cast<int>(n);
}

// NOLINTNEXTLINE(google-runtime-int): the library's type
long control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

std::unique_ptr<BIO_METHOD, FreeMethod> make_socket_method() {
    std::unique_ptr<BIO_METHOD, FreeMethod> method{
        BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "kernel-builder socket")};
    BIO_meth_set_write(method.get(), &send_some);
    BIO_meth_set_read(method.get(), &receive_some);
    BIO_meth_set_ctrl(method.get(), &control);
    return method;
}

Error unreadable(const char* what, const std::string& path) {
    return {.code = ErrorCode::denied,
            .message = fmt::format("'{}' is no readable {} in PEM form", path, what)};
}

} // namespace

class TlsContext::Impl {
public:
    std::unique_ptr<SSL_CTX, FreeContext> context{SSL_CTX_new(TLS_server_method())};
    std::unique_ptr<BIO_METHOD, FreeMethod> method = make_socket_method();
};

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}

TlsContext::~TlsContext() = default;

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const TlsFiles& files) {
    auto impl = std::make_unique<Impl>();
    SSL_CTX* context = impl->context.get();
    if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
        return Error{.code = ErrorCode::internal, .message = "TLS cannot be set up"};
    }
    // Compression and renegotiation have been attacks more often than they were of use.
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
        return unreadable("certificate", files.certificate);
    }
    if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
        return unreadable("key of the certificate", files.key);
    }
    return std::shared_ptr<const TlsContext>{new TlsContext{std::move(impl)}};
}

class TlsSession::Impl {
public:
    int socket = -1;
    std::unique_ptr<SSL, FreeSession> session{};

    [[nodiscard]] TlsStep step(int result) const {
        if (result > 0) {
            return {.progress = TlsProgress::done, .bytes = static_cast<std::size_t>(result)};
        }
        switch (SSL_get_error(session.get(), result)) {
        case SSL_ERROR_WANT_READ:
            return {.progress = TlsProgress::wants_read};
        case SSL_ERROR_WANT_WRITE:
            return {.progress = TlsProgress::wants_write};
        case SSL_ERROR_ZERO_RETURN:
            return {.progress = TlsProgress::closed};
        default:
            return {.progress = TlsProgress::failed};
        }
    }
};

TlsSession::TlsSession(const TlsContext& context, int socket) : impl_{std::make_unique<Impl>()} {
    impl_->socket = socket;
    impl_->session.reset(SSL_new(context.impl_->context.get()));
    BIO* bio = BIO_new(context.impl_->method.get());
    BIO_set_data(bio, &impl_->socket);
    BIO_set_init(bio, 1);
    SSL_set_bio(impl_->session.get(), bio, bio); // owns it now
    SSL_set_accept_state(impl_->session.get());
}

TlsSession::~TlsSession() = default;

TlsStep TlsSession::handshake() {
    return impl_->step(SSL_do_handshake(impl_->session.get()));
}

TlsStep TlsSession::read(std::span<std::byte> out) {
    const int wanted = static_cast<int>(std::min<std::size_t>(out.size(), INT_MAX));
    return impl_->step(SSL_read(impl_->session.get(), out.data(), wanted));
}

TlsStep TlsSession::write(std::string_view bytes) {
    const int offered = static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX));
    return impl_->step(SSL_write(impl_->session.get(), bytes.data(), offered));
}

bool TlsSession::has_pending() const {
    return SSL_pending(impl_->session.get()) > 0;
}

void TlsSession::close() {
    SSL_shutdown(impl_->session.get());
}

} // namespace kb::http
