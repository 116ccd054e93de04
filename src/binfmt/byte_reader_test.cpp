// SPDX-License-Identifier: Apache-2.0
#include "binfmt/byte_reader.hpp"

#include "support/catch.hpp"

#include <limits>

namespace kb::binfmt {
namespace {

TEST_CASE("a range fits only when its end does, without overflow", "[binfmt]") {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    CHECK(fits({0, 0}, 0));
    CHECK(fits({4, 6}, 10));
    CHECK_FALSE(fits({4, 7}, 10));
    CHECK_FALSE(fits({11, 0}, 10));
    CHECK_FALSE(fits({kMax, 2}, 10));
    CHECK_FALSE(fits({2, kMax}, 10));
}

TEST_CASE("a read beyond the end or the limit says what it was for", "[binfmt]") {
    const MemorySource source{as_bytes("0123456789")};
    CHECK(as_text(*read_range(source, {2, 3}, 8, "x")) == "234");
    CHECK(read_range(source, {8, 3}, 8, "the table").error().message ==
          "the table (3 bytes at offset 8) lies beyond the end of the file (10 bytes)");
    CHECK(read_range(source, {0, 9}, 8, "the table").error().message ==
          "the table has 9 bytes, more than the limit of 8");
    std::vector<std::byte> three(3);
    CHECK(source.read(8, three).error().code == ErrorCode::corrupt);
}

TEST_CASE("integers are little-endian unless asked for otherwise", "[binfmt]") {
    const Bytes bytes = as_bytes(std::string_view{"\x01\x02\x03\x04\x05\x06\x07\x08", 8});
    CHECK(load_le<std::uint8_t>(bytes, 1) == 2);
    CHECK(load_le<std::uint16_t>(bytes, 0) == 0x0201);
    CHECK(load_le<std::uint32_t>(bytes, 4) == 0x08070605);
    CHECK(load_le<std::uint64_t>(bytes, 0) == 0x0807060504030201);
    CHECK(load_be32(bytes, 0) == 0x01020304);
}

TEST_CASE("a string without an end inside the table is no string", "[binfmt]") {
    const std::string_view table{"ab\0cd", 5};
    CHECK(c_string(as_bytes(table), 0) == "ab");
    CHECK(c_string(as_bytes(table), 2) == "");
    CHECK_FALSE(c_string(as_bytes(table), 3));
    CHECK_FALSE(c_string(as_bytes(table), 5));
    CHECK_FALSE(c_string(as_bytes(table), ~0ULL));
    const std::string longest = std::string(kMaxName, 'x') + '\0';
    CHECK_FALSE(c_string(as_bytes(longest), 0));
    CHECK(c_string(as_bytes(longest), 1));
}

} // namespace
} // namespace kb::binfmt
