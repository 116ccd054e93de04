// SPDX-License-Identifier: Apache-2.0
#include "http/server_connection.hpp"

#include "base/text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <ctime>
#include <vector>

namespace kb::http {

namespace {

namespace beast = boost::beast::http;
using Clock = std::chrono::steady_clock;
using Parser = beast::request_parser<beast::buffer_body>;

constexpr std::size_t kStreamPiece = 64UL << 10U;
/// Unread input up to this is read and dropped, so that the connection can be used again.
constexpr std::uint64_t kMaxDropped = 256UL << 10U;
constexpr int kRequestsPerTurn = 64;

std::string_view text_of(boost::beast::string_view text) {
    return {text.data(), text.size()};
}

/// What Beast reads from; turns a missed deadline and a lost client into errors of its kind.
class BeastStream {
public:
    explicit BeastStream(ServerSocket& socket) : socket_{&socket} {}

    void set_deadline(ServerSocket::Time deadline) { deadline_ = deadline; }

    /// The throwing form that the concept asks for; nobody calls it, so it has no body.
    template <typename Buffers>
    std::size_t read_some(const Buffers& buffers);

    template <typename Buffers>
    std::size_t read_some(const Buffers& buffers, boost::system::error_code& ec) {
        const boost::asio::mutable_buffer first = *boost::asio::buffer_sequence_begin(buffers);
        const Result<std::size_t> n =
            socket_->read({static_cast<std::byte*>(first.data()), first.size()}, deadline_);
        if (!n) {
            ec = boost::system::errc::make_error_code(boost::system::errc::timed_out);
            return 0;
        }
        ec = *n == 0 ? make_error_code(beast::error::end_of_stream) : boost::system::error_code{};
        return *n;
    }

private:
    ServerSocket* socket_;
    ServerSocket::Time deadline_{};
};

/// A request that is refused before any handler sees it.
struct Refusal {
    int status = 400;
    std::string message{};
};

std::optional<Refusal> framing_refusal(const Parser& parser) {
    const auto& request = parser.get();
    const auto count = [&request](beast::field field) {
        return request.count(field);
    };
    const std::size_t lengths = count(beast::field::content_length);
    const std::size_t codings = count(beast::field::transfer_encoding);
    if (lengths > 1 || codings > 1 || (lengths > 0 && codings > 0)) {
        return Refusal{.message = "the length of the request is given twice"};
    }
    if (lengths == 1 && !parse_unsigned(text_of(request[beast::field::content_length]))) {
        return Refusal{.message = "the length of the request is not a number"};
    }
    if (codings == 1 && to_lower(text_of(request[beast::field::transfer_encoding])) != "chunked") {
        return Refusal{.status = 501, .message = "the only transfer coding is 'chunked'"};
    }
    if (request.version() == 11 && count(beast::field::host) != 1) {
        return Refusal{.message = "the header 'Host' must be given once"};
    }
    const std::string coding = to_lower(text_of(request[beast::field::content_encoding]));
    if (!coding.empty() && coding != "identity") {
        return Refusal{.status = 415, .message = "encoded request bodies are not accepted"};
    }
    const std::string expect = to_lower(text_of(request[beast::field::expect]));
    if (!expect.empty() && expect != "100-continue") {
        return Refusal{.status = 417, .message = "the only expectation is '100-continue'"};
    }
    return std::nullopt;
}

/// Splits the target; an absolute form loses scheme and host, which nothing here trusts.
bool take_target(std::string_view target, ServerRequest& request) {
    if (const std::string lower = to_lower(target.substr(0, 8));
        lower.starts_with("http://") || lower.starts_with("https://")) {
        target.remove_prefix(lower.starts_with("https://") ? 8 : 7);
        target.remove_prefix(std::min(target.find('/'), target.size()));
    }
    if (!target.starts_with('/') || !is_header_value(target)) {
        return false;
    }
    const std::size_t mark = target.find('?');
    request.path = std::string{target.substr(0, mark)};
    request.query = mark == std::string_view::npos ? "" : std::string{target.substr(mark + 1)};
    return true;
}

/// The body of the request that `parser` has read the header of.
class SocketBody : public BodyReader {
public:
    SocketBody(ServerSocket& socket,
               boost::beast::flat_buffer& buffer,
               Parser& parser,
               std::chrono::milliseconds stall)
        : socket_{&socket},
          stream_{socket},
          buffer_{&buffer},
          parser_{&parser},
          stall_{stall},
          start_{Clock::now()} {
        if (const auto length = parser.content_length()) {
            length_ = *length;
        }
        left_ = length_.value_or(0);
        const bool expects = !text_of(parser.get()[beast::field::expect]).empty();
        continue_wanted_ = expects && parser.get().version() == 11 && !at_end();
    }

