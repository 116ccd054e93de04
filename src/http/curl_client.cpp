// SPDX-License-Identifier: Apache-2.0
#include "http/curl_client.hpp"

#include "base/text.hpp"
#include "sys/unique_fd.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kb::http {

namespace {

constexpr std::uint64_t kMaxHeaderBytes = 256UL << 10U;
constexpr long kUploadBuffer = 1L << 20; // libcurl's default of 64 KiB costs 16x the reads
constexpr long kReceiveBuffer = 256L << 10;

struct EasyDeleter {
    void operator()(CURL* handle) const { ::curl_easy_cleanup(handle); }
};

using EasyHandle = std::unique_ptr<CURL, EasyDeleter>;

struct ListDeleter {
    void operator()(::curl_slist* list) const { ::curl_slist_free_all(list); }
};

using HeaderList = std::unique_ptr<::curl_slist, ListDeleter>;

/// Keeps SIGPIPE from the process while libcurl writes: TLS writes with write(2). Blocks it on this
/// thread and takes back one that came, so that no global handler is touched.
class PipeSignalBlocked {
public:
    PipeSignalBlocked() {
        ::sigemptyset(&pipe_);
        ::sigaddset(&pipe_, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }

    ~PipeSignalBlocked() {
        if (::sigismember(&before_, SIGPIPE) == 0) {
            const ::timespec none{};
            while (::sigtimedwait(&pipe_, nullptr, &none) == -1 && errno == EINTR) {
            }
        }
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

    PipeSignalBlocked(const PipeSignalBlocked&) = delete;
    PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

private:
    ::sigset_t pipe_{};
    ::sigset_t before_{};
};

/// One request under way: what libcurl's callbacks read and write.
struct Exchange {
    const Request* request = nullptr;
    const CurlOptions* options = nullptr;
    CURL* handle = nullptr;
    sys::UniqueFd file{};
    std::uint64_t position = 0;
    std::uint64_t header_bytes = 0;
    bool has_begun = false;
    Response response{};
    std::optional<Error> failure{}; ///< Set by a callback that ended the request.

    [[nodiscard]] bool fails(Error error) {
        failure = std::move(error);
        return false;
    }
};

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
    auto& exchange = *static_cast<Exchange*>(user);
    const std::string_view line{data, size * count};
    exchange.header_bytes += line.size();
    if (exchange.header_bytes > kMaxHeaderBytes) {
        exchange.failure =
            Error{.code = ErrorCode::corrupt, .message = "the answer's header is over 256 KiB"};
        return 0;
    }
    if (line.starts_with("HTTP/")) { // an interim answer (100, 103) or a proxy's came before
        exchange.response.headers.clear();
        return line.size();
    }
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && colon > 0) {
        exchange.response.headers.add(std::string{line.substr(0, colon)},
                                      std::string{trim(line.substr(colon + 1))});
    }
    return line.size();
}

bool take_body(Exchange& exchange, Bytes bytes) {
    long status = 0;
    ::curl_easy_getinfo(exchange.handle, CURLINFO_RESPONSE_CODE, &status);
    const Request& request = *exchange.request;
    if (request.sink && status >= 200 && status < 300) {
        if (request.on_begin && !std::exchange(exchange.has_begun, true)) {
            request.on_begin(static_cast<int>(status));
        }
        const Result<void> taken = request.sink(bytes);
        return taken ? true : exchange.fails(taken.error());
    }
    if (exchange.response.body.size() + bytes.size() > request.max_response_bytes) {
        return exchange.fails({.code = ErrorCode::corrupt,
                               .message = fmt::format("the answer is over {}",
                                                      human_bytes(request.max_response_bytes))});
    }
    exchange.response.body += as_text(bytes);
    return true;
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
    auto& exchange = *static_cast<Exchange*>(user);
    const std::string_view text{data, size * count};
    return take_body(exchange, as_bytes(text)) ? text.size() : 0;
}

/// Bytes of the request body from `position`; 0 at its end.
Result<std::size_t> read_body(Exchange& exchange, char* buffer, std::size_t room) {
    const Body& body = exchange.request->body;
    const auto wanted = static_cast<std::size_t>(
        std::min<std::uint64_t>(room, body_size(body) - exchange.position));
    if (const auto* text = std::get_if<std::string>(&body)) {
        std::memcpy(buffer, text->data() + exchange.position, wanted);
        exchange.position += wanted;
        return wanted;
    }
    const auto& slice = std::get<FileSlice>(body);
    std::size_t done = 0;
    while (done < wanted) {
        const auto n = ::pread(exchange.file.get(),
                               buffer + done,
                               wanted - done,
                               static_cast<::off_t>(slice.offset + exchange.position + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return error_from_errno(errno, fmt::format("reading '{}'", slice.path));
        }
        if (n == 0) {
            return Error{.code = ErrorCode::corrupt,
                         .message =
                             fmt::format("'{}' became shorter while it was sent", slice.path)};
        }
        done += static_cast<std::size_t>(n);
    }
    exchange.position += done;
    return done;
}

std::size_t on_read(char* buffer, std::size_t size, std::size_t count, void* user) {
    auto& exchange = *static_cast<Exchange*>(user);
    Result<std::size_t> read = read_body(exchange, buffer, size * count);
    if (!read) {
        exchange.failure = std::move(read).error();
        return CURL_READFUNC_ABORT;
    }
    return *read;
}

/// libcurl rewinds when a kept connection turns out to be dead.
int on_seek(void* user, curl_off_t offset, int origin) {
    auto& exchange = *static_cast<Exchange*>(user);
    if (origin != SEEK_SET || offset < 0 ||
        static_cast<std::uint64_t>(offset) > body_size(exchange.request->body)) {
        return CURL_SEEKFUNC_CANTSEEK;
    }
    exchange.position = static_cast<std::uint64_t>(offset);
    return CURL_SEEKFUNC_OK;
}

int on_progress(void* user, curl_off_t, curl_off_t received, curl_off_t, curl_off_t sent) {
    const auto& exchange = *static_cast<Exchange*>(user);
    if (exchange.request->progress) {
        exchange.request->progress(static_cast<std::uint64_t>(sent),
                                   static_cast<std::uint64_t>(received));
    }
    return exchange.options->cancelled && exchange.options->cancelled() ? 1 : 0;
}

/// libcurl's option calls are variadic: a wrong type is not seen by the compiler, so each kind of
/// value has one function.
void set_long(CURL* handle, CURLoption option, long value) {
    ::curl_easy_setopt(handle, option, value);
}

void set_text(CURL* handle, CURLoption option, const std::string& value) {
    ::curl_easy_setopt(handle, option, value.c_str());
}

void set_size(CURL* handle, CURLoption option, std::uint64_t value) {
    ::curl_easy_setopt(handle, option, static_cast<curl_off_t>(value));
}

void set_pointer(CURL* handle, CURLoption option, void* value) {
    ::curl_easy_setopt(handle, option, value);
}

bool append(HeaderList& list, std::string_view name, std::string_view value) {
    // "Name;" is libcurl's way to send a field without a value.
    const std::string line =
        value.empty() ? fmt::format("{};", name) : fmt::format("{}: {}", name, value);
    ::curl_slist* longer = ::curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) {
        return false;
    }
    static_cast<void>(list.release());
    list.reset(longer);
    return true;
}

Result<HeaderList> make_headers(const Request& request) {
    HeaderList list;
    bool complete = append(list, "Accept", request.headers.text_or("Accept", "*/*"));
    // Waiting for "100 Continue" costs a second with servers that do not send it.
    const std::string no_expect = "Expect:";
    ::curl_slist* longer = ::curl_slist_append(list.get(), no_expect.c_str());
    complete = complete && longer != nullptr;
    for (const Header& field : request.headers.fields()) {
        if (!is_header_name(field.name) || !is_header_value(field.value)) {
            return Error{.code = ErrorCode::corrupt,
                         .message = fmt::format("'{}' is not a legal header field",
                                                escape_control(field.name))};
        }
        if (to_lower(field.name) != "accept") {
            complete = complete && append(list, field.name, field.value);
        }
    }
    if (!request.bearer.empty()) {
        if (!is_header_value(request.bearer.reveal())) {
            return Error{.code = ErrorCode::corrupt,
                         .message = "the token holds a control character: is it a whole line?"};
        }
        complete = complete && append(list, "Authorization", "Bearer " + request.bearer.reveal());
    }
    if (request.method == Method::post && !request.headers.find("Content-Type")) {
        complete = complete && append(list, "Content-Type", "application/octet-stream");
    }
    if (!complete) {
        return Error{.code = ErrorCode::internal, .message = "out of memory"};
    }
    return list;
}

void set_body(CURL* handle, const Request& request) {
    const auto* text = std::get_if<std::string>(&request.body);
    if (request.method == Method::post && (text != nullptr || body_size(request.body) == 0)) {
        // One write for header and body: two small ones meet delayed acknowledgement (40 ms each).
        set_long(handle, CURLOPT_POST, 1);
        set_size(handle, CURLOPT_POSTFIELDSIZE_LARGE, body_size(request.body));
        ::curl_easy_setopt(handle, CURLOPT_POSTFIELDS, text == nullptr ? "" : text->data());
        return;
    }
    const bool has_body = !std::holds_alternative<std::monostate>(request.body);
    if (has_body || request.method == Method::put || request.method == Method::post) {
        set_long(handle, CURLOPT_UPLOAD, 1);
        set_size(handle, CURLOPT_INFILESIZE_LARGE, body_size(request.body));
    }
    if (request.method == Method::head) {
        set_long(handle, CURLOPT_NOBODY, 1);
    } else if (request.method != Method::get || has_body) {
        set_text(handle, CURLOPT_CUSTOMREQUEST, std::string{to_text(request.method)});
    }
}

void set_callbacks(CURL* handle, Exchange& exchange) {
    ::curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, &on_header);
    set_pointer(handle, CURLOPT_HEADERDATA, &exchange);
    ::curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &on_body);
    set_pointer(handle, CURLOPT_WRITEDATA, &exchange);
    ::curl_easy_setopt(handle, CURLOPT_READFUNCTION, &on_read);
    set_pointer(handle, CURLOPT_READDATA, &exchange);
    ::curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, &on_seek);
    set_pointer(handle, CURLOPT_SEEKDATA, &exchange);
    ::curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, &on_progress);
    set_pointer(handle, CURLOPT_XFERINFODATA, &exchange);
    set_long(handle, CURLOPT_NOPROGRESS, 0);
}

