// SPDX-License-Identifier: Apache-2.0
#include "digest/digest.hpp"

#include "base/text.hpp"
#include "digest/key_file.hpp"
#include "support/catch.hpp"

namespace kb::digest {
namespace {

TEST_CASE("hashes equal the published vectors", "[digest]") {
    // FIPS 180-4 examples; git's empty blob.
    CHECK(sha256("abc").hex() ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256("").base64() == "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    CHECK(sha1(std::string_view{"blob 0\0", 7}).hex() ==
          "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    // RFC 4231, test case 2.
    CHECK(hmac_sha256("Jefe", "what do ya want for nothing?").hex() ==
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_CASE("a hash does not depend on how the bytes are cut", "[digest]") {
    Sha256 pieces;
    pieces.update("a");
    pieces.update("");
    pieces.update("bc");
    CHECK(pieces.finish() == sha256("abc"));
}

TEST_CASE("a digest has one spelling", "[digest]") {
    const std::string hex = sha256("abc").hex();
    CHECK(Digest::from_hex(hex)->hex() == hex);
    CHECK_FALSE(Digest::from_hex(hex.substr(1)));
    std::string upper = hex;
    upper[0] = 'B';
    CHECK_FALSE(Digest::from_hex(upper));
    CHECK_FALSE(Sha1Digest::from_hex(hex));
}

TEST_CASE("base64 round trips and refuses other spellings", "[digest]") {
    for (const std::string text : {"", "f", "fo", "foo", "foob", "fooba", "foobar"}) {
        CHECK(*from_base64(to_base64(as_bytes(text))) == text);
    }
    CHECK(to_base64(as_bytes("fooba")) == "Zm9vYmE=");
    for (const char* bad : {"Zg=", "Zg", "Z===", "Zh==", "Z g=", "Zg==\n", "Zg==Zg=="}) {
        CAPTURE(bad);
        CHECK_FALSE(from_base64(bad));
    }
}

TEST_CASE("a key file is sorted, parses back and names what differs", "[digest][key_file]") {
    KeyFile a;
    a.set("z", "1");
    a.set("a", "two words");
    CHECK(a.to_text() == "a two words\nz 1\n");
    CHECK(KeyFile::parse(a.to_text())->digest() == a.digest());
    KeyFile b;
    b.set("z", "2");
    b.set("n", "x\ny");
    CHECK(difference(a, b) == "- a two words\n- z 1\n+ z 2\n+ n x\\x0ay\n");
    CHECK_FALSE(KeyFile::parse("noline\n"));
    CHECK_FALSE(KeyFile::parse("a 1\na 2\n"));
    CHECK_FALSE(KeyFile::parse("a\x01 1\n"));
    CHECK_FALSE(KeyFile::parse(" 1\n"));
}

TEST_CASE("a control character is escaped wherever it stands in a value", "[digest]") {
    for (const char control : {'\n', '\x1f', '\x7f', '\0'}) {
        for (std::size_t size = 1; size < 20; ++size) {
            for (std::size_t place = 0; place < size; ++place) {
                std::string value(size, '~');
                value[place] = control;
                KeyFile key;
                key.set("k", value);
                CHECK(key.to_text() == "k " + escape_control(value) + "\n");
            }
        }
    }
    KeyFile high;
    high.set("k", "caf\xc3\xa9 \xff");
    CHECK(high.to_text() == "k caf\xc3\xa9 \xff\n");
}

} // namespace
} // namespace kb::digest
