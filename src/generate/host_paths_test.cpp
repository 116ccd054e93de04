// SPDX-License-Identifier: Apache-2.0
#include "generate/host_paths.hpp"

#include "support/catch.hpp"

#include <string>

namespace kb::generate {
namespace {

TEST_CASE("fixed places become places below the view, and nothing else does", "[generate][host]") {
    struct Row {
        std::string word{};
        std::string expected{};
    };

    const Row row = GENERATE(values<Row>({
        {"/usr/bin/g++", "/v/bin/g++"},
        {"/usr", "/v/usr"},
        {"/usr/include", "/v/usr/include"},
        {"/src/a.cpp", "/v/src/a.cpp"},
        {"/work/tu", "/v/work/tu"},
        {"/toolchain/cuda-13.0/bin/nvcc", "/v/toolchain/cuda-13.0/bin/nvcc"},
        {"-I/src/include", "-I/v/src/include"},
        {"-L/toolchain/stubs", "-L/v/toolchain/stubs"},
        {"-isystem/toolchain/python", "-isystem/v/toolchain/python"},
        {"-ccbin=/usr/bin/g++", "-ccbin=/v/bin/g++"},
        {"-Xcompiler=-O3,-I/src/x,/usr/lib", "-Xcompiler=-O3,-I/v/src/x,/v/usr/lib"},
        {"-DPATH=\"/src/a\"", "-DPATH=\"/src/a\""},
        {"-D/src", "-D/src"},
        {"/srcs/a.cpp", "/srcs/a.cpp"},
        {"tu/0a.o", "tu/0a.o"},
        {"x/src/a", "x/src/a"},
        {"-o", "-o"},
        {"/opt/usr/bin", "/opt/usr/bin"},
        {"-std=c++20", "-std=c++20"},
        {"/", "/"},
        {"", ""},
    }));
    CAPTURE(row.word);
    CHECK(host_word(row.word, "/v") == row.expected);
}

TEST_CASE("a command is changed word by word", "[generate][host]") {
    const Words command{"/usr/bin/g++", "-c", "/src/a b.cpp", "-o", "tu/1.o"};
    CHECK(host_command(command, "/home/me/k/.kernel-builder/view") ==
          Words{"/home/me/k/.kernel-builder/view/bin/g++",
                "-c",
                "/home/me/k/.kernel-builder/view/src/a b.cpp",
                "-o",
                "tu/1.o"});
}

} // namespace
} // namespace kb::generate
