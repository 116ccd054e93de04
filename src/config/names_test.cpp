// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"
#include "config/decode.hpp"
#include "support/catch.hpp"

using kb::config::GitUrl;
using kb::config::KernelName;

TEST_CASE("a kernel name is lower case, with digits and inner dashes", "[config][names]") {
    for (const std::string_view good : {"ab", "a1", "a--b", "flash-attention", "relu2d"}) {
        CAPTURE(good);
        REQUIRE(KernelName::parse(good));
        CHECK(KernelName::parse(good)->text() == good);
    }
    for (const std::string_view bad :
         {"", "a", "1a", "-a", "a-", "aB", "a_b", "a b", "äb", "ab\n"}) {
        CAPTURE(bad);
        CHECK_FALSE(KernelName::parse(bad));
    }
    CHECK(KernelName::parse("flash-attention-3")->module_name() == "flash_attention_3");
}

TEST_CASE("native dependencies round-trip", "[config][names]") {
    for (const std::string_view name : kb::config::native_dependency_names()) {
        const auto parsed = kb::config::parse_native_dependency(name);
        REQUIRE(parsed);
        CHECK(kb::config::to_text(*parsed) == name);
    }
    CHECK(kb::config::native_dependency_names().size() == 11);
    CHECK_FALSE(kb::config::parse_native_dependency("cutlass_9_9"));
    CHECK_FALSE(kb::config::parse_native_dependency("Torch"));
}

TEST_CASE("git URLs of the seven schemes and the short ssh form", "[config][git_url]") {
    const auto [text, normal] = GENERATE(table<std::string, std::string>({
        {"https://git.example.org/team/x", "https://git.example.org/team/x"},
        {"HTTPS://a/b", "HTTPS://a/b"},
        {" https://a/b ", "https://a/b"},
        {"git+ssh://h:22/x", "git+ssh://h:22/x"},
        {"https:///x", "https:///x"},
        {"ssh://", "ssh://"},
        {"git:x", "git:x"},
        {"https://u:p@a:65535/x", "https://u:p@a:65535/x"},
        {"https://[::1]/x", "https://[::1]/x"},
        {"https://[::1.2.3.4]/x", "https://[::1.2.3.4]/x"},
        {"https://0x7f.1/x", "https://0x7f.1/x"},
        {"https://bücher.example/x", "https://bücher.example/x"},
        {"git@host:team/x.git", "ssh://git@host/team/x.git"},
        {"user@host:p:q", "ssh://user@host/p:q"},
        {"1h:p", "ssh://1h/p"},
    }));
    CAPTURE(text);
    std::string reason;
    const auto url = GitUrl::parse(text, reason);
    REQUIRE(url);
    CHECK(url->text() == text);
    CHECK(url->normalised() == normal);
}

TEST_CASE("what is no git URL says why", "[config][git_url]") {
    for (const std::string_view text : {"",
                                        "x",
                                        ":p",
                                        "git@h:",
                                        "git@h:/p",
                                        "https://",
                                        "https://a b/c",
                                        "https://a:65536/x",
                                        "https://[::1/x",
                                        "https://1.2.3.256/x",
                                        "https://1.2.3.4.5/x",
                                        "https://a.1/",
                                        "https://%zz/x",
                                        "https://u@/x",
                                        "ssh://h^x/y",
                                        "g@[h]:p",
                                        "h x:p",
                                        "https://xn--a/",
                                        "https://[1:2:3:4:5:6:7:8:9]/",
                                        "https://[::1.2.3.04]/",
                                        "https://[1::2::3]/"}) {
        CAPTURE(text);
        std::string reason;
        CHECK_FALSE(GitUrl::parse(text, reason));
        CHECK(reason == "'" + std::string{text} + "' is not a git URL");
    }
    std::string reason;
    CHECK_FALSE(GitUrl::parse("ftp://a/b", reason));
    CHECK(reason == "git has no URL scheme 'ftp' here; use one of 'https', 'http', 'git', 'ssh', "
                    "'git+ssh', 'git+https' and 'git+http', or 'user@host:path'");
}

TEST_CASE("a bound is two numbers", "[config][version]") {
    std::string problem;
    for (const std::string_view good :
         {"12.6", " 12.6 ", "012.06", "+12.+6", "\u00a012.6\u3000", "12.6\n"}) {
        CAPTURE(good);
        REQUIRE(kb::config::parse_bound(good, problem));
        CHECK(kb::config::parse_bound(good, problem)->to_text() == "12.6");
    }
    CHECK(kb::config::parse_bound("12.0", problem)->to_text() == "12.0");
    const auto [bad, why] = GENERATE(table<std::string, std::string>({
        {"", "is empty"},
        {" ", "is empty"},
        {"12", "has 1 number"},
        {"12.6.1", "has 3 numbers"},
        {"12.", "is not made of numbers"},
        {"1.-2", "is not made of numbers"},
        {"++1.2", "is not made of numbers"},
        {"1. 2", "is not made of numbers"},
        {"18446744073709551616.0", "is not made of numbers"},
    }));
    CAPTURE(bad);
    CHECK_FALSE(kb::config::parse_bound(bad, problem));
    CHECK(problem == why);
}