void set_connection(CURL* handle, const Request& request, const CurlOptions& options) {
    set_text(handle, CURLOPT_URL, request.url.to_wire());
    set_text(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    set_long(handle, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    set_long(handle, CURLOPT_NOSIGNAL, 1);
    set_long(handle, CURLOPT_TCP_NODELAY, 1);
    set_long(handle, CURLOPT_TCP_KEEPALIVE, 1);
    set_long(handle, CURLOPT_FOLLOWLOCATION, 0);
    set_long(handle, CURLOPT_PATH_AS_IS, 1); // a path means what the caller encoded
    set_long(handle, CURLOPT_UPLOAD_BUFFERSIZE, kUploadBuffer);
    set_long(handle, CURLOPT_BUFFERSIZE, kReceiveBuffer);
    set_long(handle, CURLOPT_HEADEROPT, CURLHEADER_SEPARATE); // a proxy sees no token of ours
    set_text(handle, CURLOPT_USERAGENT, options.user_agent);
    if (!options.ca_bundle.empty()) {
        set_text(handle, CURLOPT_CAINFO, options.ca_bundle);
    }
    if (!request.url.user_info().empty()) {
        set_text(handle, CURLOPT_USERPWD, request.url.user_info().reveal());
    } else if (request.bearer.empty() && !request.headers.find("Authorization")) {
        set_long(handle, CURLOPT_NETRC, CURL_NETRC_OPTIONAL);
    }
    if (request.range) {
        set_text(handle,
                 CURLOPT_RANGE,
                 request.range->last
                     ? fmt::format("{}-{}", request.range->first, *request.range->last)
                     : fmt::format("{}-", request.range->first));
    }
    set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, request.timeouts.connect.count());
    set_long(handle, CURLOPT_LOW_SPEED_LIMIT, 1);
    set_long(handle,
             CURLOPT_LOW_SPEED_TIME,
             std::max<long>(1, (request.timeouts.stall.count() + 999) / 1000));
    if (request.timeouts.total) {
        set_long(handle, CURLOPT_TIMEOUT_MS, std::max<long>(1, request.timeouts.total->count()));
    }
}

ErrorCode code_of(CURLcode code) {
    switch (static_cast<int>(code)) { // libcurl adds codes: -Wswitch-enum would name them all
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SEND_FAIL_REWIND:
        return ErrorCode::transient;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_LOGIN_DENIED:
        return ErrorCode::denied;
    case CURLE_ABORTED_BY_CALLBACK:
        return ErrorCode::cancelled;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return ErrorCode::unsupported;
    default:
        return ErrorCode::corrupt;
    }
}

std::string_view hint_of(CURLcode code) {
    switch (static_cast<int>(code)) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return "; check the spelling of the host and the network";
    case CURLE_COULDNT_CONNECT:
        return "; is the server running there?";
    case CURLE_PEER_FAILED_VERIFICATION:
        return "; name the authority's file with CURL_CA_BUNDLE or SSL_CERT_FILE";
    default:
        return "";
    }
}

