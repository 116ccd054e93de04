// SPDX-License-Identifier: Apache-2.0
#include "hub/commit_stream.hpp"

#include "support/catch.hpp"

#include <fmt/format.h>

namespace kb::hub {

namespace {

const std::string kHeader = R"({"key":"header","value":{"summary":"s","description":"d"}})"
                            "\n";

struct Seen {
    CommitOp op{};
    std::string content{};

    bool operator==(const Seen&) const = default;
};

class Recorder : public CommitSink {
public:
    Result<void> on_header(CommitHeader value) override {
        header = std::move(value);
        return {};
    }

    Result<void> on_content(Bytes bytes) override {
        content += as_text(bytes);
        largest = std::max(largest, bytes.size());
        return {};
    }

    Result<void> on_content_restart() override {
        content.clear();
        return {};
    }

    Result<void> on_operation(CommitOp op) override {
        ops.push_back({.op = std::move(op), .content = std::exchange(content, {})});
        return {};
    }

    CommitHeader header{};
    std::vector<Seen> ops{};
    std::string content{};
    std::size_t largest = 0;
};

Result<Recorder>
parse(std::string_view text, std::size_t piece = 1UL << 20U, CommitLimits limits = {}) {
    Recorder recorder;
    CommitParser parser{recorder, limits};
    while (!text.empty()) {
        KB_TRY(parser.feed(as_bytes(text.substr(0, piece))));
        text.remove_prefix(std::min(piece, text.size()));
    }
    KB_TRY(parser.finish());
    return recorder;
}

Seen file(std::string_view path, std::string content) {
    return {.op = FileOp{.path = RelPath::literal(path)}, .content = std::move(content)};
}

std::string error_of(std::string_view text) {
    const Result<Recorder> parsed = parse(text);
    return parsed ? "accepted" : parsed.error().to_text();
}

} // namespace

TEST_CASE("what the writer writes the parser reads, in pieces of any size", "[hub][commit]") {
    const digest::Digest oid = digest::sha256("x");
    const std::string binary = std::string{"\0\x01\xFF\"\\\n", 6};
    std::string text = write_line(CommitHeader{.summary = "add \"x\"\n",
                                               .description = "\xC3\xA9",
                                               .parent_commit = std::string(40, 'a')});
    text += write_line(FileOp{.path = RelPath::literal("a/b.py")}, binary);
    text += write_line(FileOp{.path = RelPath::literal("empty")}, "");
    text += write_line(LfsFileOp{.path = RelPath::literal("a.so"), .oid = oid, .size = 12});
    text += write_line(LfsFileOp{.path = RelPath::literal("copy.so"), .oid = oid});
    text += write_line(DeletedFileOp{.path = RelPath::literal("old")});
    text += write_line(DeletedFolderOp{.path = RelPath::literal("build/x")});
    text += write_line(CopyFileOp{.path = RelPath::literal("c"), .source = RelPath::literal("d")});
    const std::vector<Seen> expected{
        file("a/b.py", binary),
        file("empty", ""),
        {.op = LfsFileOp{.path = RelPath::literal("a.so"), .oid = oid, .size = 12}},
        {.op = LfsFileOp{.path = RelPath::literal("copy.so"), .oid = oid}},
        {.op = DeletedFileOp{.path = RelPath::literal("old")}},
        {.op = DeletedFolderOp{.path = RelPath::literal("build/x")}},
        {.op = CopyFileOp{.path = RelPath::literal("c"), .source = RelPath::literal("d")}}};
    for (std::size_t piece = 1; piece <= text.size(); piece = piece < 40 ? piece + 1 : piece * 2) {
        INFO("pieces of " << piece);
        const Result<Recorder> seen = parse(text, piece);
        REQUIRE(seen.has_value());
        CHECK(seen->header.summary == "add \"x\"\n");
        CHECK(seen->header.description == "\xC3\xA9");
        CHECK(seen->header.parent_commit == std::string(40, 'a'));
        CHECK(seen->ops == expected);
    }
}

TEST_CASE("content may come before path and encoding", "[hub][commit]") {
    const std::string lines = GENERATE(
        R"({"key":"file","value":{"content":"aGk=","path":"a","encoding":"base64"}})",
        R"({"value":{"content":"aGk=","encoding":"base64","path":"a"},"key":"file"})",
        R"(  { "key" : "file" , "value" : { "path" : "a" , "content" : "aGk=" , "encoding" : "base64" } } )",
        R"({"key":"file","value":{"content":"hi","path":"a","encoding":"utf-8"}})",
        R"({"key":"file","value":{"content":"hi","path":"a"}})",
        R"({"key":"file","value":{"content":"\u0068i","path":"a","encoding":"utf-8"}})",
        R"({"key":"file","value":{"content":"aG\u006b\u003d","path":"a","encoding":"base64"}})",
        R"({"key":"file","value":{"x":{"content":"no","y":["content"]},"content":"hi","path":"a"}})");
    const std::size_t piece = GENERATE(std::size_t{1}, std::size_t{7}, std::size_t{1000});
    INFO(lines);
    const Result<Recorder> seen = parse(kHeader + lines, piece);
    REQUIRE(seen.has_value());
    CHECK(seen->ops == std::vector<Seen>{file("a", "hi")});
}

TEST_CASE("plain text content keeps every character", "[hub][commit]") {
    const std::string line =
        R"({"key":"file","value":{"content":"a b\n\t\"\\\/\u00e9\ud83d\ude00\u0000","path":"a","encoding":"utf-8"}})";
    const Result<Recorder> seen = parse(kHeader + line, 3);
    REQUIRE(seen.has_value());
    CHECK(seen->ops ==
          std::vector<Seen>{file("a", std::string("a b\n\t\"\\/\xC3\xA9\xF0\x9F\x98\x80\0", 15))});
}

