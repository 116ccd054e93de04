// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"
#include "support/check_inputs.hpp"

namespace kb::check {
namespace {

using test::ElfSpec;
using test::input_of;
using test::run_one;

std::string look(const ElfSpec& spec) {
    return run_one(input_of(spec, {.python_abi = Version{{3, 9}}}), python_abi_check());
}

TEST_CASE("the limited API of the promised version passes", "[check][python-abi]") {
    CHECK(look({.needed = {"libpython3.so"},
                .symbols = {{.name = "PyModule_Create2"},
                            {.name = "_Py_NoneStruct"},
                            {.name = "python_like"},
                            {.name = "PyInit__k", .defined = true},
                            {.name = "PyMine_Exported", .defined = true}}}) == "passed\n");
}

TEST_CASE("symbols outside the limited API are told", "[check][python-abi]") {
    CHECK(look({.symbols = {{.name = "PyUnicode_AsUTF8"},
                            {.name = "_PyDict_NewPresized"},
                            {.name = "PyObject_GetBuffer"}}}) ==
          "failed\n"
          "PyObject_GetBuffer: 'PyObject_GetBuffer' came with Python 3.11, the promise is 3.9\n"
          "PyUnicode_AsUTF8: 'PyUnicode_AsUTF8' is not in Python's stable ABI\n"
          "_PyDict_NewPresized: '_PyDict_NewPresized' is not in Python's stable ABI\n");
}

TEST_CASE("a library of one Python ties the variant to it", "[check][python-abi]") {
    const auto [library, passes] =
        GENERATE(table<const char*, bool>({{"libpython3.so", true},
                                           {"libpython3.11.so.1.0", false},
                                           {"python3.dll", true},
                                           {"python311.dll", false},
                                           {"PYTHON311.dll", false},
                                           {"pythonic.dll", true}}));
    CAPTURE(library);
    CHECK(look({.needed = {library}}).starts_with("passed") == passes);
}

TEST_CASE("without a promise there is nothing to check", "[check][python-abi]") {
    CHECK(run_one(input_of({.symbols = {{.name = "PyUnicode_AsUTF8"}}}, {}), python_abi_check())
              .empty());
}

} // namespace
} // namespace kb::check