class CurlClient final : public HttpClient {
public:
    explicit CurlClient(CurlOptions options) : options_{std::move(options)} {
        ::curl_global_init(CURL_GLOBAL_DEFAULT);
    }

    ~CurlClient() override {
        idle_.clear();
        ::curl_global_cleanup();
    }

    CurlClient(const CurlClient&) = delete;
    CurlClient& operator=(const CurlClient&) = delete;

    Result<Response> send(const Request& request) override {
        Request current = request;
        for (unsigned hops = 0;; ++hops) {
            KB_TRY(Response response, send_once(current));
            KB_TRY(auto next, next_request(current, response));
            if (!next) {
                response.final_url = std::move(current.url);
                return response;
            }
            if (hops == options_.max_redirects) {
                return Error{.code = ErrorCode::corrupt,
                             .message = fmt::format("'{}' redirects more than {} times",
                                                    request.url.redacted(),
                                                    options_.max_redirects)};
            }
            current = std::move(*next);
        }
    }

private:
    /// The handle used last: its connection is the one most likely still open.
    EasyHandle take_handle() {
        const std::lock_guard lock{mutex_};
        if (idle_.empty()) {
            return EasyHandle{::curl_easy_init()};
        }
        EasyHandle handle = std::move(idle_.back());
        idle_.pop_back();
        ::curl_easy_reset(handle.get()); // keeps connections and the name cache
        return handle;
    }