TEST_CASE("plain text over a megabyte that is not base64 is streamed", "[hub][commit]") {
    const std::string text(3UL << 20U, ' ');
    const Result<Recorder> seen = parse(kHeader + R"({"key":"file","value":{"content":")" + text +
                                            R"(","path":"a","encoding":"utf-8"}})",
                                        64UL << 10U);
    REQUIRE(seen.has_value());
    CHECK(seen->ops.at(0).content == text);
}

TEST_CASE("long base64 content is handed on in small pieces", "[hub][commit]") {
    const std::string content(5UL << 20U, 'k');
    const std::string line = write_line(FileOp{.path = RelPath::literal("a")}, content);
    const Result<Recorder> seen = parse(kHeader + line, 64UL << 10U);
    REQUIRE(seen.has_value());
    CHECK(seen->ops.at(0).content == content);
    CHECK(seen->largest <= 256UL << 10U);
}

TEST_CASE("content of an operation that takes none is dropped", "[hub][commit]") {
    const std::string lines =
        R"({"key":"deletedFile","value":{"content":"aGk=","path":"a"}})"
        "\n"
        R"({"key":"file","value":{"content":"aG8=","path":"b","encoding":"base64"}})";
    const Result<Recorder> seen = parse(kHeader + lines);
    REQUIRE(seen.has_value());
    CHECK(seen->ops ==
          std::vector<Seen>{{.op = DeletedFileOp{.path = RelPath::literal("a")}}, file("b", "ho")});
}

TEST_CASE("a folder may be written with its slash", "[hub][commit]") {
    const Result<Recorder> seen =
        parse(kHeader + R"({"key":"deletedFolder","value":{"path":"a/b/"}})" + "\n\n");
    REQUIRE(seen.has_value());
    CHECK(seen->ops == std::vector<Seen>{{.op = DeletedFolderOp{.path = RelPath::literal("a/b")}}});
}

