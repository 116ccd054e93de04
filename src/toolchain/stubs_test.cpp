// SPDX-License-Identifier: Apache-2.0
#include "toolchain/stubs.hpp"

#include "support/catch.hpp"
#include "toolchain/embedded_data.hpp"

#include <algorithm>

using namespace kb;
using namespace kb::toolchain;

TEST_CASE("a stub exports each symbol with its version and type", "[toolchain][stubs]") {
    const auto libraries = parse_stub_table("# comment\n"
                                            "libx.so.1\tf\tX_1.0\t@\tfunction\tglobal\t0\n"
                                            "libx.so.1\tf\tX_1.10\t@@\tfunction\tweak\t0\n"
                                            "libx.so.1\tdata\tX_1.9\t@@\tobject\tglobal\t24\n"
                                            "liby.so\tt\t\t@@\ttls\tglobal\t16\n");
    REQUIRE(libraries);
    REQUIRE(libraries->size() == 2);
    const std::string text = stub_assembly(libraries->front());
    CHECK(text.find(".weak __kb_2\n") != std::string::npos);
    CHECK(text.find(".symver __kb_1,f@X_1.0,remove\n") != std::string::npos);
    CHECK(text.find(".symver __kb_2,f@@X_1.10,remove\n") != std::string::npos);
    CHECK(text.find(".type __kb_3,%object\n") != std::string::npos);
    CHECK(text.find(".size __kb_3,24\n") != std::string::npos);
    CHECK(stub_version_script(libraries->front()) ==
          "X_1.0 { local: __kb_*; };\nX_1.9 { };\nX_1.10 { };\n");
    CHECK(stub_version_script(libraries->back()).empty());
    CHECK(stub_assembly(libraries->back()).find(".type t,%tls_object\n") != std::string::npos);
}

TEST_CASE("a malformed row of the stub table is named", "[toolchain][stubs]") {
    CHECK(parse_stub_table("a\tb\n").error().message == "expected seven cells: 'a\tb'");
    CHECK(parse_stub_table("l\tf\tV_1\t@@\tthing\tglobal\t0\n").error().message ==
          "symbol 'f' has a malformed row");
}

TEST_CASE("the baseline holds no version newer than its policy", "[toolchain][stubs]") {
    const auto data = embedded_data("manylinux_2_28_x86_64.tsv");
    REQUIRE(data);
    const auto libraries = parse_stub_table(*data);
    REQUIRE(libraries);
    std::size_t symbols = 0;
    for (const StubLibrary& library : *libraries) {
        for (const StubSymbol& symbol : library.symbols) {
            ++symbols;
            INFO(library.soname << ' ' << symbol.name << ' ' << symbol.version);
            CHECK(symbol.version != "GLIBC_2.29");
            CHECK(symbol.version != "GLIBC_2.34");
            CHECK(symbol.version != "GLIBCXX_3.4.25");
            CHECK(symbol.version != "CXXABI_1.3.12");
        }
    }
    CHECK(symbols == 9126);
    const auto has = [&](std::string_view name) {
        return std::ranges::any_of(
            *libraries, [&](const StubLibrary& library) { return library.soname == name; });
    };
    for (const std::string_view name : {"libc.so.6",
                                        "libm.so.6",
                                        "libpthread.so.0",
                                        "libstdc++.so.6",
                                        "libgcc_s.so.1",
                                        "ld-linux-x86-64.so.2"}) {
        CHECK(has(name));
    }
}

TEST_CASE("the stub of HIP has the versions of the real library", "[toolchain][stubs]") {
    const auto data = embedded_data("amdhip64-5.7_x86_64.tsv");
    REQUIRE(data);
    const auto libraries = parse_stub_table(*data);
    REQUIRE(libraries);
    REQUIRE(libraries->size() == 1);
    const StubLibrary& hip = libraries->front();
    CHECK(hip.soname == "libamdhip64.so.5");
    CHECK(hip.symbols.size() == 459);
    const auto version_of = [&](std::string_view name) {
        const auto found = std::ranges::find(hip.symbols, name, &StubSymbol::name);
        return found == hip.symbols.end() ? std::string_view{} : found->version;
    };
    CHECK(version_of("hipLaunchKernel") == "hip_4.2");
    CHECK(version_of("__hipRegisterFatBinary") == "hip_4.2");
    CHECK(version_of("hipArray3DGetDescriptor") == "hip_5.6");
    const auto sources = framework_stub_sources(*libraries, "");
    CHECK(sources.back().content.find("-Wl,-soname,libamdhip64.so.5") != std::string::npos);
}