    [[nodiscard]] std::optional<std::uint64_t> length() const override {
        return parser_->chunked() ? std::nullopt : std::optional{length_.value_or(0)};
    }

    Result<std::size_t> read(std::span<std::byte> out) override {
        if (at_end() || out.empty()) {
            return std::size_t{0};
        }
        if (continue_wanted_) {
            continue_wanted_ = false;
            KB_TRY(socket_->write("HTTP/1.1 100 Continue\r\n\r\n"));
        }
        Result<std::size_t> n = parser_->chunked() ? read_chunked(out) : read_plain(out);
        is_broken_ = is_broken_ || !n;
        total_ += n ? *n : 0;
        return n;
    }

    [[nodiscard]] bool at_end() const {
        return parser_->chunked() ? parser_->is_done() : left_ == 0;
    }

    /// Reads and drops the rest when that is cheap; says whether the next request can be read.
    bool drop_rest() {
        std::array<std::byte, 16UL << 10U> dropped{};
        std::uint64_t total = 0;
        while (!at_end()) {
            if (continue_wanted_ || is_broken_ || total + left_ > kMaxDropped) {
                return false;
            }
            const Result<std::size_t> n = read(dropped);
            if (!n) {
                return false;
            }
            total += *n;
        }
        return !is_broken_;
    }

private:
    Result<std::size_t> read_plain(std::span<std::byte> out) {
        std::span<std::byte> target = out.first(std::min<std::uint64_t>(out.size(), left_));
        std::size_t n = std::min(target.size(), buffer_->size());
        if (n > 0) {
            boost::asio::buffer_copy(boost::asio::buffer(target.data(), n), buffer_->data());
            buffer_->consume(n);
        } else {
            // Straight into the caller's memory: large bodies do not pass through the parser.
            KB_TRY(n, socket_->read(target, transfer_deadline(start_, total_, stall_)));
            if (n == 0) {
                return Error{.code = ErrorCode::transient,
                             .message = "the client closed the connection within the body"};
            }
        }
        left_ -= n;
        return n;
    }

    Result<std::size_t> read_chunked(std::span<std::byte> out) {
        auto& body = parser_->get().body();
        while (!parser_->is_done()) {
            body.data = out.data();
            body.size = out.size();
            stream_.set_deadline(transfer_deadline(start_, total_, stall_));
            boost::system::error_code ec;
            beast::read_some(stream_, *buffer_, *parser_, ec);
            const std::size_t n = out.size() - body.size;
            if (ec && ec != beast::error::need_buffer) {
                return Error{.code = ErrorCode::transient,
                             .message = "the chunked body broke off: " + ec.message()};
            }
            if (n > 0) {
                return n;
            }
        }
        return std::size_t{0};
    }

    ServerSocket* socket_;
    BeastStream stream_;
    boost::beast::flat_buffer* buffer_;
    Parser* parser_;
    std::chrono::milliseconds stall_;
    ServerSocket::Time start_;
    std::optional<std::uint64_t> length_{};
    std::uint64_t left_ = 0;
    std::uint64_t total_ = 0;
    bool continue_wanted_ = false;
    bool is_broken_ = false;
};

bool has_no_body(int status) {
    return status == 204 || status == 304;
}

/// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date() {
    return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(std::time(nullptr)));
}

