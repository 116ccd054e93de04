// SPDX-License-Identifier: Apache-2.0
#include "build/python_child.hpp"

#include "base/text.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "sys/environment.hpp"

namespace kb::build {
namespace {

/// What Python says in a directory that holds modules of the names that it imports.
std::string say(const test::TempDir& dir, std::string_view python_path) {
    for (const char* name : {"json.py", "sitecustomize.py", "usercustomize.py", "torch.py"}) {
        test::write_text(dir / "here" / name, "print('run from here')\n");
    }
    test::write_text(dir / "mine/torch.py", "name = 'torch of the user'\n");
    sys::EnvironmentMap environment = sys::read_environment();
    environment["PYTHONPATH"] = replace_all(python_path, "MINE", (dir / "mine").string());
    sys::ProcessSpec spec = python_child("python3",
                                         "import json\n"
                                         "try:\n"
                                         "    import torch\n"
                                         "    print(torch.name)\n"
                                         "except ImportError:\n"
                                         "    print('no torch')\n",
                                         environment);
    spec.working_directory = dir / "here";
    const auto result = sys::real_process_runner().run(spec);
    REQUIRE(result);
    INFO(result->err);
    REQUIRE(result->status.ok());
    return std::string{trim(result->out)};
}

TEST_CASE("a child imports nothing of the current directory", "[build][python-child]") {
    const test::TempDir dir;
    for (const char* path : {"", ":", ".", "./", "::."}) {
        CAPTURE(path);
        CHECK(say(dir, path).find("here") == std::string::npos);
    }
}

TEST_CASE("a child imports what the user put on PYTHONPATH", "[build][python-child]") {
    const test::TempDir dir;
    for (const char* path : {"MINE", ":MINE", "MINE:", ".:MINE", "../mine"}) {
        CAPTURE(path);
        CHECK(say(dir, path) == "torch of the user");
    }
}

TEST_CASE("a variable without any place left is taken away", "[build][python-child]") {
    const auto path_of = [](const sys::EnvironmentMap& environment) {
        return sys::lookup(*python_child("python3", "", environment).environment, "PYTHONPATH");
    };
    CHECK_FALSE(path_of({}));
    CHECK_FALSE(path_of({{"PYTHONPATH", ":."}}));
    CHECK(path_of({{"PYTHONPATH", ":/a:./:b"}}) == "/a:b");
}

} // namespace
} // namespace kb::build
