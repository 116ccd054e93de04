// SPDX-License-Identifier: Apache-2.0
#include "http/tls.hpp"

#include "http/curl_client.hpp"
#include "http/server.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fcntl.h>
#include <thread>

namespace kb::http {

namespace {

/// Answers with its own body, or with a file.
class Answers : public RequestHandler {
public:
    ServerResponse handle(ServerRequest& request) override {
        if (request.path == "/file") {
            return file_response(request, sys::UniqueFd{::open(file.c_str(), O_RDONLY)}, size, {});
        }
        Result<std::string> body = read_all(*request.body, 64UL << 20U);
        return {.body = body ? *std::move(body) : std::string{"broken"}};
    }

    std::string file{};
    std::uint64_t size = 0;
};

/// A certificate for 127.0.0.1 that signs itself, from the program that people use for it.
TlsFiles make_certificate(const test::TempDir& dir) {
    const TlsFiles files{.certificate = (dir / "cert.pem").string(),
                         .key = (dir / "key.pem").string()};
    const std::string command = fmt::format(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
        "/CN=test -addext subjectAltName=IP:127.0.0.1 -keyout '{}' -out '{}' >/dev/null 2>&1",
        files.key,
        files.certificate);
    // NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): a fixed command of a test
    REQUIRE(std::system(command.c_str()) == 0);
    return files;
}

} // namespace

TEST_CASE("a server with a certificate speaks TLS and nothing else", "[http][tls]") {
    const test::TempDir dir;
    const TlsFiles files = make_certificate(dir);
    const auto context = TlsContext::load(files);
    REQUIRE(context.has_value());
    Answers answers;
    answers.size = 3'000'000;
    answers.file = (dir / "file").string();
    const std::string content(answers.size, 'f');
    test::write_text(dir / "file", content);
    const auto server = HttpServer::listen({.workers = 4, .tls = *context}).value();
    CHECK(server->endpoint().starts_with("https://127.0.0.1:"));
    std::jthread thread{[&] {
        [[maybe_unused]] const Result<void> ended = server->run(answers);
    }};
    const auto url = [&](std::string_view path) {
        return Url::parse(server->endpoint() + std::string{path}).value();
    };
    const auto client = make_curl_client({.ca_bundle = files.certificate});
    for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{3'000'000}}) {
        const std::string body(size, 'b');
        const auto echoed =
            client->send({.method = Method::put, .url = url("/echo"), .body = body});
        REQUIRE(echoed.has_value());
        CHECK((echoed->status == 200 && echoed->body == body));
    }
    const auto file = client->send({.url = url("/file")});
    REQUIRE(file.has_value());
    CHECK(file->body == content);
    // Somebody who does not know the certificate, and somebody who speaks in the clear.
    CHECK(make_curl_client({})->send({.url = url("/file")}).error().code == ErrorCode::denied);
    const std::string clear = "http" + server->endpoint().substr(5) + "/file";
    // A new client: curl 8.14 takes an open TLS connection for the same address in the clear, too.
    CHECK_FALSE(make_curl_client({})->send({.url = Url::parse(clear).value()}).has_value());
    CHECK(client->send({.url = url("/file")}).has_value());
    server->stop();
}

TEST_CASE("certificate and key that cannot be used are named", "[http][tls]") {
    const test::TempDir dir;
    const TlsFiles files = make_certificate(dir);
    test::write_text(dir / "text", "not a certificate\n");
    const auto missing = TlsContext::load({.certificate = (dir / "nope").string()});
    REQUIRE_FALSE(missing.has_value());
    CHECK(missing.error().message.contains("nope' is no readable certificate"));
    const auto wrong =
        TlsContext::load({.certificate = files.certificate, .key = (dir / "text").string()});
    REQUIRE_FALSE(wrong.has_value());
    CHECK(wrong.error().message.contains("text' is no readable key"));
}

} // namespace kb::http
