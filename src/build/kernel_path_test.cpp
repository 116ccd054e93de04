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

std::string loaded(std::vector<std::string> names, PythonFacts python) {
    const auto at = loadable_variant(names, python);
    return at ? names[*at] : "nothing";
}

PythonFacts cpu(Version torch) {
    return {.torch = std::move(torch)};
}

PythonFacts cuda(Version torch, Version toolkit) {
    return {.torch = std::move(torch),
            .backend = BackendId::cuda,
            .backend_version = std::move(toolkit)};
}

TEST_CASE("a Python loads the variant of its torch", "[build][kernel-path]") {
    CHECK(loaded(kNames, cpu(Version{{2, 13, 0}})) == "torch-stable-abi211-cpu-x86_64-linux");
    CHECK(loaded(kNames, cpu(Version{{2, 15, 1}})) == "torch-stable-abi215-cpu-x86_64-linux");
    const std::string aot = "torch213-cxx11-cpu-x86_64-linux";
    CHECK(loaded({aot}, cpu(Version{{2, 13, 2}})) == aot);
    CHECK(loaded({aot}, cpu(Version{{2, 14}})) == "nothing");
    CHECK(loaded({"torch-stable-abi211-cpu-aarch64-linux"}, cpu(Version{{2, 14}})) == "nothing");
    CHECK(loaded({}, cpu(Version{{2, 14}})) == "nothing");
}

TEST_CASE("a Python loads the variant of its device and toolkit", "[build][kernel-path]") {
    const std::string old = "torch-stable-abi211-cu126-x86_64-linux";
    const std::string recent = "torch-stable-abi211-cu130-x86_64-linux";
    CHECK(loaded(kNames, cuda(Version{{2, 12}}, Version{{13, 0}})) == recent);
    CHECK(loaded({recent, old}, cuda(Version{{2, 12}}, Version{{12, 8}})) == old);
    CHECK(loaded({recent}, cuda(Version{{2, 12}}, Version{{12, 8}})) == "nothing");
    CHECK(loaded({recent}, cpu(Version{{2, 12}})) == "nothing");
    CHECK(loaded({"torch-cuda"}, cpu(Version{{2, 12}})) == "nothing");
    CHECK(loaded({"torch-cuda"}, cuda(Version{{2, 12}}, Version{{12, 8}})) == "torch-cuda");
    CHECK(loaded({"torch-universal"}, cuda(Version{{2, 14}}, Version{{13, 0}})) ==
          "torch-universal");
    CHECK(loaded({"torch-cpu", recent}, cpu(Version{{2, 14}})) == "torch-cpu");
}

TEST_CASE("torch's version file is read whatever build it is of", "[build][kernel-path]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    const auto read = [&](std::string_view text) {
        test::write_text(dir / "version.py", text);
        return read_torch_version(fs, dir.path());
    };
    const auto release = read("from typing import Optional\n__all__ = ['__version__']\n"
                              "__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n");
    REQUIRE(release.has_value());
    CHECK(release->torch == Version{{2, 11, 0}});
    CHECK(release->cuda == Version{{13, 0}});
    const auto nightly =
        read("__version__ = '2.10.0.dev20251001+cpu'\ncuda: Optional[str] = None\n");
    REQUIRE(nightly.has_value());
    CHECK(nightly->torch == Version{{2, 10, 0}});
    CHECK_FALSE(nightly->cuda);
    CHECK(read("__version__ = 'unknown'\n").error().code == ErrorCode::corrupt);
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
