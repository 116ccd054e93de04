// SPDX-License-Identifier: Apache-2.0
#include "sys/file_system.hpp"

#include "support/catch.hpp"
#include "support/faulty_file_system.hpp"
#include "support/support.hpp"

#include <algorithm>
#include <array>
#include <sys/stat.h>

using namespace kb;
using namespace kb::sys;

TEST_CASE("an atomic write replaces the content and leaves nothing beside it", "[sys][files]") {
    const test::TempDir dir;
    FileSystem& fs = real_file_system();
    REQUIRE(fs.write_atomic(dir / "a", "old", FileMode::regular));
    REQUIRE(fs.write_atomic(dir / "a", "new", FileMode::executable));
    CHECK(test::read_text(dir / "a") == "new");
    CHECK((fs.stat(dir / "a")->mode & 0100U) != 0);
    CHECK(fs.list(dir.path())->size() == 1);
}

TEST_CASE("an atomic write that fails keeps the old content and no temporary", "[sys][files]") {
    const test::TempDir dir;
    FileSystem& fs = real_file_system();
    // The target is a directory with content: the rename is refused after the write.
    test::write_text(dir / "a/inside", "x");
    const auto result = fs.write_atomic(dir / "a", "new", FileMode::regular);
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::denied);
    CHECK(test::read_text(dir / "a/inside") == "x");
    CHECK(fs.list(dir.path())->size() == 1);
}

TEST_CASE("errors name the path and carry the meaning of errno", "[sys][files]") {
    const test::TempDir dir;
    FileSystem& fs = real_file_system();
    const auto missing = fs.read_file(dir / "none");
    REQUIRE(!missing);
    CHECK(missing.error().code == ErrorCode::not_found);
    CHECK(missing.error().message ==
          "opening '" + (dir / "none").string() + "': No such file or directory");
    test::write_text(dir / "big", "12345");
    const auto big = fs.read_file(dir / "big", 4);
    REQUIRE(!big);
    CHECK(big.error().code == ErrorCode::corrupt);
    CHECK(fs.read_file(dir / "big", 5).value() == "12345");
    const auto again = fs.create(dir / "big", FileMode::regular);
    REQUIRE(!again);
    CHECK(again.error().code == ErrorCode::denied);
    // A full disk, as the kernel offers it for tests.
    const auto full = fs.append_durable("/dev/full", "x");
    REQUIRE(!full);
    CHECK(full.error().code == ErrorCode::denied);
    CHECK(full.error().message == "writing '/dev/full': No space left on device");
}

TEST_CASE("a file is read by position and a FIFO is refused without waiting", "[sys][files]") {
    const test::TempDir dir;
    FileSystem& fs = real_file_system();
    test::write_text(dir / "a", "0123456789");
    auto file = fs.open_read(dir / "a");
    REQUIRE(file);
    std::array<char, 8> buffer{};
    CHECK((*file)->size() == 10);
    CHECK((*file)->read_at(4, buffer.data(), 3).value() == 3);
    CHECK(std::string_view{buffer.data(), 3} == "456");
    CHECK((*file)->read_at(8, buffer.data(), 8).value() == 2);
    REQUIRE(::mkfifo((dir / "fifo").c_str(), 0600) == 0);
    const auto fifo = fs.open_read(dir / "fifo");
    REQUIRE(!fifo);
    CHECK(fifo.error().code == ErrorCode::unsupported);
    const auto whole = fs.read_file(dir / "fifo");
    REQUIRE(!whole);
    CHECK(whole.error().code == ErrorCode::unsupported);
}

TEST_CASE("removing a tree takes read-only directories and does not follow links", "[sys][files]") {
    const test::TempDir dir;
    FileSystem& fs = real_file_system();
    test::write_text(dir / "keep/file", "precious");
    test::write_text(dir / "tree/sub/file", "x");
    REQUIRE(fs.symlink("../../keep", dir / "tree/sub/link"));
    REQUIRE(fs.set_mode(dir / "tree/sub", 0555));
    REQUIRE(fs.set_mode(dir / "tree", 0555));
    REQUIRE(fs.remove_tree(dir / "tree"));
    CHECK_FALSE(exists(fs, dir / "tree"));
    CHECK(test::read_text(dir / "keep/file") == "precious");
    REQUIRE(fs.symlink("keep", dir / "alias"));
    REQUIRE(fs.remove_tree(dir / "alias"));
    CHECK(test::read_text(dir / "keep/file") == "precious");
    CHECK(fs.remove_tree(dir / "never"));
}

TEST_CASE("exchange swaps two directories in one step", "[sys][files]") {
    const test::TempDir dir;
    FileSystem& fs = real_file_system();
    test::write_text(dir / "a/x", "a");
    test::write_text(dir / "b/x", "b");
    REQUIRE(fs.exchange(dir / "a", dir / "b"));
    CHECK(test::read_text(dir / "a/x") == "b");
    CHECK(test::read_text(dir / "b/x") == "a");
    const auto missing = fs.exchange(dir / "a", dir / "c");
    REQUIRE(!missing);
    CHECK(missing.error().code == ErrorCode::not_found);
}

TEST_CASE("a walk is sorted by path and shows links as links", "[sys][files]") {
    const test::TempDir dir;
    FileSystem& fs = real_file_system();
    test::write_text(dir / "b", "");
    test::write_text(dir / "a/z", "");
    test::write_text(dir / "a.txt", "");
    REQUIRE(fs.symlink("/etc", dir / "c"));
    const auto entries = walk(fs, dir.path());
    REQUIRE(entries);
    std::vector<std::string> names;
    for (const WalkEntry& entry : *entries) {
        names.push_back(entry.path.text());
    }
    CHECK(names == std::vector<std::string>{"a", "a.txt", "a/z", "b", "c"});
    CHECK(entries->back().info.type == FileType::symlink);
}

TEST_CASE("copies keep content and permission bits", "[sys][files]") {
    const test::TempDir dir;
    FileSystem& fs = real_file_system();
    const std::string text(300'000, 'k');
    test::write_text(dir / "a", text);
    REQUIRE(fs.set_mode(dir / "a", 0750));
    REQUIRE(fs.copy_file(dir / "a", dir / "b"));
    CHECK(test::read_text(dir / "b") == text);
    CHECK(fs.stat(dir / "b")->mode == 0750);
    REQUIRE(fs.set_mtime(dir / "b", 315532800));
    CHECK(fs.stat(dir / "b")->mtime_ns == 315532800'000'000'000);
}

TEST_CASE("the faulty file system fails at the chosen call and later when dead", "[sys][files]") {
    const test::TempDir dir;
    test::FaultyFileSystem fs{real_file_system()};
    fs.fail_at(2, test::FaultyFileSystem::Death::yes);
    CHECK(fs.write_atomic(dir / "a", "1", FileMode::regular));
    CHECK_FALSE(fs.write_atomic(dir / "b", "2", FileMode::regular));
    CHECK_FALSE(fs.remove_file(dir / "a"));
    CHECK(fs.calls() == 3);
    CHECK(test::read_text(dir / "a") == "1");
    fs.fail_at(1, test::FaultyFileSystem::Death::no);
    CHECK_FALSE(fs.remove_file(dir / "a"));
    CHECK(fs.remove_file(dir / "a"));
}
