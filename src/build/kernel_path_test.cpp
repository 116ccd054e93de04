// SPDX-License-Identifier: Apache-2.0
#include "build/kernel_path.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"

namespace kb::build {
namespace {

using backend::BackendId;

const std::vector<std::string> kNames{"torch-cuda",
                                      "torch-stable-abi211-cpu-x86_64-linux",
                                      "torch-stable-abi211-cu130-x86_64-linux",
                                      "torch-stable-abi215-cpu-x86_64-linux",
                                      "torch213-cxx11-cpu-x86_64-linux",
                                      "something else"};

std::string loaded(std::vector<std::string> names, BackendId backend, Version torch) {
    const auto at = loadable_variant(names, {.backend = backend, .torch = std::move(torch)});
    return at ? names[*at] : "nothing";
}

TEST_CASE("a Python loads the variant of its torch and device", "[build][kernel-path]") {
    CHECK(loaded(kNames, BackendId::cpu, Version{{2, 13, 0}}) ==
          "torch-stable-abi211-cpu-x86_64-linux");
    CHECK(loaded(kNames, BackendId::cpu, Version{{2, 15, 1}}) ==
          "torch-stable-abi215-cpu-x86_64-linux");
    CHECK(loaded(kNames, BackendId::cuda, Version{{2, 12}}) ==
          "torch-stable-abi211-cu130-x86_64-linux");
    const std::string aot = "torch213-cxx11-cpu-x86_64-linux";
    CHECK(loaded({aot}, BackendId::cpu, Version{{2, 13, 2}}) == aot);
    CHECK(loaded({aot}, BackendId::cpu, Version{{2, 14}}) == "nothing");
    CHECK(loaded({"torch-universal"}, BackendId::cuda, Version{{2, 14}}) == "torch-universal");
    CHECK(loaded({"torch-stable-abi211-cpu-aarch64-linux"}, BackendId::cpu, Version{{2, 14}}) ==
          "nothing");
    CHECK(loaded({}, BackendId::cpu, Version{{2, 14}}) == "nothing");
}

TEST_CASE("torch's version is read without its local part", "[build][kernel-path]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    test::write_text(dir / "version.py",
                     "from typing import Optional\n__version__ = '2.11.0+cpu'\n");
    CHECK(read_torch_version(fs, dir.path()).value() == Version{{2, 11, 0}});
    test::write_text(dir / "version.py", "__version__ = 'unknown'\n");
    CHECK(read_torch_version(fs, dir.path()).error().code == ErrorCode::corrupt);
    CHECK(read_torch_version(fs, dir / "none").error().code == ErrorCode::not_found);
}

TEST_CASE("a variant is importable under its module's name", "[build][kernel-path]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    const sys::Path variant = dir / "build/torch-universal";
    REQUIRE(fs.make_directories(variant));
    const auto first = make_importable(fs, dir / "cache", "relu", variant);
    REQUIRE(first.has_value());
    test::write_text(variant / "__init__.py", "x = 1\n");
    CHECK(sys::exists(fs, *first / "relu" / "__init__.py"));
    CHECK(make_importable(fs, dir / "cache", "relu", variant).value() == *first);
    CHECK(make_importable(fs, dir / "cache", "gelu", variant).value() != *first);
}

} // namespace
} // namespace kb::build