std::string
head_of(const ServerResponse& response, std::optional<std::uint64_t> length, AfterRequest after) {
    std::string head =
        fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status));
    for (const Header& field : response.headers.fields()) {
        if (is_header_name(field.name) && is_header_value(field.value)) {
            head += fmt::format("{}: {}\r\n", field.name, field.value);
        }
    }
    head += fmt::format("Date: {}\r\n", http_date());
    if (has_no_body(response.status)) {
        // no length at all
    } else if (length) {
        head += fmt::format("Content-Length: {}\r\n", *length);
    } else {
        head += "Transfer-Encoding: chunked\r\n";
    }
    if (after == AfterRequest::close) {
        head += "Connection: close\r\n";
    }
    return head + "\r\n";
}

} // namespace

class ServerConnection::Impl {
public:
    Impl(sys::UniqueFd fd, std::string peer, const ServerOptions& options)
        : socket_{std::move(fd), options.tls.get()}, peer_{std::move(peer)}, options_{&options} {}

    [[nodiscard]] int descriptor() const { return socket_.descriptor(); }

    AfterRequest serve(RequestHandler& handler, const std::function<bool()>& is_stopping) {
        for (int answered = 0;; ++answered) {
            if (answered >= kRequestsPerTurn && buffer_.size() == 0 && !socket_.has_pending()) {
                return AfterRequest::wait;
            }
            const Intake intake = take_input();
            if (intake == Intake::nothing) {
                // A handshake under way counts as a header under way: it has the same time.
                return answered > 0 ? AfterRequest::wait : AfterRequest::wait_more;
            }
            if (intake == Intake::part) {
                return AfterRequest::wait_more;
            }
            if (intake == Intake::closed ||
                serve_one(handler, is_stopping) == AfterRequest::close) {
                return AfterRequest::close;
            }
        }
    }

private:
    enum class Intake : std::uint8_t { nothing, part, whole, closed };

    /// Reads a request's header as far as it is there. Never waits: a client that sends its header
    /// byte by byte costs a buffer and no thread.
    Intake take_input() {
        constexpr std::size_t kPiece = 16UL << 10U;
        std::size_t searched = 0;
        while (true) {
            const std::string_view text{static_cast<const char*>(buffer_.data().data()),
                                        buffer_.size()};
            // What is too long for a header is whole enough to be refused.
            if (text.find("\r\n\r\n", searched) != std::string_view::npos ||
                text.size() > options_->limits.header_bytes) {
                return Intake::whole;
            }
            searched = text.size() < 3 ? 0 : text.size() - 3;
            const auto space = buffer_.prepare(kPiece);
            const auto n = socket_.try_read({static_cast<std::byte*>(space.data()), kPiece});
            if (!n || *n == std::size_t{0}) {
                return Intake::closed;
            }
            if (!*n) {
                return buffer_.size() == 0 ? Intake::nothing : Intake::part;
            }
            buffer_.commit(**n);
        }
    }

    AfterRequest serve_one(RequestHandler& handler, const std::function<bool()>& is_stopping) {
        Parser parser;
        parser.header_limit(options_->limits.header_bytes);
        parser.body_limit((std::numeric_limits<std::uint64_t>::max)());
        BeastStream stream{socket_};
        stream.set_deadline(Clock::now()); // all that the header needs is in the buffer
        boost::system::error_code ec;
        beast::read_header(stream, buffer_, parser, ec);
        start_ = Clock::now();
        socket_.begin_writing(options_->limits.stall_time);
        if (ec) {
            return refuse_unreadable(ec);
        }
        ServerRequest request = request_of(parser);
        std::optional<Refusal> refusal = framing_refusal(parser);
        if (!refusal && !take_target(text_of(parser.get().target()), request)) {
            refusal = Refusal{.message = "the request target must be a path"};
        }
        if (refusal) {
            return refuse(request, *refusal);
        }
        SocketBody body{socket_, buffer_, parser, options_->limits.stall_time};
        request.body = &body;
        ServerResponse response = handler.handle(request);
        const bool keep = parser.keep_alive() && body.drop_rest() && !is_stopping();
        return respond(request, response, keep ? AfterRequest::wait : AfterRequest::close);
    }

