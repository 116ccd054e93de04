// SPDX-License-Identifier: Apache-2.0
#include "base/rel_path.hpp"

#include "support/catch.hpp"

namespace kb {
namespace {

TEST_CASE("a RelPath cannot leave its root", "[base][rel_path]") {
    const std::string bad = GENERATE(values<std::string>({"",
                                                          "/",
                                                          "/etc/passwd",
                                                          "..",
                                                          "a/..",
                                                          "../a",
                                                          "a//b",
                                                          "a/",
                                                          "./a",
                                                          ".",
                                                          "a\\b",
                                                          std::string("a\0b", 3),
                                                          "a\nb",
                                                          "\xff",
                                                          "\xc0\xae\xc0\xae/a",
                                                          std::string(5000, 'a'),
                                                          "a/" + std::string(256, 'b')}));
    CAPTURE(bad);
    CHECK_FALSE(RelPath::parse(bad));
}

TEST_CASE("a RelPath gives its parts", "[base][rel_path]") {
    const RelPath path = RelPath::literal("torch-ext/my_kernel/__init__.py");
    CHECK(path.name() == "__init__.py");
    CHECK(path.parent() == "torch-ext/my_kernel");
    CHECK(path.extension() == ".py");
    CHECK(RelPath::literal(".gitignore").extension().empty());
    CHECK(RelPath::literal("a").parent().empty());
    CHECK((RelPath::literal("a") / RelPath::literal("b/c")).text() == "a/b/c");
    CHECK(RelPath::literal("...").name() == "...");
}

} // namespace
} // namespace kb
