// SPDX-License-Identifier: Apache-2.0
#include "build/stub_library.hpp"

#include "binfmt/shared_object.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <dlfcn.h>
#include <memory>
#include <set>

using namespace kb;
using namespace kb::build;

namespace {

StubLibrary sample(StubMachine machine) {
    StubLibrary library{.soname = "libnowhere.so.13",
                        .machine = machine,
                        .symbols = {{.name = "nowhereInit", .version = "libnowhere.so.13"},
                                    {.name = "nowhereNew", .version = "NOWHERE_2"},
                                    {.name = "nowhereInit", .version = "NOWHERE_2"},
                                    {.name = "plain"},
                                    {.name = "nowhereGetErrorString", .answer = StubAnswer::text}},
                        .versions = {"NOWHERE_EMPTY"}};
    for (int i = 0; i < 500; ++i) {
        library.symbols.push_back({.name = "many" + std::to_string(i)});
    }
    return library;
}

struct Closer {
    void operator()(void* library) const { ::dlclose(library); }
};

template <typename Function>
Function function_at(void* address) {
    return reinterpret_cast<Function>(address); // dlsym's way
}

} // namespace

TEST_CASE("the loader takes a stub and every function answers", "[build][stub]") {
#ifndef __x86_64__
    std::printf("SKIPPED: the sample is for x86_64\n");
#else
    const kb::test::TempDir dir;
    kb::test::write_text(dir / "libnowhere.so.13", write_stub_library(sample(StubMachine::x86_64)));
    const std::unique_ptr<void, Closer> library{
        ::dlopen((dir / "libnowhere.so.13").c_str(), RTLD_NOW | RTLD_LOCAL)};
    if (library == nullptr) {
        FAIL(::dlerror());
    }
    void* init = ::dlvsym(library.get(), "nowhereInit", "libnowhere.so.13");
    REQUIRE(init != nullptr);
    CHECK(function_at<int (*)()>(init)() == 100);
    CHECK(::dlvsym(library.get(), "nowhereInit", "NOWHERE_2") != nullptr);
    CHECK(::dlvsym(library.get(), "nowhereNew", "libnowhere.so.13") == nullptr);
    CHECK(::dlsym(library.get(), "plain") != nullptr);
    CHECK(::dlsym(library.get(), "absent") == nullptr);
    for (int i = 0; i < 500; ++i) {
        CHECK(::dlsym(library.get(), ("many" + std::to_string(i)).c_str()) != nullptr);
    }
    void* text = ::dlsym(library.get(), "nowhereGetErrorString");
    REQUIRE(text != nullptr);
    CHECK(std::string{function_at<const char* (*)()>(text)()} ==
          "stub of kernel-builder testshell: no GPU library here");
#endif
}

TEST_CASE("a stub reads back as what was asked for, on both machines", "[build][stub]") {
    const auto machine = GENERATE(StubMachine::x86_64, StubMachine::aarch64);
    const StubLibrary library = sample(machine);
    const std::string bytes = write_stub_library(library);
    CHECK(bytes == write_stub_library(library));
    const binfmt::MemorySource source{as_bytes(bytes)};
    const auto facts = binfmt::read_shared_object(source);
    INFO((facts ? std::string{} : facts.error().to_text()));
    REQUIRE(facts.has_value());
    CHECK(facts->soname == "libnowhere.so.13");
    CHECK(facts->architecture == (machine == StubMachine::x86_64 ? "x86_64" : "aarch64"));
    CHECK(facts->imports.empty());
    CHECK(facts->needed.empty());
    CHECK_FALSE(facts->exec_stack);
    std::multiset<std::string_view> exported;
    for (const binfmt::Symbol& symbol : facts->exports) {
        exported.insert(symbol.name);
    }
    CHECK(exported.size() == library.symbols.size());
    CHECK(exported.count("nowhereInit") == 2);
    CHECK(exported.contains("many499"));
}

TEST_CASE("a stub without symbols is still a library", "[build][stub]") {
    const std::string bytes = write_stub_library({.soname = "libempty.so"});
    const binfmt::MemorySource source{as_bytes(bytes)};
    const auto facts = binfmt::read_shared_object(source);
    REQUIRE(facts.has_value());
    CHECK(facts->soname == "libempty.so");
    CHECK(facts->exports.empty());
}