TEST_CASE("commit streams that mean nothing are refused", "[hub][commit]") {
    const std::string line =
        GENERATE(R"({"key":"file","value":{"content":"aGk","path":"a","encoding":"base64"}})",
                 R"({"key":"file","value":{"content":"aGk=aGk=","path":"a","encoding":"base64"}})",
                 R"({"key":"file","value":{"content":"aGl=","path":"a","encoding":"base64"}})",
                 R"({"key":"file","value":{"content":"a*k=","path":"a","encoding":"base64"}})",
                 R"({"key":"file","value":{"content":"=k==","path":"a","encoding":"base64"}})",
                 R"({"key":"file","value":{"content":"aGk=","path":"a","encoding":"gzip"}})",
                 R"({"key":"file","value":{"content":"\ud800","path":"a","encoding":"utf-8"}})",
                 R"({"key":"file","value":{"content":"\x","path":"a","encoding":"utf-8"}})",
                 R"({"key":"file","value":{"content":7,"path":"a"}})",
                 R"({"key":"file","value":{"path":"a"}})",
                 R"({"key":"file","value":{"content":"","content":"","path":"a"}})",
                 R"({"key":"file","value":{"content":"hi","path":"../a"}})",
                 R"({"key":"file","value":{"content":"hi","path":"/a"}})",
                 R"({"key":"file","value":{"content":"hi"}})",
                 R"({"key":"file","value":{"content":"hi)",
                 R"({"key":"file"})",
                 R"({"key":"rename","value":{"path":"a"}})",
                 R"({"key":"lfsFile","value":{"path":"a","oid":"abc","size":1}})",
                 R"({"key":"lfsFile","value":{"path":"a","algo":"md5","oid":"abc","size":1}})",
                 R"({"key":"header","value":{"summary":"again"}})",
                 R"([])",
                 R"({"key":"file","value":[{"content":"hi","path":"a"}]})",
                 R"(nonsense)",
                 R"({"key":"deletedFolder","value":{"path":"/"}})");
    INFO(line);
    CHECK_FALSE(parse(kHeader + line).has_value());
    CHECK_FALSE(parse(kHeader + line, 1).has_value());
}

TEST_CASE("the header comes first, once", "[hub][commit]") {
    CHECK(error_of("") == "the commit stream has no header line");
    CHECK(error_of(R"({"key":"deletedFile","value":{"path":"a"}})") ==
          "reading line 1 of the commit stream: the header must come first");
    CHECK(error_of(kHeader + kHeader) ==
          "reading line 2 of the commit stream: the header must come once");
    CHECK_FALSE(
        parse(R"({"key":"header","value":{"summary":"s","parentCommit":"main"}})").has_value());
    CHECK_FALSE(
        parse(R"({"key":"header","value":{"summary":"s","parentCommit":"abcd"}})").has_value());
    CHECK(parse(R"({"key":"header","value":{"summary":"s","parentCommit":"abcde"}})").has_value());
}

TEST_CASE("lines, operations and contents are bounded", "[hub][commit]") {
    const std::string deleted = R"({"key":"deletedFile","value":{"path":"a"}})"
                                "\n";
    CHECK(parse(kHeader + deleted + deleted, 99, {.max_operations = 2}).has_value());
    CHECK_FALSE(
        parse(kHeader + deleted + deleted + deleted, 99, {.max_operations = 2}).has_value());
    const std::string junk = R"({"key":"deletedFile","value":{"junk":")" + std::string(70'000, 'x');
    CHECK_FALSE(parse(kHeader + junk).has_value());
    const std::string content = write_line(FileOp{.path = RelPath::literal("a")}, "12345");
    CHECK(parse(kHeader + content, 99, {.max_content = 5}).has_value());
    CHECK_FALSE(parse(kHeader + content, 99, {.max_content = 4}).has_value());
    const std::string deep = R"({"key":"x","value":)" + std::string(5000, '[');
    CHECK_FALSE(parse(kHeader + deep).has_value());
}

TEST_CASE("an error of the sink stops the parser", "[hub][commit]") {
    class Full : public Recorder {
    public:
        Result<void> on_content(Bytes) override {
            return Error{.code = ErrorCode::denied, .message = "disk full"};
        }
    };

    Full sink;
    CommitParser parser{sink};
    const std::string text = kHeader + write_line(FileOp{.path = RelPath::literal("a")}, "content");
    const Result<void> fed = parser.feed(as_bytes(text));
    REQUIRE_FALSE(fed.has_value());
    CHECK(fed.error().code == ErrorCode::denied);
}

} // namespace kb::hub
