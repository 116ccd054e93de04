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

TEST_CASE("a text that is too long is no schema, what stands behind it is", "[binfmt][schemas]") {
    const std::string schema = "f(Tensor x) -> Tensor";
    const auto padded = [](std::size_t size) {
        const std::string head = "f(Tensor x";
        const std::string tail = ") -> Tensor";
        return head + std::string(size - head.size() - tail.size(), 'x') + tail;
    };
    constexpr std::size_t kMost = 8UL << 10U;
    for (const std::size_t before : {1UL, 200'000UL, (256UL << 10U) - kMost, 256UL << 10U}) {
        CAPTURE(before);
        CHECK(find(zeros(before) + padded(kMost) + zeros(1)).size() == 1);
        CHECK(find(zeros(before) + padded(kMost + 1) + zeros(1) + schema + zeros(1)) ==
              std::vector<std::string>{schema});
    }
}

// Looking at the whole run for each arrow took minutes.
TEST_CASE("a file of arrows costs its size", "[binfmt][schemas]") {
    std::string bytes;
    while (bytes.size() < 10UL << 20U) {
        bytes += ") -> ";
    }
    CHECK(find(bytes).empty());
    const std::string schema = "f(Tensor x) -> Tensor";
    CHECK(find(bytes + zeros(1) + schema + zeros(1)) == std::vector<std::string>{schema});
    CHECK(find("f(Tensor x) -> (Tensor) -> Tensor" + zeros(1)).size() == 1);
}

} // namespace
} // namespace kb::binfmt
