// SPDX-License-Identifier: Apache-2.0
#include "sys/random_access_file.hpp"

#include "base/bytes.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <filesystem>
#include <sys/stat.h>

namespace kb::sys {
namespace {

TEST_CASE("a file is read by offset", "[sys][random_access_file]") {
    const test::TempDir dir;
    test::write_text(dir / "f", "0123456789");
    const auto file = RandomAccessFile::open(dir / "f");
    REQUIRE(file);
    CHECK(file->size() == 10);
    std::vector<std::byte> three(3);
    REQUIRE(file->read(7, three));
    CHECK(as_text(three) == "789");
    CHECK(file->read(8, three).error().code == ErrorCode::corrupt);
    CHECK(file->read(~0ULL, three).error().code == ErrorCode::corrupt);
    std::filesystem::resize_file(dir / "f", 4);
    CHECK(file->read(7, three).error().message.find("became shorter") != std::string::npos);
}

TEST_CASE("what is no regular file is refused without waiting", "[sys][random_access_file]") {
    const test::TempDir dir;
    CHECK(RandomAccessFile::open(dir / "none").error().code == ErrorCode::not_found);
    CHECK(RandomAccessFile::open(dir.path()).error().code == ErrorCode::unsupported);
    REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
    CHECK(RandomAccessFile::open(dir / "pipe").error().code == ErrorCode::unsupported);
    test::write_text(dir / "f", "x");
    std::filesystem::create_symlink("f", dir / "link");
    CHECK(RandomAccessFile::open(dir / "link")->size() == 1);
}

} // namespace
} // namespace kb::sys
