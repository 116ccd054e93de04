// SPDX-License-Identifier: Apache-2.0
#include "binfmt/elf.hpp"

#include "support/catch.hpp"
#include "support/elf_builder.hpp"
#include "support/support.hpp"

#include <algorithm>
#include <cstdlib>

namespace kb::binfmt {
namespace {

using test::build_elf;
using test::build_fatbin;
using test::ElfHash;
using test::ElfSpec;

Result<SharedObject> read(const std::string& bytes) {
    const MemorySource source{as_bytes(bytes)};
    return read_shared_object(source);
}

std::string describe(const std::vector<Symbol>& symbols) {
    std::string out;
    for (const Symbol& s : symbols) {
        out += std::string{s.name};
        if (!s.version.empty()) {
            out += "@" + std::string{s.version} + "(" + std::string{s.library} + ")";
        }
        out += s.binding == Binding::weak ? "? " : (s.binding == Binding::unique ? "! " : " ");
    }
    return out;
}

ElfSpec sample() {
    return {.needed = {"libc.so.6", "libtorch.so"},
            .soname = "_k.abi3.so",
            .runpath = "$ORIGIN/../lib:/opt/x",
            .symbols = {{.name = "PyInit__k", .defined = true},
                        {.name = "memcpy", .version = "GLIBC_2.14", .library = "libc.so.6"},
                        {.name = "strlen", .version = "GLIBC_2.2.5", .library = "libc.so.6"},
                        {.name = "PyFloat_FromDouble"},
                        {.name = "maybe", .bind = 2},
                        {.name = "only_one", .bind = 10, .defined = true}},
            .relocations = true,
            .fatbin = build_fatbin({{.sm = 90, .flags = 0x100011}})};
}

TEST_CASE("an ELF shared object gives its facts", "[binfmt][elf]") {
    const std::string bytes = build_elf(sample());
    const auto object = read(bytes);
    REQUIRE(object);
    CHECK(object->architecture == "x86_64");
    CHECK(describe(object->imports) ==
          "memcpy@GLIBC_2.14(libc.so.6) strlen@GLIBC_2.2.5(libc.so.6) PyFloat_FromDouble maybe? ");
    CHECK(describe(object->exports) == "PyInit__k only_one! ");
    CHECK(object->needed == std::vector<std::string_view>{"libc.so.6", "libtorch.so"});
    CHECK(object->soname == "_k.abi3.so");
    REQUIRE(object->search_paths.size() == 1);
    CHECK(object->search_paths[0].text == "$ORIGIN/../lib:/opt/x");
    CHECK(object->version_needs.size() == 2);
    CHECK_FALSE(object->exec_stack);
    CHECK_FALSE(object->text_relocations);
    REQUIRE(object->device_images.size() == 1);
    CHECK(object->device_images[0].arch == "9.0a");
    for (const Fact fact : {Fact::symbols, Fact::versions, Fact::needed, Fact::flags}) {
        CHECK_FALSE(object->gap(fact));
    }
}

TEST_CASE("symbols are counted whatever table says how many there are", "[binfmt][elf]") {
    const auto hash = GENERATE(ElfHash::gnu, ElfHash::sysv, ElfHash::none);
    const bool sections = GENERATE(true, false);
    const bool exports = GENERATE(true, false);
    ElfSpec spec = sample();
    spec.hash = hash;
    spec.section_headers = sections;
    spec.fatbin.clear();
    if (!exports) {
        std::erase_if(spec.symbols, [](const test::ElfSymbol& s) { return s.defined; });
    }
    const auto object = read(build_elf(spec));
    REQUIRE(object);
    CHECK(object->imports.size() == 4);
    // Without any table, a definition that no relocation names is the one thing that stays unseen.
    if (hash != ElfHash::none || sections) {
        CHECK(object->exports.size() == (exports ? 2 : 0));
    }
}

TEST_CASE("flags of the loader are read", "[binfmt][elf]") {
    ElfSpec spec = sample();
    spec.exec_stack = true;
    spec.text_relocations = true;
    CHECK(read(build_elf(spec))->exec_stack);
    CHECK(read(build_elf(spec))->text_relocations);
    spec.exec_stack = false;
    spec.stack_note = false;
    CHECK(read(build_elf(spec))->exec_stack); // x86-64 without the mark
    spec.machine = 183;
    CHECK_FALSE(read(build_elf(spec))->exec_stack);
    CHECK(read(build_elf(spec))->architecture == "aarch64");
}

TEST_CASE("ELF kinds that are not looked into say so for every fact", "[binfmt][elf]") {
    const auto [field, value, reason] = GENERATE(table<std::size_t, unsigned, const char*>(
        {{4, 1, "only 64-bit little-endian ELF files are looked into"},
         {5, 2, "only 64-bit little-endian ELF files are looked into"},
         {18, 243, "ELF files for riscv are not looked into"},
         {16, 1, "the ELF file is no shared object"}}));
    std::string bytes = build_elf(sample());
    test::patch_le(bytes, field, value, 1);
    const auto object = read(bytes);
    REQUIRE(object);
    CHECK(object->gap(Fact::symbols) == reason);
    CHECK(object->gap(Fact::needed) == reason);
    CHECK(object->gap(Fact::device_code) == reason);
}

TEST_CASE("without section headers only device code is unknown", "[binfmt][elf]") {
    ElfSpec spec = sample();
    spec.section_headers = false;
    const auto object = read(build_elf(spec));
    REQUIRE(object);
    CHECK(object->gap(Fact::device_code));
    CHECK_FALSE(object->gap(Fact::symbols));
    CHECK(object->imports.size() == 4);
}

TEST_CASE("damaged device code is a gap and leaves the other facts", "[binfmt][elf]") {
    ElfSpec spec = sample();
    spec.fatbin[0] = 'x';
    const auto object = read(build_elf(spec));
    REQUIRE(object);
    CHECK(object->gap(Fact::device_code) == ".nv_fatbin: offset 0x0 holds no fat binary");
    CHECK(object->imports.size() == 4);
}

TEST_CASE("no cut and no changed byte of an ELF file crashes the reader", "[binfmt][elf]") {
    const std::string bytes = build_elf(sample());
    std::size_t refused = 0;
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        refused += read(bytes.substr(0, n)) ? 0U : 1U;
    }
    CHECK(refused > bytes.size() / 2);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        for (const char value : {'\x00', '\x01', '\x7f', '\xff'}) {
            std::string changed = bytes;
            changed[i] = value;
            static_cast<void>(read(changed));
        }
    }
}

