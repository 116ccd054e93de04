// SPDX-License-Identifier: Apache-2.0
#include "store/decompress.hpp"

#include "support/catch.hpp"

namespace kb::store {
namespace {

/// `printf abc | gzip -n`.
constexpr std::string_view kAbc{"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x4c\x4a\x06\x00"
                                "\xc2\x41\x24\x35\x03\x00\x00\x00",
                                23};

TEST_CASE("a compressed file is read whole or not at all", "[store]") {
    CHECK(decompress(kAbc, 3).value() == "abc");
    CHECK(decompress(kAbc, 2).error().message == "the data decompresses to more than 2 bytes");
    CHECK(decompress(kAbc.substr(0, 14), 3).error().code == ErrorCode::corrupt);
    CHECK(decompress("plain text", 100).error().code == ErrorCode::corrupt);
    CHECK(decompress("", 100).error().code == ErrorCode::corrupt);
}

} // namespace
} // namespace kb::store
