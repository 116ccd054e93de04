// SPDX-License-Identifier: Apache-2.0
#include "registry/settings.hpp"

#include "support/catch.hpp"

namespace kb::registry {

TEST_CASE("a new registry.toml says what holds without it", "[registry][settings]") {
    Diagnostics diagnostics;
    const auto settings = parse_settings(default_settings_text(), "registry.toml", diagnostics);
    REQUIRE(settings.has_value());
    CHECK(*settings == Settings{});
    CHECK(diagnostics.empty());
    CHECK(*parse_settings("", "registry.toml", diagnostics) == Settings{});
}

TEST_CASE("settings are read", "[registry][settings]") {
    Diagnostics diagnostics;
    const auto settings = parse_settings("listen = '[::1]:0'\n"
                                         "public-url = 'https://h/base/'\n"
                                         "anonymous-read = false\n"
                                         "trusted-publishers = ['acme']\n"
                                         "[limits]\nregular-bytes = 5\nworkers = 2\n",
                                         "registry.toml",
                                         diagnostics);
    REQUIRE(settings.has_value());
    CHECK(settings->public_url == "https://h/base");
    CHECK(settings->anonymous_read == AnonymousRead::no);
    CHECK(settings->trusted_publishers == std::vector<std::string>{"acme"});
    CHECK(settings->regular_bytes == 5);
    CHECK(settings->workers == 2);
}

TEST_CASE("mistakes in settings have a place", "[registry][settings]") {
    const std::string text = GENERATE("lisen = 'x'",
                                      "listen = 'host:99999'",
                                      "listen = 1",
                                      "public-url = 'ftp://x'",
                                      "metadata = 'postgresql'",
                                      "blobs = 's3'",
                                      "[limits]\nworkers = 0",
                                      "[limits]\nobject-bites = 1",
                                      "= broken");
    INFO(text);
    Diagnostics diagnostics;
    CHECK_FALSE(parse_settings(text, "registry.toml", diagnostics).has_value());
    REQUIRE_FALSE(diagnostics.items().empty());
    CHECK(diagnostics.items()[0].span.line >= 1);
}

TEST_CASE("addresses to listen on", "[registry][settings]") {
    CHECK(*parse_listen("127.0.0.1:8910") == ListenAddress{"127.0.0.1", 8910});
    CHECK(*parse_listen("127.0.0.1") == ListenAddress{"127.0.0.1", 8910});
    CHECK(*parse_listen(":0") == ListenAddress{"127.0.0.1", 0});
    CHECK(*parse_listen("[::1]:80") == ListenAddress{"::1", 80});
    CHECK(*parse_listen("[::1]") == ListenAddress{"::1", 8910});
    CHECK(*parse_listen("localhost:1") == ListenAddress{"127.0.0.1", 1});
    for (const char* bad :
         {"bogus", "example.org:80", "127.0.0.1:65536", "127.0.0.1:x", "[::1", "[::1]80", "h:-1"}) {
        INFO(bad);
        CHECK_FALSE(parse_listen(bad).has_value());
    }
}

} // namespace kb::registry
