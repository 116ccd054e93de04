// SPDX-License-Identifier: Apache-2.0
#include "store/unpack.hpp"

#include "store/archive_builder.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

using namespace kb;
using namespace kb::store;
using store::test::Item;
using store::test::What;

namespace {

struct Unpacked {
    kb::test::TempDir dir{};
    Result<FileManifest> result{FileManifest{}};

    Unpacked(ArchiveKind kind, const std::vector<Item>& items, const UnpackRules& rules = {}) {
        store::test::write_archive(dir / "archive", kind, items);
        std::filesystem::create_directories(dir / "outer/out");
        result = unpack(sys::real_file_system(), dir / "archive", kind, rules, dir / "outer/out");
    }

    [[nodiscard]] std::string text(const std::string& path) const {
        return kb::test::read_text(dir.path() / "outer/out" / path);
    }
};

} // namespace

TEST_CASE("each kind of archive unpacks to the same manifest", "[store][unpack]") {
    const auto kind =
        GENERATE(ArchiveKind::zip, ArchiveKind::deb, ArchiveKind::tar, ArchiveKind::conda);
    const Unpacked unpacked{kind,
                            {{.path = "a/file.h", .content = "int x;\n"},
                             {What::directory, "a/empty/", ""},
                             {What::executable, "bin/tool", "#!\n"},
                             {What::symlink, "a/link", "../bin/tool"}}};
    INFO((unpacked.result ? std::string{} : unpacked.result.error().to_text()));
    REQUIRE(unpacked.result);
    CHECK(unpacked.result->to_text() == "# kernel-builder tree 1\n"
                                        "f\t" +
                                            digest::sha256("int x;\n").hex() +
                                            "\t7\ta/file.h\n"
                                            "l\t-\t../bin/tool\ta/link\n"
                                            "x\t" +
                                            digest::sha256("#!\n").hex() + "\t3\tbin/tool\n");
    CHECK(unpacked.text("a/file.h") == "int x;\n");
    CHECK(FileManifest::parse(unpacked.result->to_text()).value() == *unpacked.result);
}

TEST_CASE("rules choose and rename, the first match counts", "[store][unpack]") {
    const UnpackRules rules{
        .keep = {{"pkg/include/skip/", std::nullopt}, {"pkg/include/", "include/"}},
        .executable = {"include/run"}};
    const Unpacked unpacked{ArchiveKind::zip,
                            {{.path = "pkg/include/a.h", .content = "a"},
                             {.path = "pkg/include/skip/b.h", .content = "b"},
                             {.path = "pkg/include/run", .content = "r"},
                             {.path = "pkg/lib/c.so", .content = "c"}},
                            rules};
    REQUIRE(unpacked.result);
    REQUIRE(unpacked.result->entries.size() == 2);
    CHECK(unpacked.result->entries[0].path.text() == "include/a.h");
    CHECK(unpacked.result->entries[1].kind == EntryKind::executable);
    CHECK(apply_rules("x", {}) == "x");
    CHECK_FALSE(apply_rules("x", rules.keep));
}

