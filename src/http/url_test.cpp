// SPDX-License-Identifier: Apache-2.0
#include "http/url.hpp"

#include "support/catch.hpp"

using kb::http::Url;

namespace {

Url url(std::string_view text) {
    auto parsed = Url::parse(text);
    INFO(text);
    REQUIRE(parsed.has_value());
    return std::move(parsed).value();
}

} // namespace

TEST_CASE("an address is taken apart and printed for the wire", "[http][url]") {
    const auto [text, host, port, path, query, wire] =
        GENERATE(table<const char*, const char*, int, const char*, const char*, const char*>({
            {"http://h", "h", 80, "/", "", "http://h/"},
            {"HTTPS://Hub.Example:443/a", "hub.example", 443, "/a", "", "https://hub.example/a"},
            {"http://127.0.0.1:8910/a%2Fb?x=1#frag",
             "127.0.0.1",
             8910,
             "/a%2Fb",
             "x=1",
             "http://127.0.0.1:8910/a%2Fb?x=1"},
            {"http://[::1]:8910/", "[::1]", 8910, "/", "", "http://[::1]:8910/"},
            {"http://h:/x?", "h", 80, "/x", "", "http://h/x"},
            {"https://u:p@h/x", "h", 443, "/x", "", "https://h/x"},
        }));
    const Url parsed = url(text);
    CHECK(parsed.host() == host);
    CHECK(parsed.port() == port);
    CHECK(parsed.path() == path);
    CHECK(parsed.query() == query);
    CHECK(parsed.to_wire() == wire);
    CHECK(url(parsed.to_wire()) == parsed);
}

TEST_CASE("what is no address is refused", "[http][url]") {
    const auto* text = GENERATE("",
                                "hub.example",
                                "ftp://h/",
                                "http://",
                                "http:///x",
                                "http://h:0/",
                                "http://h:65536/",
                                "http://h:8a/",
                                "http://h h/",
                                "http://h/\r\nX: y",
                                "http://h\xc3\xa4/",
                                "http://[::1/",
                                "http://h_%41/",
                                "file:///etc/passwd");
    CHECK_FALSE(Url::parse(text).has_value());
}

TEST_CASE("an error about an address never repeats its password", "[http][url]") {
    const auto bad = Url::parse("http://user:hunter2@h:99999/");
    REQUIRE_FALSE(bad.has_value());
    CHECK_FALSE(bad.error().to_text().contains("hunter2"));
}

TEST_CASE("people see neither user info nor signatures", "[http][url]") {
    CHECK(url("https://u:p@h:1/a?X-Sig=abc&cursor=b&recursive=true").redacted() ==
          "https://***@h:1/a?X-Sig=***&cursor=b&recursive=true");
    CHECK(url("http://h/a").redacted() == "http://h/a");
    CHECK(url("http://h/a?averyveryverylongtoken").redacted() ==
          "http://h/a?averyveryverylongtoken=***");
}

TEST_CASE("an endpoint with a path prefixes every call", "[http][url]") {
    CHECK(url("http://h/art/").below("/api/x?q=1").to_wire() == "http://h/art/api/x?q=1");
    CHECK(url("http://h?old=1").below("/api").to_wire() == "http://h/api");
}

TEST_CASE("references resolve as RFC 3986 says", "[http][url]") {
    const auto [reference, expected] = GENERATE(table<const char*, const char*>({
        {"/x?y", "http://h:8/x?y"},
        {"x", "http://h:8/a/b/x"},
        {"../x", "http://h:8/a/x"},
        {"../../../../x/.", "http://h:8/x/"},
        {"?z=1", "http://h:8/a/b/c?z=1"},
        {"", "http://h:8/a/b/c?q=0"},
        {"//other/x", "http://other/x"},
        {"https://other:1/x", "https://other:1/x"},
    }));
    const auto resolved = url("http://h:8/a/b/c?q=0").resolve(reference);
    REQUIRE(resolved.has_value());
    CHECK(resolved->to_wire() == expected);
}

TEST_CASE("a reference to another scheme is refused", "[http][url]") {
    CHECK_FALSE(url("http://h/").resolve("file:///etc/passwd").has_value());
    CHECK_FALSE(url("http://h/").resolve("javascript:alert(1)").has_value());
}

TEST_CASE("origins compare scheme, host and port", "[http][url]") {
    CHECK(url("http://h/a").has_origin_of(url("http://H:80/b?c")));
    CHECK_FALSE(url("http://h/").has_origin_of(url("https://h/")));
    CHECK_FALSE(url("http://h/").has_origin_of(url("http://h:81/")));
    CHECK_FALSE(url("http://h/").has_origin_of(url("http://h.evil/")));
}
