// SPDX-License-Identifier: Apache-2.0
#include "base/words.hpp"

#include "support/catch.hpp"

#include <algorithm>

using kb::Words;

TEST_CASE("words are kept as they were given", "[base][words]") {
    Words words{"g++", "", "a b"};
    words.add("-I", "/src");
    words.add(std::string_view{"n\0l", 3});
    words.add_all(std::vector<std::string>{"-c", "x.cpp"});
    REQUIRE(words.size() == 7);
    CHECK(words[0] == "g++");
    CHECK(words[1].empty());
    CHECK(words[2] == "a b");
    CHECK(words[3] == "-I/src");
    CHECK(words[4] == std::string_view{"n\0l", 3});
    CHECK(std::vector<std::string>(words.begin(), words.end()).back() == "x.cpp");
    CHECK(std::ranges::find(words, "-c") != words.end());
    CHECK(std::ranges::find(words, "-d") == words.end());
}

TEST_CASE("lists of words differ when their words do", "[base][words]") {
    CHECK(Words{"ab", "c"} != Words{"a", "bc"});
    CHECK(Words{"a"} != Words{"a", ""});
    CHECK(Words{"a", "b"} == Words{std::vector<std::string>{"a", "b"}});
    CHECK(Words{}.empty());
    CHECK(Words{}.joined(" ").empty());
    CHECK(Words{"a", "", "b"}.joined("--") == "a----b");
}
