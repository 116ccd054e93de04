// SPDX-License-Identifier: Apache-2.0
#include "binfmt/path_texts.hpp"

#include "support/catch.hpp"

namespace kb::binfmt {
namespace {

const std::vector<std::string> kBeginnings{"/home/", "/tmp/"};

std::vector<PathText> find(const std::string& bytes, PathSearch search = {}) {
    search.beginnings = search.beginnings.empty() ? kBeginnings : search.beginnings;
    search.range.size = search.range.size == 0 ? bytes.size() : search.range.size;
    const MemorySource source{as_bytes(bytes)};
    const auto found = find_path_texts(source, search);
    REQUIRE(found);
    return *found;
}

TEST_CASE("paths are found in any bytes", "[binfmt][paths]") {
    const std::string bytes = std::string{"\0/home/a/x.cpp\0", 15} + "gcc -I/home/b/include -O2\n" +
                              "map=/tmp/c:/home/d'\xff/tmp/e";
    std::vector<std::string> texts;
    for (const PathText& path : find(bytes)) {
        CHECK(bytes.substr(path.offset, path.text.size()) == path.text);
        texts.push_back(path.text);
    }
    CHECK(texts == std::vector<std::string>{
                       "/home/a/x.cpp", "/home/b/include", "/tmp/c", "/home/d", "/tmp/e"});
}

TEST_CASE("the middle of a longer path is no beginning", "[binfmt][paths]") {
    CHECK(find("usr/home/a ../tmp/b file:///tmp/c ${x}/tmp/d /opt/home/e /hom /homes/x").empty());
    CHECK(find("/").empty());
    CHECK(find("/home").empty());
}

TEST_CASE("a path across the border of two blocks is found once", "[binfmt][paths]") {
    constexpr std::size_t kBlock = 256UL << 10U;
    const std::string path = "/home/somebody/source.cpp";
    for (std::size_t shift = 0; shift <= path.size() + 1; ++shift) {
        CAPTURE(shift);
        std::string bytes(kBlock * 2, '\0');
        bytes.replace(kBlock - shift, path.size(), path);
        const auto found = find(bytes);
        REQUIRE(found.size() == 1);
        CHECK(found[0] == PathText{.offset = kBlock - shift, .text = path});
    }
}

TEST_CASE("parts of a file that are searched apart find what the whole does", "[binfmt][paths]") {
    const std::string bytes = "/home/first x/tmp/no /tmp/second";
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
        CAPTURE(cut);
        auto found = find(bytes, {.range = {.offset = 0, .size = cut}});
        const auto rest = find(bytes, {.range = {.offset = cut, .size = bytes.size() - cut}});
        found.insert(found.end(), rest.begin(), rest.end());
        CHECK(found == find(bytes));
    }
}

TEST_CASE("a search is bounded", "[binfmt][paths]") {
    std::string many;
    for (int i = 0; i < 50; ++i) {
        many += "/tmp/x ";
    }
    CHECK(find(many, {.limit = 7}).size() == 7);
    CHECK(find("/tmp/" + std::string(100'000, 'y'))[0].text.size() == kMaxPathText);
    const MemorySource source{as_bytes(many)};
    CHECK_FALSE(find_path_texts(
        source, {.beginnings = kBeginnings, .range = {.offset = 1, .size = many.size()}}));
}

TEST_CASE("a beginning may hold what ends a path", "[binfmt][paths]") {
    const std::vector<std::string> places{
        "/data/", "/data/my (k), v2", "/data/\xC3\xA9t\xC3\xA9 1"};
    const auto text_of = [&](const std::string& bytes) {
        const auto found = find(bytes, {.beginnings = places});
        return found.size() == 1 ? found[0].text : "found " + std::to_string(found.size());
    };
    CHECK(text_of("x /data/my (k), v2/a.cu b") == "/data/my (k), v2/a.cu");
    CHECK(text_of("/data/my (k), v2") == "/data/my (k), v2");
    CHECK(text_of("/data/my (k), v22") == "/data/my");
    CHECK(text_of("/data/\xC3\xA9t\xC3\xA9 1/a.cu") == "/data/\xC3\xA9t\xC3\xA9 1/a.cu");
}

TEST_CASE("a path goes on with letters of any language", "[binfmt][paths]") {
    for (const std::string letter : {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}) {
        CHECK(find("/home/jos" + letter + "/k.cu\"")[0].text == "/home/jos" + letter + "/k.cu");
        CHECK(find("/home/a" + letter)[0].text == "/home/a" + letter);
    }
    // Bytes that are no text, half a letter and control characters.
    for (const std::string end : {"\xFF\xA9",
                                  "\xC3",
                                  "\xE2\x82",
                                  "\xC2\x9B"
                                  "1m"}) {
        CHECK(find("/home/a" + end)[0].text == "/home/a");
    }
}

TEST_CASE("a beginning without a separator ends with its folder", "[binfmt][paths]") {
    const std::vector<std::string> places{"/srv/k"};
    const std::string bytes = "/srv/k /srv/k/x /srv/kk/x /srv/k-2 /srv/k:";
    std::vector<std::string> texts;
    for (const PathText& path : find(bytes, {.beginnings = places})) {
        texts.push_back(path.text);
    }
    CHECK(texts == std::vector<std::string>{"/srv/k", "/srv/k/x", "/srv/k"});
    const std::vector<std::string> deep{"/" + std::string(2 * kMaxPathText, 'd')};
    const auto found =
        find(std::string((256UL << 10U) - 3, ' ') + deep[0] + "/x", {.beginnings = deep});
    REQUIRE(found.size() == 1);
    CHECK(found[0].text == deep[0]);
}

TEST_CASE("paths of Windows", "[binfmt][paths]") {
    const std::vector<std::string> users{R"(\Users\)"};
    const auto found = find(R"(x C:\Users\me\a.cpp" y)", {.beginnings = users});
    REQUIRE(found.size() == 1);
    CHECK(found[0].text == R"(\Users\me\a.cpp)");
}

} // namespace
} // namespace kb::binfmt
