// SPDX-License-Identifier: Apache-2.0
#include "binfmt/op_schemas.hpp"

#include "support/catch.hpp"

namespace kb::binfmt {
namespace {

std::vector<std::string> find(const std::string& bytes) {
    const MemorySource source{as_bytes(bytes)};
    const auto found = find_op_schemas(source);
    REQUIRE(found);
    return *found;
}

std::string zeros(std::size_t count) {
    return std::string(count, '\0');
}

TEST_CASE("schemas are found among other texts, each once", "[binfmt][schemas]") {
    const std::string norm = "norm(Tensor x, float eps=1e-5) -> Tensor";
    const std::string out = "ns::norm.out(Tensor x, *, Tensor(a!) out) -> ()";
    std::string bytes = zeros(3);
    for (const std::string& text : {norm,
                                    std::string{"auto f(int) -> decltype(x)"},
                                    out,
                                    norm,
                                    std::string{"(x) -> y"},
                                    std::string{"f() -> Tensor[]"},
                                    std::string{"say (Tensor x) -> Tensor"}}) {
        bytes += text + zeros(1);
    }
    CHECK(find(bytes) == std::vector<std::string>{"f() -> Tensor[]", norm, out});
    CHECK(find("norm(Tensor x) -> Tensor").empty()); // no end
    CHECK(find("").empty());
}

TEST_CASE("a schema across the border of two blocks is found", "[binfmt][schemas]") {
    constexpr std::size_t kBlock = 256UL << 10U;
    const std::string schema = "f(Tensor x) -> Tensor";
    for (std::size_t shift = 0; shift <= schema.size() + 1; ++shift) {
        std::string bytes = zeros(kBlock * 2);
        bytes.replace(kBlock - shift, schema.size(), schema);
        CAPTURE(shift);
        CHECK(find(bytes) == std::vector<std::string>{schema});
    }
}

} // namespace
} // namespace kb::binfmt
