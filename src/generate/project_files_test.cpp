// SPDX-License-Identifier: Apache-2.0
#include "generate/project_files.hpp"

#include "generate/cmake_tables.hpp"
#include "generate/test_world.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <algorithm>

namespace kb::generate {

namespace {

std::vector<FileImage> files_of(std::string_view toml) {
    const config::Config config = test::config_of(toml);
    return project_files({.config = config,
                          .matrix = plan::default_support_matrix(),
                          .snapshot = test::relu_snapshot(),
                          .unique_id = "abc1234",
                          .provenance = package::Provenance{.tool_version = "0.1.0"}});
}

std::string names(const std::vector<FileImage>& files) {
    std::string text;
    for (const FileImage& file : files) {
        text += file.path.text() + "\n";
    }
    return text;
}

constexpr std::string_view kNoarchToml = "[general]\nname = \"fast-relu\"\nversion = 1\n"
                                         "edition = 5\nlicense = \"MIT\"\n"
                                         "backends = [\"cuda\", \"rocm\"]\n"
                                         "[torch-noarch]\npyext = [\"py\", \"json\"]\n";
constexpr std::string_view kTvmToml = "[general]\nname = \"fast-relu\"\nversion = 1\n"
                                      "edition = 5\nlicense = \"MIT\"\n"
                                      "backends = [\"cpu\", \"cuda\"]\n"
                                      "[tvm-ffi]\nsrc = [\"tvm-ffi-ext/binding.cpp\"]\n"
                                      "[kernel.a]\nbackend = \"cpu\"\ndepends = []\n"
                                      "src = [\"cpu/a.cpp\"]\n"
                                      "[kernel.b]\nbackend = \"cuda\"\ndepends = []\n"
                                      "src = [\"cuda/b.cu\"]\n";

const std::string kMetadataNames = "metadata-cann.json\nmetadata-cpu.json\nmetadata-cuda.json\n"
                                   "metadata-metal.json\nmetadata-neuron.json\n"
                                   "metadata-rocm.json\nmetadata-tpu.json\nmetadata-xpu.json\n";

} // namespace

TEST_CASE("each framework has the files of the format", "[generate][project]") {
    CHECK(names(files_of(test::kTorchToml)) ==
          "CMakeLists.txt\ncmake/_ops.py.in\ncmake/add_build_metadata.py\n"
          "cmake/build-variants.cmake\ncmake/compile-metal.cmake\ncmake/get_gpu_lang.cmake\n"
          "cmake/get_gpu_lang.py\ncmake/hipify.py\ncmake/kernel.cmake\n"
          "cmake/metallib_to_header.py\ncmake/utils.cmake\n" +
              kMetadataNames + "pyproject.toml\nsetup.py\ntorch-ext/registration.h\n");
    CHECK(names(files_of(kNoarchToml)) ==
          kMetadataNames + "pyproject.toml\nsetup.py\ntorch-ext/fast_relu/_ops.py\n");
    CHECK(names(files_of(kTvmToml)) ==
          "CMakeLists.txt\ncmake/_ops.py.in\ncmake/add_build_metadata.py\n"
          "cmake/build-variants.cmake\ncmake/cuda/detect-cuda-capability.py\n"
          "cmake/kernel.cmake\ncmake/utils.cmake\n" +
              kMetadataNames + "pyproject.toml\nsetup.py\n");
}

TEST_CASE("projects are as they were agreed on", "[generate][project][golden]") {
    const auto [name, toml] = GENERATE(table<std::string, std::string_view>(
        {{"torch", test::kTorchToml}, {"torch-noarch", kNoarchToml}, {"tvm-ffi", kTvmToml}}));
    for (const FileImage& file : files_of(toml)) {
        const std::string path = file.path.text();
        // The other files are the same for every kernel: templates/ holds them.
        if (path == "CMakeLists.txt" || path == "setup.py" || path == "pyproject.toml" ||
            path == "metadata-cuda.json" || path.ends_with("_ops.py")) {
            kb::test::golden("generate/project-" + name + "/" + path, file.content);
        }
    }
}

TEST_CASE("a project tells a guessed language from a given one before it caches it",
          "[generate][project]") {
    const auto toml = GENERATE(as<std::string_view>{}, test::kTorchToml, kTvmToml);
    bool decided = false;
    for (const FileImage& file : files_of(toml)) {
        const std::size_t cached = file.content.find("set(GPU_LANG \"${");
        if (cached != std::string::npos) {
            decided = file.content.find("set(KB_LANGUAGE_IS_GUESSED TRUE)") < cached;
        }
    }
    CHECK(decided);
}

TEST_CASE("tables hold what the rules decide for each toolkit", "[generate][project]") {
    const config::Config config = test::config_of(test::kTorchToml);
    const std::string tables = cmake_tables({.config = config,
                                             .matrix = plan::default_support_matrix(),
                                             .snapshot = test::relu_snapshot()});
    const auto has = [&](std::string_view line) {
        return tables.find(std::string{line} + "\n") != std::string::npos;
    };
    CHECK(has("set(KB_ARCHS_fast_12.6 \"8.0\" \"9.0a\")"));
    CHECK(has("set(KB_ARCHS_fast_13.0 \"8.0\" \"9.0a\")"));
    CHECK(has("set(KB_ARCHS_odd+20id_13.0 \"7.5\" \"8.0\" \"8.6\" \"8.7\" \"8.9\" \"9.0\" \"10.0\" "
              "\"11.0\" \"12.0\" \"12.1+PTX\")"));
    CHECK(has("set(KB_ARCHS_amd_7.2 \"gfx942\")"));
    // A flag that the toolkit does not know yet is left out for it alone.
    CHECK(has("set(KB_FLAGS_fast_12.6 \"-DTEXT=\\\"a b\\\\$<SEMICOLON>c\\\"\")"));
    CHECK(tables.find("KB_FLAGS_fast_13.0") == std::string::npos);
    CHECK(has("set(KB_STABLE_ABI_cuda 2.11)"));
    CHECK(has("set(KB_TORCH_TARGET_VERSION_cuda 0x020b000000000000)"));
    CHECK(tables.find("KB_STABLE_ABI_cpu") == std::string::npos);
    CHECK(has("set(KB_TORCH_LIBRARIES_cpu \"torch\" \"torch_cpu\" \"c10\")"));
    CHECK(has("set(KB_CXX_STANDARD_2.11 17)"));
}

TEST_CASE("a flag survives CMake's lists and generator expressions", "[generate][project]") {
    CHECK(cmake_flag("-O3") == "\"-O3\"");
    CHECK(cmake_flag("-DA=\"x;y>$z\\\"") == "\"-DA=\\\"x\\\\$<SEMICOLON>y$<ANGLE-R>\\$z\\\\\\\"\"");
}

TEST_CASE("the same input gives the same bytes", "[generate][project]") {
    CHECK(files_of(test::kTorchToml) == files_of(test::kTorchToml));
}

} // namespace kb::generate