    void give_back(EasyHandle handle) {
        const std::lock_guard lock{mutex_};
        idle_.push_back(std::move(handle));
    }

    Result<Response> send_once(const Request& request) {
        EasyHandle handle = take_handle();
        KB_ASSERT(handle != nullptr, "libcurl makes a handle unless memory is gone");
        Exchange exchange{.request = &request, .options = &options_, .handle = handle.get()};
        if (const auto* slice = std::get_if<FileSlice>(&request.body)) {
            exchange.file = sys::UniqueFd{::open(slice->path.c_str(), O_RDONLY | O_CLOEXEC)};
            if (!exchange.file) {
                return error_from_errno(errno, fmt::format("opening '{}'", slice->path));
            }
        }
        KB_TRY(const HeaderList headers, make_headers(request));
        std::array<char, CURL_ERROR_SIZE> text{};
        set_connection(handle.get(), request, options_);
        set_callbacks(handle.get(), exchange);
        set_body(handle.get(), request);
        set_pointer(handle.get(), CURLOPT_HTTPHEADER, headers.get());
        set_pointer(handle.get(), CURLOPT_ERRORBUFFER, text.data());
        const PipeSignalBlocked guard;
        const CURLcode code = ::curl_easy_perform(handle.get());
        if (code != CURLE_OK) { // the handle goes, and its connection in an unknown state with it
            return failure(exchange, code, text.data());
        }
        long status = 0;
        curl_off_t sent = 0;
        ::curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
        ::curl_easy_getinfo(handle.get(), CURLINFO_SIZE_UPLOAD_T, &sent);
        exchange.response.status = static_cast<int>(status);
        exchange.response.bytes_sent = static_cast<std::uint64_t>(sent);
        give_back(std::move(handle));
        return std::move(exchange.response);
    }

    static Error failure(Exchange& exchange, CURLcode code, const char* text) {
        if (exchange.failure) {
            return std::move(*exchange.failure);
        }
        const Request& request = *exchange.request;
        if (code == CURLE_ABORTED_BY_CALLBACK) {
            return Error{.code = ErrorCode::cancelled, .message = "interrupted"};
        }
        const std::string_view detail = *text != '\0' ? text : ::curl_easy_strerror(code);
        return Error{.code = code_of(code),
                     .message = fmt::format("{} '{}' failed: {}{}",
                                            to_text(request.method),
                                            request.url.redacted(),
                                            without_secret(escape_control(detail), request.bearer),
                                            hint_of(code))};
    }

    CurlOptions options_;
    std::mutex mutex_;
    std::vector<EasyHandle> idle_;
};

} // namespace

std::unique_ptr<HttpClient> make_curl_client(CurlOptions options) {
    return std::make_unique<CurlClient>(std::move(options));
}

} // namespace kb::http
