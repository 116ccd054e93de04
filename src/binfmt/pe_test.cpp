// SPDX-License-Identifier: Apache-2.0
#include "binfmt/pe.hpp"

#include "support/catch.hpp"
#include "support/elf_builder.hpp"

namespace kb::binfmt {
namespace {

using test::le;

/// One section at address 0x1000 with an import directory of one library, one name, one number.
std::string sample() {
    std::string section =
        le(0x1000 + 40, 4) + le(0, 8) + le(0x1000 + 64, 4) + le(0, 4); // descriptor
    section += std::string(20, '\0');
    section += le(0x1000 + 80, 8) + le(1ULL << 63U | 7, 8) + le(0, 8); // thunks at 40
    section += std::string{"python3.dll\0", 12};                       // at 64
    section.resize(80, '\0');
    section += le(0, 2) + std::string{"PyModule_Create2\0", 17};
    std::string optional = le(0x20b, 2) + std::string(118, '\0') + le(0x1000, 4) + le(40, 4);
    optional.resize(240, '\0');
    const std::size_t section_at = 64 + 24 + optional.size() + 40;
    std::string out = "MZ" + std::string(58, '\0') + le(64, 4);
    out += std::string{"PE\0\0", 4} + le(0x8664, 2) + le(1, 2) + std::string(12, '\0') +
           le(optional.size(), 2) + le(0, 2) + optional;
    out += std::string(8, '\0') + le(section.size(), 4) + le(0x1000, 4) + le(section.size(), 4) +
           le(section_at, 4) + std::string(16, '\0');
    return out + section;
}

Result<SharedObject> read(const std::string& bytes) {
    const MemorySource source{as_bytes(bytes)};
    return read_shared_object(source);
}

TEST_CASE("a 64-bit PE image gives needed libraries and imported names", "[binfmt][pe]") {
    const auto object = read(sample());
    REQUIRE(object);
    CHECK(object->architecture == "x86_64");
    REQUIRE(object->needed.size() == 1);
    CHECK(object->needed[0] == "python3.dll");
    REQUIRE(object->imports.size() == 1);
    CHECK(object->imports[0].name == "PyModule_Create2");
    CHECK_FALSE(object->gap(Fact::symbols));
}

TEST_CASE("a PE image of another kind says that it was not looked into", "[binfmt][pe]") {
    std::string bytes = sample();
    test::patch_le(bytes, 64 + 24, 0x10b, 2); // PE32
    CHECK(read(bytes)->gap(Fact::symbols) == "only 64-bit PE images are looked into");
    CHECK(read("MZ" + std::string(200, '\0')).error().code == ErrorCode::unsupported);
}

TEST_CASE("every cut of a PE image is an error, never a crash", "[binfmt][pe]") {
    const std::string bytes = sample();
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        CAPTURE(n);
        CHECK_FALSE(read(bytes.substr(0, n)));
    }
}

} // namespace
} // namespace kb::binfmt