TEST_CASE("texts outlive a move of the object", "[binfmt][elf]") {
    auto object = read(build_elf(sample()));
    const SharedObject moved = std::move(*object);
    CHECK(moved.soname == "_k.abi3.so");
    CHECK(describe(moved.exports) == "PyInit__k only_one! ");
}

bool run_quietly(const std::string& command) {
    // The test asks for nothing but success: a missing linker is a skip.
    return std::system((command + " >/dev/null 2>&1").c_str()) ==
           0; // NOLINT(concurrency-mt-unsafe)
}

TEST_CASE("what real linkers write is read, stripped or not", "[binfmt][elf]") {
    const auto linker = GENERATE("bfd", "gold", "lld");
    const auto flags =
        GENERATE("", "-Wl,--hash-style=sysv", "-Wl,-z,pack-relative-relocs", "-fvisibility=hidden");
    if (std::string_view{linker} == "gold" && std::string_view{flags}.ends_with("relocs")) {
        return; // gold has no packed relative relocations
    }
    const test::TempDir dir;
    test::write_text(dir / "a.c",
                     "#include <string.h>\n"
                     "extern int PyModule_Create2(void*, int);\n"
                     "int f(char* p, const char* q, unsigned long n) {\n"
                     "  memcpy(p, q, n); return PyModule_Create2(p, (int)strlen(q)); }\n");
    const std::string out = (dir / "a.so").string();
    if (!run_quietly("gcc -shared -fPIC -O1 -fno-builtin -fuse-ld=" + std::string{linker} + " " +
                     flags + " -o " + out + " " + (dir / "a.c").string())) {
        WARN("SKIPPED: linker " << linker << " with " << flags << " is not usable here");
        return;
    }
    CAPTURE(linker, flags);
    for (const bool strip : {false, true}) {
        if (strip) {
            REQUIRE(run_quietly("strip " + out));
        }
        const std::string bytes = test::read_text(out);
        const auto object = read(bytes);
        REQUIRE(object);
        const std::string imports = describe(object->imports);
        CHECK(imports.find("memcpy@GLIBC_2.14(libc.so.6)") != std::string::npos);
        CHECK(imports.find("PyModule_Create2 ") != std::string::npos);
        CHECK(std::ranges::find(object->needed, "libc.so.6") != object->needed.end());
        CHECK_FALSE(object->exec_stack);
    }
}

} // namespace
} // namespace kb::binfmt
