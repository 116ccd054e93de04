// SPDX-License-Identifier: Apache-2.0
#include "backend/variant.hpp"

#include "support/catch.hpp"

#include <string>

namespace kb::backend {

namespace {

Version version(std::string_view text) {
    return text.empty() ? Version{} : Version::parse(text).value();
}

struct Spelling {
    std::string name;
    FrameworkId framework;
    std::string framework_version;
    BackendId backend;
    std::string backend_version;
    std::string platform;
};

} // namespace

TEST_CASE("a variant has the name that clients look for", "[backend][variant]") {
    using enum BackendId;
    using enum FrameworkId;
    const auto row = GENERATE(values<Spelling>({
        {"torch212-cxx11-cu126-x86_64-linux", torch, "2.12", cuda, "12.6", "x86_64-linux"},
        {"torch213-metal-aarch64-darwin", torch, "2.13", metal, "", "aarch64-darwin"},
        {"torch212-cu126-x86_64-windows", torch, "2.12", cuda, "12.6", "x86_64-windows"},
        {"torch-stable-abi211-cu130-aarch64-linux",
         torch_stable_abi,
         "2.11",
         cuda,
         "13.0",
         "aarch64-linux"},
        {"torch-stable-abi211-cpu-x86_64-linux", torch_stable_abi, "2.11", cpu, "", "x86_64-linux"},
        {"tvm-ffi01-cu132-x86_64-linux", tvm_ffi, "0.1", cuda, "13.2", "x86_64-linux"},
        {"torch212-cxx11-xpu20253-x86_64-linux", torch, "2.12", xpu, "2025.3", "x86_64-linux"},
        {"torch213-cxx11-rocm72-x86_64-linux", torch, "2.13", rocm, "7.2", "x86_64-linux"},
        {"torch29-cxx11-cpu-x86_64-linux", torch, "2.9", cpu, "", "x86_64-linux"},
    }));
    const Variant variant{.framework = row.framework,
                          .framework_version = version(row.framework_version),
                          .backend = row.backend,
                          .backend_version = version(row.backend_version),
                          .platform = parse_platform(row.platform).value()};
    const auto name = VariantName::of(variant);
    REQUIRE(name);
    CHECK(name->text() == row.name);
    const auto back = VariantName::parse(row.name);
    REQUIRE(back);
    CHECK(back->variant() == variant);
    CHECK(*back == *name);
}

TEST_CASE("every variant that can be spelt reads back as itself", "[backend][variant]") {
    std::size_t count = 0;
    for (const FrameworkId framework :
         {FrameworkId::torch, FrameworkId::torch_stable_abi, FrameworkId::tvm_ffi}) {
        for (const BackendId backend : kAllBackends) {
            for (std::uint64_t major = 0; major < 3; ++major) {
                for (std::uint64_t minor = 0; minor < 25; ++minor) {
                    for (const Os os : {Os::linux, Os::darwin, Os::windows}) {
                        Variant variant{.framework = framework,
                                        .framework_version = Version{{major, minor}},
                                        .backend = backend,
                                        .platform = {.cpu = Cpu::aarch64, .os = os}};
                        if (is_versioned(backend)) {
                            variant.backend_version = Version{{minor + 1, minor % 10}};
                        }
                        const auto name = VariantName::of(variant);
                        REQUIRE(name);
                        const auto back = VariantName::parse(name->text());
                        REQUIRE(back);
                        REQUIRE(back->variant() == variant);
                        ++count;
                    }
                }
            }
        }
    }
    CHECK(count == 5400);
}

TEST_CASE("a noarch variant is named by its backend", "[backend][variant]") {
    for (const BackendId backend : kAllBackends) {
        const Variant variant{.framework = FrameworkId::torch_noarch, .backend = backend};
        const auto name = VariantName::of(variant);
        REQUIRE(name);
        CHECK(name->text() == "torch-" + std::string{to_text(backend)});
        CHECK(VariantName::parse(name->text())->variant() == variant);
    }
    CHECK(VariantName::parse("torch-universal")->variant().universal);
    CHECK(VariantName::of(VariantName::parse("torch-universal")->variant())->text() ==
          "torch-universal");
    CHECK(VariantName::parse("torch-npu")->variant().backend == BackendId::cann);
}

TEST_CASE("a version that the grammar cannot carry has no name", "[backend][variant]") {
    Variant variant{.framework_version = Version{{2, 12}},
                    .backend = BackendId::cuda,
                    .backend_version = Version{{12, 10}}};
    CHECK_FALSE(VariantName::of(variant));
    variant.backend_version = Version{{7, 10}};
    variant.backend = BackendId::rocm;
    CHECK_FALSE(VariantName::of(variant));
    variant.backend = BackendId::cpu;
    variant.backend_version = Version{};
    CHECK(VariantName::of(variant));
    variant.framework_version = Version{{10, 0}};
    CHECK_FALSE(VariantName::of(variant));
}

TEST_CASE("names are read as the client reads them", "[backend][variant]") {
    // The last digit of a compute version is its minor version.
    CHECK(VariantName::parse("torch212-cxx11-cu1210-x86_64-linux")->variant().backend_version ==
          Version{{121, 0}});
    CHECK(VariantName::parse("torch212-cxx11-cu12-x86_64-linux")->variant().backend_version ==
          Version{{1, 2}});
    // Historic tags and their absence.
    CHECK(VariantName::parse("torch25-cxx98-cu121-x86_64-linux")->variant().framework_version ==
          Version{{2, 5}});
    CHECK(VariantName::parse("torch212-cpu-x86_64-linux")->text() == "torch212-cpu-x86_64-linux");
    CHECK(VariantName::parse("tvm-ffi012-cpu-x86_64-linux")->variant().framework_version ==
          Version{{0, 12}});
}

TEST_CASE("what no client reads is no name", "[backend][variant]") {
    const auto text = GENERATE(values<std::string>({
        "",
        "torch",
        "torch-",
        "torch-gpu",
        "torch2-cxx11-cpu-x86_64-linux",
        "torch212-cxx11-cpu-x86_64",
        "torch212-cxx11-cpu-x86_64-linux-",
        "torch212-cxx14-cpu-x86_64-linux",
        "torch212-cxx11-cu-x86_64-linux",
        "torch212-cxx11-cu1-x86_64-linux",
        "torch212-cxx11-gpu126-x86_64-linux",
        "torch212-cxx11-cpu-riscv-linux",
        "torch212-cxx11-cpu-x86_64-beos",
        "torch-stable-abi-cpu-x86_64-linux",
        "torch-stable-abi2-cpu-x86_64-linux",
        "torch-stable-abi211-cxx11-cpu-x86_64-linux",
        "tvm-ffi0-cpu-x86_64-linux",
        "tvm-cpu-x86_64-linux",
        "Torch212-cxx11-cpu-x86_64-linux",
        "torch212-cxx11-cpu-x86_64-linux/x",
        "../torch-cpu",
    }));
    CAPTURE(text);
    CHECK_FALSE(VariantName::parse(text));
}

} // namespace kb::backend
