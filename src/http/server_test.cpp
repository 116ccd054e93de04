// SPDX-License-Identifier: Apache-2.0
#include "http/server.hpp"

#include "http/curl_client.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <atomic>
#include <fcntl.h>
#include <mutex>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace kb::http {

namespace {

using Handle = std::function<ServerResponse(ServerRequest&)>;

/// A server on a free port that answers with `handle` until the end of the scope.
class Running : public RequestHandler {
public:
    explicit Running(Handle handle, ServerOptions options = {}) : handle_{std::move(handle)} {
        options.workers = 4;
        options.on_access = [this](const AccessRecord& record) {
            const std::scoped_lock lock{mutex_};
            records_.push_back(record);
        };
        server_ = HttpServer::listen(std::move(options)).value();
        thread_ = std::jthread{[this] {
            has_run_ = server_->run(*this).has_value(); // assertions belong to the test's thread
        }};
    }

    ~Running() override { server_->stop(); }

    ServerResponse handle(ServerRequest& request) override { return handle_(request); }

    HttpServer& server() { return *server_; }

    std::vector<AccessRecord> records() {
        const std::scoped_lock lock{mutex_};
        return records_;
    }

    void stop_and_join() {
        server_->stop();
        thread_.join();
        CHECK(has_run_);
    }

private:
    Handle handle_;
    std::mutex mutex_;
    bool has_run_ = false;
    std::vector<AccessRecord> records_;
    std::unique_ptr<HttpServer> server_;
    std::jthread thread_;
};

/// A client that sends what no library would.
class RawClient {
public:
    explicit RawClient(std::uint16_t port) : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        REQUIRE(::connect(fd_.get(),
                          static_cast<const sockaddr*>(static_cast<const void*>(&address)),
                          sizeof address) == 0);
    }

    void send(std::string_view text) const {
        CHECK(::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(text.size()));
    }

    void send_if_open(std::string_view text) const {
        [[maybe_unused]] const ssize_t n =
            ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    }

    /// Until the text ends with `until`, or the server closes.
    std::string receive(std::string_view until = "\x01") const {
        std::string text;
        char c = 0;
        while (!text.ends_with(until) && ::recv(fd_.get(), &c, 1, 0) == 1) {
            text += c;
        }
        return text;
    }

    void close_sending() const { ::shutdown(fd_.get(), SHUT_WR); }

private:
    sys::UniqueFd fd_;
};

ServerResponse text_response(std::string text) {
    return {.headers = {{"Content-Type", "text/plain"}}, .body = std::move(text)};
}

ServerResponse echo(ServerRequest& request) {
    Result<std::string> body = read_all(*request.body, 1UL << 20U);
    if (!body) {
        return {.status = 413, .body = body.error().message};
    }
    return text_response(fmt::format(
        "{} {} ?{} [{}]", request.method, request.path, request.query, *std::move(body)));
}

std::string talk(Running& running, std::string_view request) {
    const RawClient client{running.server().port()};
    client.send(request);
    client.close_sending();
    return client.receive();
}

} // namespace

TEST_CASE("a request is answered on a connection that stays open", "[http][server]") {
    Running running{echo};
    const RawClient client{running.server().port()};
    for (int i = 0; i < 3; ++i) {
        client.send("GET /a%2Fb?x=1 HTTP/1.1\r\nHost: h\r\n\r\n");
        const std::string answer = client.receive("[]");
        CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
        CHECK(answer.contains("\r\nContent-Length: 18\r\n"));
        CHECK(answer.contains("GMT\r\n"));
        CHECK(answer.ends_with("\r\n\r\nGET /a%2Fb ?x=1 []"));
        CHECK_FALSE(answer.contains("Connection:"));
    }
}