    ServerRequest request_of(const Parser& parser) const {
        ServerRequest request{.method = std::string{text_of(parser.get().method_string())},
                              .peer = peer_};
        for (const auto& field : parser.get()) {
            request.headers.add(std::string{text_of(field.name_string())},
                                std::string{text_of(field.value())});
        }
        return request;
    }

    AfterRequest refuse_unreadable(const boost::system::error_code& ec) {
        if (ec == beast::error::end_of_stream || ec == beast::error::partial_message ||
            ec == boost::system::errc::timed_out) {
            return AfterRequest::close;
        }
        const int status = ec == beast::error::header_limit  ? 431
                           : ec == beast::error::bad_version ? 505
                                                             : 400;
        return refuse({}, {.status = status, .message = "the request is not valid HTTP/1.1"});
    }

    AfterRequest refuse(const ServerRequest& request, const Refusal& refusal) {
        ServerResponse response{.status = refusal.status,
                                .headers = {{"Content-Type", "application/json; charset=utf-8"},
                                            {"X-Error-Message", refusal.message}},
                                .body = fmt::format("{{\"error\":\"{}\"}}", refusal.message)};
        return respond(request, response, AfterRequest::close);
    }

    AfterRequest
    respond(const ServerRequest& request, ServerResponse& response, AfterRequest after) {
        socket_.begin_writing(options_->limits.stall_time);
        const Result<void> sent = send(request.method == "HEAD", response, after);
        if (options_->on_access) {
            options_->on_access(
                {.peer = peer_,
                 .method = request.method,
                 .path = request.path,
                 .status = response.status,
                 .bytes_sent = socket_.written(),
                 .seconds = std::chrono::duration<double>(Clock::now() - start_).count(),
                 .user_agent = request.headers.text_or("User-Agent")});
        }
        if (sent && after == AfterRequest::wait) {
            return AfterRequest::wait;
        }
        if (sent) {
            socket_.linger();
        }
        return AfterRequest::close;
    }

    Result<void> send(bool is_head, const ServerResponse& response, AfterRequest after) {
        const bool no_body = is_head || has_no_body(response.status);
        if (const auto* text = std::get_if<std::string>(&response.body)) {
            return socket_.write(head_of(response, text->size(), after),
                                 no_body ? std::string_view{} : std::string_view{*text});
        }
        if (const auto* file = std::get_if<FileBody>(&response.body)) {
            const std::string head = head_of(response, file->length, after);
            return no_body ? socket_.write(head)
                           : socket_.write_file(head, file->file.get(), file->offset, file->length);
        }
        KB_TRY(socket_.write(head_of(response, std::nullopt, after)));
        return no_body ? Result<void>{} : send_chunks(std::get<StreamBody>(response.body));
    }

    Result<void> send_chunks(const StreamBody& body) {
        std::vector<std::byte> piece(kStreamPiece);
        while (true) {
            KB_TRY(const std::size_t n, body.next(piece));
            if (n == 0) {
                return socket_.write("0\r\n\r\n");
            }
            std::string chunk = fmt::format("{:x}\r\n", n);
            chunk += as_text(std::span{piece}.first(n));
            KB_TRY(socket_.write(chunk, "\r\n"));
        }
    }

    ServerSocket socket_;
    std::string peer_;
    const ServerOptions* options_;
    boost::beast::flat_buffer buffer_{256UL << 10U};
    ServerSocket::Time start_{};
};

ServerConnection::ServerConnection(sys::UniqueFd fd, std::string peer, const ServerOptions& options)
    : impl_{std::make_unique<Impl>(std::move(fd), std::move(peer), options)} {}

ServerConnection::~ServerConnection() = default;

int ServerConnection::descriptor() const {
    return impl_->descriptor();
}

AfterRequest ServerConnection::serve(RequestHandler& handler,
                                     const std::function<bool()>& is_stopping) {
    return impl_->serve(handler, is_stopping);
}

} // namespace kb::http
