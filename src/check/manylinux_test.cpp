// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"
#include "support/check_inputs.hpp"

namespace kb::check {
namespace {

using test::ElfSpec;
using test::input_of;
using test::run_one;

ElfSpec importing(std::string symbol, std::string version, std::string library = "libc.so.6") {
    return {.needed = {library},
            .symbols = {
                {.name = std::move(symbol), .version = std::move(version), .library = library}}};
}

std::string look(const ElfSpec& spec, std::string policy = "manylinux_2_28") {
    return run_one(input_of(spec, {.manylinux = std::move(policy)}), manylinux_check());
}

TEST_CASE("symbol versions of the policy pass", "[check][manylinux]") {
    CHECK(look(importing("memcpy", "GLIBC_2.14")) == "passed\n");
    CHECK(look(importing("f", "CXXABI_FLOAT128", "libstdc++.so.6")) == "passed\n");
    CHECK(look(importing("cudaMalloc", "libcudart.so.13", "libcudart.so.13")) == "passed\n");
    CHECK(look(importing("SSL_new", "OPENSSL_3.0.0", "libssl.so.3")) ==
          "passed\n"); // 'needed' tells
}

TEST_CASE("versions that the policy lacks are told with the symbol", "[check][manylinux]") {
    CHECK(look(importing("pthread_create", "GLIBC_2.34")) ==
          "failed\npthread_create: 'pthread_create' wants GLIBC_2.34, manylinux_2_28 has GLIBC up "
          "to 2.28\n");
    CHECK(look(importing("_ZSt8to_charsPcS_d", "GLIBCXX_3.4.29", "libstdc++.so.6")) ==
          "failed\n_ZSt8to_charsPcS_d: '_ZSt8to_charsPcS_d' wants GLIBCXX_3.4.29, manylinux_2_28 "
          "has GLIBCXX up to 3.4.24\n");
    CHECK(look(importing("memcpy", "GLIBC_2.14"), "manylinux2010") ==
          "failed\nmemcpy: 'memcpy' wants GLIBC_2.14, manylinux_2_12 has GLIBC up to 2.12\n");
}

TEST_CASE("versions that are no numbers are judged like any other", "[check][manylinux]") {
    const auto [version, passes] = GENERATE(table<std::string, bool>({
        {"CXXABI_TM_1", true},
        {"GLIBC_PRIVATE", false},
        {"GLIBC_ABI_DT_RELR", false},
        {"CXXABI_LDBL_1.3", false},
    }));
    CAPTURE(version);
    CHECK(look(importing("f", version)).starts_with("passed") == passes);
    if (version == "GLIBC_ABI_DT_RELR") {
        CHECK(look(importing("f", version), "manylinux_2_36") == "passed\n");
    }
}

TEST_CASE("a needed version counts even when no symbol uses it", "[check][manylinux]") {
    ElfSpec spec = importing("f", "GLIBC_2.34");
    std::string bytes = test::build_elf(spec);
    CheckInput input = input_of(spec, {.manylinux = "manylinux_2_28"});
    input.libraries[0].object->imports.clear();
    CHECK(run_one(input, manylinux_check()) ==
          "failed\nGLIBC_2.34: needs GLIBC_2.34, manylinux_2_28 has GLIBC up to 2.28\n");
    input.libraries[0].object->version_needs[0].weak = true;
    CHECK(run_one(input, manylinux_check()) == "passed\n");
}

TEST_CASE("private symbols of allowed libraries are refused", "[check][manylinux]") {
    const ElfSpec spec{.needed = {"libz.so.1"}, .symbols = {{.name = "zcalloc"}}};
    CHECK(look(spec) == "failed\nzcalloc: 'zcalloc' is not in every libz.so.1 that "
                        "manylinux_2_28 covers\n");
    CHECK(look({.needed = {"libc.so.6"}, .symbols = {{.name = "zcalloc"}}}) == "passed\n");
    // Rust's libraries ask in vain for __cxa_thread_atexit_impl on old systems.
    CHECK(look({.needed = {"libz.so.1"}, .symbols = {{.name = "zcalloc", .bind = 2}}}) ==
          "passed\n");
}

TEST_CASE("what the policy cannot judge is not a pass", "[check][manylinux]") {
    CHECK(look(importing("f", "GLIBC_2.14"), "manylinux_9_9") ==
          "not checked [no policy is called 'manylinux_9_9']\n");
    ElfSpec spec = importing("f", "GLIBC_2.14");
    spec.machine = 243; // riscv: nothing was read
    CHECK(look(spec) == "not checked [ELF files for riscv are not looked into]\n");
    spec.machine = 183;
    CHECK(look(spec, "manylinux_2_12") == "not checked [manylinux_2_12 does not cover aarch64]\n");
}

} // namespace
} // namespace kb::check