TEST_CASE("requests sent at once are answered in order", "[http][server]") {
    Running running{echo};
    std::string requests;
    for (int i = 0; i < 200; ++i) {
        requests += fmt::format("POST /{} HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", i);
    }
    const std::string answers = talk(running, requests);
    std::size_t at = 0;
    for (int i = 0; i < 200; ++i) {
        at = answers.find(fmt::format("POST /{} ?", i), at);
        REQUIRE(at != std::string::npos);
    }
}

TEST_CASE("requests that two parsers could read differently are refused", "[http][server]") {
    Running running{echo};
    const std::string head = "POST / HTTP/1.1\r\nHost: h\r\n";
    const std::string request =
        GENERATE_COPY(head + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                      head + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
                      head + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
                      head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx",
                      head + "Content-Length: 1, 1\r\n\r\nx",
                      head + "Content-Length: -1\r\n\r\nx",
                      head + "Content-Length: +1\r\n\r\nx",
                      head + "Content-Length: 0x1\r\n\r\nx",
                      head + "Content-Length: 99999999999999999999\r\n\r\nx",
                      head + "Content-Length : 1\r\n\r\nx",
                      head + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
                      head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                      head + "Transfer-Encoding: identity\r\n\r\n",
                      head + "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
                      head + "Expect: magic\r\nContent-Length: 1\r\n\r\nx",
                      std::string{"GET / HTTP/1.1\r\n\r\n"},
                      std::string{"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
                      std::string{"GET / HTTP/1.1\r\nHost: h\r\n folded: x\r\nBad Name: x\r\n\r\n"},
                      std::string{"GET relative HTTP/1.1\r\nHost: h\r\n\r\n"},
                      std::string{"GET / HTTP/2.0\r\nHost: h\r\n\r\n"},
                      std::string{"nonsense\r\n\r\n"},
                      "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(40'000, 'x') + "\r\n\r\n");
    INFO(request.substr(0, 200));
    const std::string answer = talk(running, request + "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n");
    CHECK((answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 5")));
    CHECK(answer.contains("\r\nConnection: close\r\n"));
    CHECK_FALSE(answer.contains("smuggled"));
}

TEST_CASE("an absolute target loses its host", "[http][server]") {
    Running running{echo};
    CHECK(
        talk(running, "GET http://evil/x?y HTTP/1.1\r\nHost: h\r\n\r\n").ends_with("GET /x ?y []"));
}

TEST_CASE("chunked bodies are read, broken ones end the connection", "[http][server]") {
    Running running{echo};
    const std::string head = "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    CHECK(talk(running, head + "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n").ends_with("[abcdefg]"));
    CHECK(talk(running, head + "3\r\nabc\r\n").find("[abc]") == std::string::npos);
    CHECK(talk(running, head + "zz\r\nabc\r\n").find("[abc]") == std::string::npos);
    CHECK(talk(running, head + "ffffffffffffffffff\r\nabc").find("[abc]") == std::string::npos);
}

TEST_CASE("a client that waits for leave to send gets it when the body is read", "[http][server]") {
    Running running{[](ServerRequest& request) {
        return request.path == "/no" ? ServerResponse{.status = 403, .body = "no"} : echo(request);
    }};
    const std::string head =
        " HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    const RawClient client{running.server().port()};
    client.send("PUT /yes" + head);
    CHECK(client.receive("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("ok");
    CHECK(client.receive("]").ends_with("[ok]"));

    const RawClient refused{running.server().port()};
    refused.send("PUT /no" + head);
    const std::string answer = refused.receive();
    CHECK(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"));
    CHECK(answer.contains("Connection: close"));
}

TEST_CASE("a body that nobody reads is dropped when short, else the connection ends",
          "[http][server]") {
    Running running{[](ServerRequest&) {
        return text_response("unread");
    }};
    const std::string next = "GET /next HTTP/1.1\r\nHost: h\r\n\r\n";
    const auto post = [](std::size_t n) {
        return fmt::format(
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{}", n, std::string(n, 'x'));
    };
    const std::string two = talk(running, post(1000) + next);
    CHECK(two.find("unread") != two.rfind("unread"));
    const std::string one = talk(running, post(2'000'000) + next);
    CHECK(one.contains("unread"));
    CHECK(one.find("unread") == one.rfind("unread"));
    CHECK(one.contains("Connection: close"));
}

TEST_CASE("files and parts of files are sent, HEAD only announces", "[http][server]") {
    const test::TempDir dir;
    std::string content;
    for (int i = 0; i < 300'000; ++i) {
        content += fmt::format("{:07}\n", i);
    }
    test::write_text(dir / "f", content);
    Running running{[&](ServerRequest& request) {
        return file_response(request,
                             sys::UniqueFd{::open((dir / "f").c_str(), O_RDONLY | O_CLOEXEC)},
                             content.size(),
                             {{"ETag", "\"e\""}});
    }};
    const auto client = make_curl_client({});
    const Url url = *Url::parse(running.server().endpoint() + "/f");
    CHECK(client->send({.url = url})->body == content);
    const Result<Response> part =
        client->send({.url = url, .range = ByteRange{.first = 8, .last = 15}});
    CHECK(part->status == 206);
    CHECK(part->body == "0000001\n");
    CHECK(client->send({.url = url, .range = ByteRange{.first = content.size()}})->status == 416);
    const std::string head = talk(running, "HEAD /f HTTP/1.1\r\nHost: h\r\n\r\n");
    CHECK(head.contains(fmt::format("Content-Length: {}\r\n", content.size())));
    CHECK(head.ends_with("\r\n\r\n"));
}

TEST_CASE("a body of unknown length is sent in chunks", "[http][server]") {
    Running running{[](ServerRequest&) {
        auto left = std::make_shared<std::size_t>(3); // shared with the copy inside the function
        return ServerResponse{.body = StreamBody{[left](std::span<std::byte> out) {
                                  const std::size_t n = *left > 0 ? 1000 : 0;
                                  std::fill_n(out.begin(), n, std::byte{'a'});
                                  *left -= n > 0 ? 1 : 0;
                                  return Result<std::size_t>{n};
                              }}};
    }};
    const auto client = make_curl_client({});
    CHECK(client->send({.url = *Url::parse(running.server().endpoint())})->body ==
          std::string(3000, 'a'));
}

TEST_CASE("a header value cannot start a new line", "[http][server]") {
    Running running{[](ServerRequest&) {
        ServerResponse response = text_response("x");
        response.headers.add("X-Bad", "a\r\nX-Evil: 1");
        response.headers.add("X-Good", "b");
        return response;
    }};
    const std::string answer = talk(running, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    CHECK_FALSE(answer.contains("X-Evil"));
    CHECK(answer.contains("X-Good: b\r\n"));
}

TEST_CASE("slow headers and silent connections are closed", "[http][server]") {
    ServerOptions options;
    options.limits.header_time = std::chrono::milliseconds{100};
    options.limits.idle_time = std::chrono::milliseconds{100};
    options.limits.stall_time = std::chrono::milliseconds{100};
    Running running{echo, options};
    const RawClient slow_header{running.server().port()};
    slow_header.send("GET / HT");
    CHECK(slow_header.receive().empty());
    const RawClient slow_body{running.server().port()};
    slow_body.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab");
    CHECK_FALSE(slow_body.receive().contains("[ab"));
    const RawClient silent{running.server().port()};
    CHECK(silent.receive().empty());
}

TEST_CASE("headers that trickle hold no worker and get no more time", "[http][server]") {
    ServerOptions options;
    options.limits.header_time = std::chrono::milliseconds{1500};
    Running running{echo, options};
    std::vector<RawClient> slow; // twice as many as there are workers
    for (int i = 0; i < 8; ++i) {
        slow.emplace_back(running.server().port());
        slow.back().send("GET /slow HTTP/1.1\r\nHost: h\r\nX-Padding: ");
    }
    const auto start = std::chrono::steady_clock::now();
    CHECK(talk(running, "GET /quick HTTP/1.1\r\nHost: h\r\n\r\n").contains("[]"));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds{1000});
    slow[0].send("x\r\n\r\n");
    CHECK(slow[0].receive("[]").contains("GET /slow"));
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds{3000}) {
        // A byte now and then keeps nothing alive.
        ::usleep(200'000);
        slow[1].send_if_open("y");
    }
    CHECK(slow[1].receive().empty());
}

TEST_CASE("stopping lets a request finish and closes idle connections", "[http][server]") {
    std::atomic<bool> begun{false};
    std::atomic<bool> go_on{false};
    Running running{[&](ServerRequest&) {
        begun = true;
        begun.notify_all();
        go_on.wait(false);
        return text_response("finished");
    }};
    const RawClient idle{running.server().port()};
    const RawClient busy{running.server().port()};
    busy.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    begun.wait(false);
    std::jthread stopper{[&] {
        running.server().stop();
    }}; // asserts belong to one thread
    CHECK(idle.receive().empty());
    go_on = true;
    go_on.notify_all();
    const std::string answer = busy.receive();
    CHECK(answer.ends_with("finished"));
    CHECK(answer.contains("Connection: close"));
    stopper.join();
    running.stop_and_join();
}

TEST_CASE("a stopped server still says where it was", "[http][server]") {
    Running running{[](ServerRequest&) {
        return text_response("never asked");
    }};
    const std::string endpoint = running.server().endpoint();
    running.stop_and_join();
    CHECK(running.server().endpoint() == endpoint);
}

TEST_CASE("a descriptor stops the server as well", "[http][server]") {
    std::array<int, 2> pipe{};
    REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
    const sys::UniqueFd read_end{pipe[0]};
    const sys::UniqueFd write_end{pipe[1]};

    class Handler : public RequestHandler {
        ServerResponse handle(ServerRequest& request) override { return echo(request); }
    } handler;

    const auto server = HttpServer::listen({.workers = 2}).value();
    bool has_run = false;
    std::jthread thread{[&] {
        has_run = server->run(handler, read_end.get()).has_value();
    }};
    CHECK(::write(write_end.get(), "x", 1) == 1);
    thread.join();
    CHECK(has_run);
}

TEST_CASE("every answer is recorded without its query", "[http][server]") {
    Running running{echo};
    talk(running, "GET /p?secret=1 HTTP/1.1\r\nHost: h\r\nUser-Agent: u\r\n\r\n");
    running.stop_and_join();
    const std::vector<AccessRecord> records = running.records();
    REQUIRE(records.size() == 1);
    CHECK(records[0].method == "GET");
    CHECK(records[0].path == "/p");
    CHECK(records[0].status == 200);
    CHECK(records[0].peer == "127.0.0.1");
    CHECK(records[0].user_agent == "u");
    CHECK(records[0].bytes_sent > 100);
}

TEST_CASE("a taken port and a bad address are errors with the address", "[http][server]") {
    const auto first = HttpServer::listen({}).value();
    const auto second = HttpServer::listen({.port = first->port()});
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().code == ErrorCode::denied);
    CHECK(second.error().message.contains(fmt::format("127.0.0.1:{}", first->port())));
    CHECK_FALSE(HttpServer::listen({.address = "localhost"}).has_value());
}

TEST_CASE("loopback addresses are known", "[http][server]") {
    CHECK(is_loopback("127.0.0.1"));
    CHECK(is_loopback("127.9.9.9"));
    CHECK(is_loopback("::1"));
    CHECK_FALSE(is_loopback("0.0.0.0"));
    CHECK_FALSE(is_loopback("::"));
    CHECK_FALSE(is_loopback("192.168.1.1"));
    CHECK_FALSE(is_loopback("localhost"));
}

} // namespace kb::http
