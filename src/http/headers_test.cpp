// SPDX-License-Identifier: Apache-2.0
#include "http/headers.hpp"

#include "support/catch.hpp"

using kb::http::Headers;

TEST_CASE("header names are found without case and replaced together", "[http][headers]") {
    Headers headers{{.name = "X-Repo-Commit", .value = "abc"},
                    {.name = "x-repo-commit", .value = "d"}};
    CHECK(headers.find("X-REPO-COMMIT") == "abc");
    CHECK(headers.count("x-Repo-commit") == 2);
    headers.set("X-Repo-Commit", "e");
    CHECK(headers.count("x-repo-commit") == 1);
    CHECK(headers.text_or("x-repo-commit") == "e");
    headers.remove("X-REPO-COMMIT");
    CHECK_FALSE(headers.find("X-Repo-Commit").has_value());
    CHECK(headers.text_or("x-repo-commit", "none") == "none");
}

TEST_CASE("no header text can start another field", "[http][headers]") {
    CHECK(kb::http::is_header_name("X-Error-Code"));
    CHECK_FALSE(kb::http::is_header_name(""));
    CHECK_FALSE(kb::http::is_header_name("a b"));
    CHECK_FALSE(kb::http::is_header_name("a:"));
    CHECK(kb::http::is_header_value("a\tb \xc3\xa4"));
    CHECK_FALSE(kb::http::is_header_value("a\r\nX: y"));
    CHECK_FALSE(kb::http::is_header_value(std::string_view{"a\0b", 3}));
    CHECK_FALSE(kb::http::is_header_value("a\x7f"));
}
