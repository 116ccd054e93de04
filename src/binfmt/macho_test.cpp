// SPDX-License-Identifier: Apache-2.0
#include "binfmt/macho.hpp"

#include "support/catch.hpp"
#include "support/elf_builder.hpp"

namespace kb::binfmt {
namespace {

using test::le;

std::string command(std::uint32_t kind, std::string body) {
    body.resize((body.size() + 7) / 8 * 8, '\0');
    return le(kind, 4) + le(8 + body.size(), 4) + body;
}

std::string sample() {
    const std::string strings{"\0_PyFloat_FromDouble\0_mine\0", 27};
    const std::string symbols = le(1, 4) + le(1, 1) + le(0, 1) + le(0, 2) + le(0, 8) + // undefined
                                le(21, 4) + le(0x0f, 1) + le(1, 1) + le(0, 2) + le(0, 8) +
                                le(21, 4) + le(0x0e, 1) + le(1, 1) + le(0, 2) + le(0, 8); // local
    const std::string fixed =
        command(0xc, le(24, 4) + le(0, 12) + std::string{"/usr/lib/libSystem.B.dylib\0", 27}) +
        command(0x8000001c, le(12, 4) + std::string{"@loader_path\0", 13}) +
        command(0x32, le(1, 4) + le(0x0f0102, 4) + le(0, 8));
    const std::size_t commands_size = fixed.size() + 24;
    const std::size_t symbols_at = 32 + commands_size;
    const std::string commands =
        fixed + command(2,
                        le(symbols_at, 4) + le(3, 4) + le(symbols_at + symbols.size(), 4) +
                            le(strings.size(), 4));
    return le(0xfeedfacf, 4) + le(0x0100000c, 4) + le(0, 4) + le(8, 4) + le(4, 4) +
           le(commands.size(), 4) + le(0, 8) + commands + symbols + strings;
}

Result<SharedObject> read(const std::string& bytes) {
    const MemorySource source{as_bytes(bytes)};
    return read_shared_object(source);
}

TEST_CASE("a thin 64-bit Mach-O file gives its facts", "[binfmt][macho]") {
    const std::string bytes = sample();
    const auto object = read(bytes);
    REQUIRE(object);
    CHECK(object->format == Format::macho);
    CHECK(object->architecture == "aarch64");
    REQUIRE(object->imports.size() == 1);
    CHECK(object->imports[0].name == "PyFloat_FromDouble");
    REQUIRE(object->exports.size() == 1);
    CHECK(object->exports[0].name == "mine");
    REQUIRE(object->needed.size() == 1);
    CHECK(object->needed[0] == "/usr/lib/libSystem.B.dylib");
    CHECK(object->search_paths[0].text == "@loader_path");
    CHECK(object->minimum_os == Version{{15, 1, 2}});
    CHECK_FALSE(object->gap(Fact::symbols));
    CHECK(object->gap(Fact::device_code));
}

TEST_CASE("Mach-O kinds that are not looked into say so", "[binfmt][macho]") {
    const std::string fat = std::string{"\xca\xfe\xba\xbe", 4} + std::string(60, '\0');
    CHECK(read(fat)->gap(Fact::symbols) == "universal Mach-O files are not looked into");
    const std::string thin32 = le(0xfeedface, 4) + std::string(60, '\0');
    CHECK(read(thin32)->gap(Fact::needed));
}

TEST_CASE("every cut of a Mach-O file is an error, never a crash", "[binfmt][macho]") {
    const std::string bytes = sample();
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        CAPTURE(n);
        CHECK_FALSE(read(bytes.substr(0, n)));
    }
}

} // namespace
} // namespace kb::binfmt
