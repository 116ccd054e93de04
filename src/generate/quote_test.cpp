// SPDX-License-Identifier: Apache-2.0
#include "generate/quote.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>

namespace kb::generate {

namespace {

/// Everything that is special to one of the languages.
const std::vector<std::string> kNasty{
    "plain",
    "",
    " leading and trailing ",
    "a b",
    "semi;colon;;",
    "quote\" and 'single'",
    "back\\slash \\n \\",
    "$dollar ${brace} $<genex> $$",
    "star * ? [x] ~ #hash !",
    "per%cent @at@ `cmd` $(cmd)",
    "colon:in:path",
    "umlaut \xC3\xA4 and \xE2\x82\xAC",
    "tab\there",
};

/// What the program prints, without a trailing marker that keeps white space at the end.
std::string run(const std::string& command) {
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe{::popen(command.c_str(), "r"), ::pclose};
    REQUIRE(pipe);
    std::string out;
    std::array<char, 4096> buffer{};
    while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
        out.append(buffer.data(), n);
    }
    return out;
}

} // namespace

TEST_CASE("a shell word reads back as the text", "[generate][quote]") {
    for (const std::string& text : kNasty) {
        CAPTURE(text);
        CHECK(run("printf '%s|' " + quote_shell(text)) == text + "|");
    }
    CHECK(quote_shell("-O3") == "-O3");
    CHECK(quote_shell("a'b\nc") == "'a'\\''b\nc'");
}

TEST_CASE("a CMake argument reads back as the text", "[generate][quote]") {
    const test::TempDir dir;
    std::string script = "cmake_minimum_required(VERSION 3.25)\n";
    std::string expected;
    for (const std::string& text : kNasty) {
        script += fmt::format("file(APPEND out {} \"|\")\n", quote_cmake(text));
        // As the only member of a list.
        script += fmt::format("set(x {})\nforeach(i IN LISTS x)\nfile(APPEND out \"${{i}}\" "
                              "\"|\")\nendforeach()\n",
                              quote_cmake_item(text));
        expected += text + "|" + (text.empty() ? "" : text + "|");
    }
    test::write_text(dir / "s.cmake", script);
    run("cd " + quote_shell(dir.path().string()) + " && cmake -P s.cmake 2>&1");
    CHECK(test::read_text(dir / "out") == expected);
}

TEST_CASE("a Python string reads back as the text", "[generate][quote]") {
    std::string program = "import sys\n";
    std::string expected;
    for (const std::string& text : kNasty) {
        program += fmt::format("sys.stdout.write({} + '|')\n", quote_python(text));
        expected += text + "|";
    }
    program += "sys.stdout.write(" + quote_python("a\nb\r\x01\x7F") + ")\n";
    expected += "a\nb\r\x01\x7F";
    const test::TempDir dir;
    test::write_text(dir / "p.py", program);
    CHECK(run("PYTHONUTF8=1 python3 " + quote_shell((dir / "p.py").string())) == expected);
}

TEST_CASE("Ninja gives a path and a value to its command as they are", "[generate][quote]") {
    const test::TempDir dir;
    std::string build = "rule r\n  command = printf '%s|' $v > $out\n";
    std::size_t n = 0;
    for (const std::string& text : kNasty) {
        const std::string path = fmt::format("out {}:$x y", n++);
        build += fmt::format("build {}: r\n  v = {}\n",
                             quote_ninja_path(path),
                             quote_ninja_value(quote_shell(text)));
    }
    test::write_text(dir / "build.ninja", build);
    run("cd " + quote_shell(dir.path().string()) + " && ninja 2>&1");
    n = 0;
    for (const std::string& text : kNasty) {
        const std::string path = fmt::format("out {}:$x y", n++);
        CAPTURE(path);
        CHECK(test::read_text(dir / path) == text + "|");
    }
}

TEST_CASE("control characters have one spelling in JSON, TOML and C", "[generate][quote]") {
    const std::string text = "a\"\\\n\t\x01\x7F";
    CHECK(quote_json(text) == R"("a\"\\\n\t\u0001\u007f")");
    CHECK(quote_toml(text) == R"("a\"\\\n\t\u0001\u007F")");
    CHECK(quote_c(text) == R"("a\"\\\n\t\001\177")");
}

} // namespace kb::generate
