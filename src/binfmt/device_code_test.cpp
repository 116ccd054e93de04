// SPDX-License-Identifier: Apache-2.0
#include "binfmt/device_code.hpp"

#include "support/catch.hpp"
#include "support/elf_builder.hpp"

namespace kb::binfmt {
namespace {

using test::build_fatbin;
using test::le;

Result<std::vector<DeviceImage>> read_fatbins(const std::string& bytes) {
    const MemorySource source{as_bytes(bytes)};
    return read_cuda_fatbins(source, {0, bytes.size()});
}

Result<std::vector<DeviceImage>> read_bundles(const std::string& bytes) {
    const MemorySource source{as_bytes(bytes)};
    return read_offload_bundles(source, {0, bytes.size()});
}

std::string arch_list(const std::vector<DeviceImage>& images) {
    std::string out;
    for (const DeviceImage& image : images) {
        out += image.arch + (image.compressed ? "z " : " ");
    }
    return out;
}

TEST_CASE("a fat binary lists kind, architecture and compression", "[binfmt][device_code]") {
    const std::string bytes = build_fatbin({{.kind = 2, .sm = 80},
                                            {.kind = 1, .sm = 90, .flags = 0x8011},
                                            {.kind = 2, .sm = 90, .flags = 0x102011},
                                            {.kind = 2, .sm = 100, .flags = 0x1200011},
                                            {.kind = 2, .sm = 121, .flags = 0x11}});
    const auto images = read_fatbins(bytes);
    REQUIRE(images);
    CHECK(arch_list(*images) == "8.0 9.0z 9.0az 10.0f 12.1 ");
    CHECK((*images)[0].kind == DeviceImageKind::cubin);
    CHECK((*images)[1].kind == DeviceImageKind::ptx);
}

TEST_CASE("fat binaries of several objects follow each other with padding",
          "[binfmt][device_code]") {
    const std::string one = build_fatbin({{.sm = 80, .payload = std::string(13, 'x')}});
    std::string bytes = one;
    bytes.resize((bytes.size() + 7) / 8 * 8 + 16, '\0');
    bytes += build_fatbin({{.sm = 90}});
    CHECK(arch_list(*read_fatbins(bytes)) == "8.0 9.0 ");
    CHECK(read_fatbins("")->empty());
    CHECK(read_fatbins(std::string(64, '\0'))->empty());
}

TEST_CASE("a cubin of an older toolkit names its 'a' in the ELF header only",
          "[binfmt][device_code]") {
    std::string cubin(64, '\0');
    cubin.replace(0,
                  4,
                  "\x7f"
                  "ELF");
    cubin[8] = 7;
    cubin.replace(48, 4, le(0x5a085a, 4));
    CHECK(arch_list(*read_fatbins(build_fatbin({{.sm = 90, .payload = cubin}}))) == "9.0a ");
    cubin.replace(48, 4, le(0x5a055a, 4));
    CHECK(arch_list(*read_fatbins(build_fatbin({{.sm = 90, .payload = cubin}}))) == "9.0 ");
}

TEST_CASE("a damaged fat binary is an error with its offset", "[binfmt][device_code]") {
    const std::string good = build_fatbin({{.sm = 80}});
    CHECK(read_fatbins("garbage!garbage!").error().message == "offset 0x0 holds no fat binary");
    CHECK(read_fatbins(good.substr(0, good.size() - 1)).error().message ==
          "the fat binary at offset 0x0 does not fit");
    std::string bad = good;
    test::patch_le(bad, 16 + 4, 8, 4); // header size below the minimum: would never advance
    CHECK(read_fatbins(bad).error().message == "a fat binary entry at offset 0x10 does not fit");
    bad = good;
    test::patch_le(bad, 16 + 8, ~0ULL, 8);
    CHECK_FALSE(read_fatbins(bad));
    const MemorySource source{as_bytes(good)};
    CHECK_FALSE(read_cuda_fatbins(source, {8, ~0ULL}));
}

std::string bundle(const std::vector<std::string>& ids) {
    std::string out = "__CLANG_OFFLOAD_BUNDLE__" + le(ids.size(), 8);
    for (const std::string& id : ids) {
        out += le(4096, 8) + le(16, 8) + le(id.size(), 8) + id;
    }
    out.resize(4096 + 16, 'x');
    return out;
}

TEST_CASE("an offload bundle lists its device targets", "[binfmt][device_code]") {
    std::string bytes = bundle({"host-x86_64-unknown-linux--",
                                "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-",
                                "hipv4-amdgcn-amd-amdhsa--gfx942"});
    CHECK(arch_list(*read_bundles(bytes)) == "gfx90a:xnack- gfx942 ");
    bytes.resize(8192, '\0');
    bytes += bundle({"hipv4-amdgcn-amd-amdhsa--gfx1100"});
    CHECK(arch_list(*read_bundles(bytes)) == "gfx90a:xnack- gfx942 gfx1100 ");
    CHECK(read_bundles("CCOB" + std::string(60, 'x')).error().code == ErrorCode::unsupported);
    CHECK_FALSE(read_bundles(std::string(64, 'x')));
    test::patch_le(bytes, 24, ~0ULL, 8);
    CHECK_FALSE(read_bundles(bytes));
}

} // namespace
} // namespace kb::binfmt
