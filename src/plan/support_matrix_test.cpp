// SPDX-License-Identifier: Apache-2.0
#include "plan/support_matrix.hpp"

#include "backend/rules.hpp"
#include "base/text.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <set>
#include <string>

namespace kb::plan {

namespace {

const std::string kSmall = R"({
"schema": "kernel-builder/support-matrix/1",
"about": "small",
"python": {"abi": "3.9", "requirements": []},
"hosts": [{"platform": "x86_64-linux", "compiler": "12", "requirements": []}],
"torch": [{"version": "2.11", "cxx-standard": 17, "requirements": ["wheel/torch@2.11.0"]}],
"tvm-ffi": [],
"toolkits": [{"backend": "cpu", "name": "CPU", "cxx-standard": 20, "requirements": []}],
"dependencies": [],
"rows": [{"torch": "2.11", "backend": "cpu", "platforms": ["x86_64-linux"], "bundle": true}]
})";

} // namespace

TEST_CASE("the compiled-in matrix is readable and names only providers that exist",
          "[plan][matrix]") {
    const SupportMatrix& matrix = default_support_matrix();
    CHECK(matrix.rows.size() > 20);
    std::set<std::string> providers;
    for (const auto& row : matrix.torch) {
        CAPTURE(row.version.to_text());
        CHECK(row.requirements.empty() != row.unavailable.empty());
    }
    for (const ToolkitRow& row : matrix.toolkits) {
        CAPTURE(row.archs.name);
        // What cannot be fetched says why; what can says what it needs.
        CHECK(
            (row.backend == BackendId::cpu || row.requirements.empty() != row.unavailable.empty()));
        const auto all = backend::rules_of(row.backend).choose_archs({}, row.archs);
        CHECK(all.refused.empty());
    }
    for (const HostRow& row : matrix.hosts) {
        CHECK(row.requirements.empty() != row.unavailable.empty());
    }
}

TEST_CASE("a toolkit compiles what it builds", "[plan][matrix]") {
    for (const ToolkitRow& row : default_support_matrix().toolkits) {
        if (row.archs.compiles.empty()) {
            continue;
        }
        const std::set<std::string> compiles{row.archs.compiles.begin(), row.archs.compiles.end()};
        for (const std::string& arch : row.archs.builds) {
            CAPTURE(row.archs.name, arch);
            CHECK(compiles.contains(replace_all(arch, "+PTX", "")));
        }
    }
}

TEST_CASE("rows of the matrix are found by version", "[plan][matrix]") {
    const SupportMatrix& matrix = default_support_matrix();
    CHECK(find_torch(matrix, Version{{2, 11, 0}})->cxx_standard == 17);
    CHECK(find_torch(matrix, Version{{2, 12}})->cxx_standard == 20);
    CHECK(find_torch(matrix, Version{{1, 0}}) == nullptr);
    CHECK(find_toolkit(matrix, BackendId::cuda, Version{{13, 0}})->archs.name == "CUDA 13.0");
    CHECK(find_toolkit(matrix, BackendId::cpu, Version{}) != nullptr);
    CHECK(find_toolkit(matrix, BackendId::cuda, Version{}) == nullptr);
    CHECK(find_dependency(matrix, "cutlass_3_6")->mount == "cutlass-3.6");
}

TEST_CASE("a matrix with a mistake is refused", "[plan][matrix]") {
    REQUIRE(parse_support_matrix(kSmall).has_value());
    const auto [from, to, what] = GENERATE(table<std::string, std::string, std::string>({
        {"matrix/1", "matrix/2", "schema"},
        {"\"bundle\": true", "\"bundle\": true, \"extra\": 1", "extra"},
        {"\"bundle\": true", "\"bundle\": 1", "bundle"},
        {", \"bundle\": true", "", "bundle"},
        {"[{\"torch\": \"2.11\"", "[{\"torch\": \"2.12\"", "no row of torch"},
        {"\"cxx-standard\": 17", "\"cxx-standard\": 14", "cxx-standard"},
        {"wheel/torch@2.11.0", "torch", "not a requirement"},
        {"\"backend\": \"cpu\", \"platforms\"",
         "\"backend\": \"cuda\", \"backend-version\": \"13.0\", \"platforms\"",
         "no toolkit row"},
        {"\"platforms\": [\"x86_64-linux\"]", "\"platforms\": [\"aarch64-linux\"]", "no host row"},
        {"\"platforms\": [\"x86_64-linux\"]", "\"platforms\": [\"amiga\"]", "not a platform"},
        {"\"name\": \"CPU\"", "\"name\": \"CPU\", \"builds\": [\"9.0\"]", "no architectures"},
        {"\"tvm-ffi\": []", "\"tvm-ffi\": {}", "tvm-ffi"},
    }));
    CAPTURE(from, to);
    const std::string text = replace_all(kSmall, from, to);
    REQUIRE(text != kSmall);
    const auto matrix = parse_support_matrix(text);
    REQUIRE_FALSE(matrix.has_value());
    CAPTURE(matrix.error().to_text());
    CHECK(matrix.error().to_text().find(what) != std::string::npos);
}

TEST_CASE("two rows of one thing are refused", "[plan][matrix]") {
    const std::string row = R"({"torch": "2.11", "backend": "cpu", "platforms": )"
                            R"(["x86_64-linux"], "bundle": true})";
    const auto matrix = parse_support_matrix(replace_all(kSmall, row, row + "," + row));
    REQUIRE_FALSE(matrix.has_value());
    CHECK(matrix.error().message.find("two rows") != std::string::npos);
}

} // namespace kb::plan