TEST_CASE("an archive that would reach outside is refused", "[store][unpack]") {
    const auto [name, items, message] = GENERATE(table<std::string, std::vector<Item>, std::string>(
        {{"parent", {{.path = "../evil", .content = "x"}}, "unsafe path '../evil'"},
         {"parent inside", {{.path = "a/../../evil", .content = "x"}}, "unsafe path"},
         {"absolute", {{.path = "/evil", .content = "x"}}, "unsafe path '/evil'"},
         {"backslash", {{.path = "..\\evil", .content = "x"}}, "unsafe path"},
         {"control character", {{.path = "a\nb", .content = "x"}}, "unsafe path 'a\\x0ab'"},
         {"link up",
          {{What::symlink, "a/link", "../../evil"}},
          "link 'a/link' -> '../../evil' leaves"},
         {"link up and back",
          {{What::symlink, "link", "../out/x"}},
          "link 'link' -> '../out/x' leaves"},
         {"absolute link", {{What::symlink, "link", "/etc"}}, "link 'link' -> '/etc' leaves"},
         {"through a link",
          {{What::symlink, "d", "e"}, {.path = "d/evil", .content = "x"}},
          "'d/evil' lies below 'd'"},
         {"below a file",
          {{.path = "d", .content = ""}, {.path = "d/evil", .content = "x"}},
          "'d/evil' lies below 'd'"},
         {"twice",
          {{.path = "a", .content = "1"}, {.path = "a", .content = "2"}},
          "'a' is in the archive twice"},
         {"a file where a folder is",
          {{.path = "a/b", .content = "1"}, {.path = "a", .content = "2"}},
          "'a' is in the archive twice"},
         {"hard link outside",
          {{What::hardlink, "a", "../../archive"}},
          "unsafe path '../../archive'"},
         {"hard link to nothing", {{What::hardlink, "a", "b"}}, "second name of 'b'"},
         {"hard link to a link",
          {{What::symlink, "l", "x"}, {What::hardlink, "a", "l"}},
          "second name of a link"},
         {"fifo", {{What::fifo, "pipe", ""}}, "'pipe' is neither a file nor a link"}}));
    INFO(name);
    const Unpacked unpacked{ArchiveKind::tar, items};
    REQUIRE(!unpacked.result);
    CHECK(unpacked.result.error().code == ErrorCode::corrupt);
    INFO(unpacked.result.error().message);
    CHECK(unpacked.result.error().message.find(message) != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(unpacked.dir / "evil"));
    CHECK(std::filesystem::directory_iterator { unpacked.dir / "outer" } -> path().filename() ==
          "out");
}

TEST_CASE("hard links inside an archive become files of one content", "[store][unpack]") {
    const Unpacked unpacked{
        ArchiveKind::tar,
        {{What::executable, "./bin/g++", "elf"}, {What::hardlink, "./bin/c++", "./bin/g++"}},
        {.keep = {{"bin/", "usr/bin/"}}}};
    INFO((unpacked.result ? std::string{} : unpacked.result.error().to_text()));
    REQUIRE(unpacked.result);
    REQUIRE(unpacked.result->entries.size() == 2);
    CHECK(unpacked.result->entries[0].digest == unpacked.result->entries[1].digest);
    CHECK(unpacked.text("usr/bin/c++") == "elf");
}

TEST_CASE("an archive that unpacks to too much is refused", "[store][unpack]") {
    UnpackRules rules;
    rules.limits = {.max_entries = 2, .max_bytes = 100};
    const auto unpack_items = [&](const std::vector<Item>& items) {
        const Unpacked unpacked{ArchiveKind::zip, items, rules};
        return unpacked.result ? std::string{"unpacked"} : unpacked.result.error().message;
    };
    CHECK(unpack_items({{.path = "a", .content = std::string(60, 'x')},
                        {.path = "b", .content = std::string(60, 'x')}}) ==
          "the archive unpacks to more than the limit allows");
    CHECK(unpack_items({{.path = "a"}, {.path = "b"}, {.path = "c"}}) ==
          "more than 2 entries in the archive");
    CHECK(unpack_items({{.path = "a", .content = std::string(100, 'x')}}) == "unpacked");
    // Seventy megabytes of zeros are a few kilobytes of zip.
    rules.limits = {.max_ratio = 1};
    CHECK(unpack_items({{.path = "bomb", .content = std::string(70UL << 20U, '\0')}}) ==
          "the archive unpacks to more than the limit allows");
}

TEST_CASE("a cut or damaged archive is corrupt, never half a tree in silence", "[store][unpack]") {
    const auto kind =
        GENERATE(ArchiveKind::zip, ArchiveKind::deb, ArchiveKind::tar, ArchiveKind::conda);
    const kb::test::TempDir dir;
    std::string content;
    for (int i = 0; i < 5000; ++i) {
        content += std::to_string(i * 7919);
    }
    store::test::write_archive(dir / "whole", kind, {{.path = "a", .content = content}});
    const std::string whole = kb::test::read_text(dir / "whole");
    for (const std::size_t size : {std::size_t{0}, std::size_t{10}, whole.size() / 2}) {
        kb::test::write_text(dir / "cut", whole.substr(0, size));
        std::filesystem::create_directories(dir.path() / std::to_string(size));
        const auto result = unpack(
            sys::real_file_system(), dir / "cut", kind, {}, dir.path() / std::to_string(size));
        INFO(size << " of " << whole.size());
        REQUIRE(!result);
        CHECK(result.error().code == ErrorCode::corrupt);
    }
}
