// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"
#include "support/check_inputs.hpp"

namespace kb::check {
namespace {

using test::ElfSpec;
using test::input_of;
using test::run_one;

std::string look(const ElfSpec& spec) {
    return run_one(input_of(spec, {}), hygiene_check());
}

TEST_CASE("search paths below the library pass", "[check][hygiene]") {
    CHECK(look({}) == "passed\n");
    CHECK(look({.runpath = "$ORIGIN"}) == "passed\n");
    CHECK(look({.rpath = "${ORIGIN}/../lib:$ORIGIN/x"}) == "passed\n");
}

TEST_CASE("paths of the building machine are told", "[check][hygiene]") {
    CHECK(look({.runpath = "$ORIGIN:/home/me/lib"}) ==
          "failed\n/home/me/lib: the runpath holds '/home/me/lib', a path of the machine that "
          "built it\n");
    CHECK(look({.rpath = "$ORIGIN:"}) ==
          "failed\n: the rpath has an empty entry, which is the current directory\n");
    CHECK(look({.runpath = "$ORIGINAL/lib"}).starts_with("failed"));
    CHECK(look({.runpath = "/x\x1b[31m"}).find('\x1b') == std::string::npos);
}

TEST_CASE("an executable stack and relocations in code are told", "[check][hygiene]") {
    CHECK(look({.exec_stack = true}) ==
          "failed\nexec-stack: asks for an executable stack, which hardened systems refuse\n");
    CHECK(look({.stack_note = false}).starts_with("failed"));
    CHECK(look({.text_relocations = true}) ==
          "failed\ntext-relocations: has relocations in code, so the loader must write to it\n");
}

TEST_CASE("a file that was not looked into is not a pass", "[check][hygiene]") {
    CHECK(look({.type = 1}) == "not checked [the ELF file is no shared object]\n");
}

} // namespace
} // namespace kb::check
