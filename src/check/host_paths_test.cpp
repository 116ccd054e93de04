// SPDX-License-Identifier: Apache-2.0
#include "check/host_paths.hpp"

#include "check/checks.hpp"
#include "support/check_inputs.hpp"

namespace kb::check {
namespace {

/// A library in which these paths were found.
CheckInput holding(const std::vector<std::string>& paths) {
    CheckInput input = test::input_of({}, {});
    binfmt::SharedObject& object = *input.libraries[0].object;
    for (const std::string& path : paths) {
        object.path_texts.push_back({.offset = 16, .text = path});
    }
    return input;
}

TEST_CASE("homes and sources of the building machine are told, once each", "[check][host-paths]") {
    CHECK(test::run_one(holding({"/home/alice/k/x.cu", "/home/alice/k/x.cu", "/tmp/b/x.o"}),
                        host_paths_check()) ==
          "failed\n"
          "/home/alice/k/x.cu: holds '/home/alice/k/x.cu', in the home of the user 'alice'\n"
          "/tmp/b/x.o: holds '/tmp/b/x.o', a place of the machine that built it\n");
}

TEST_CASE("what nobody looked for is not a pass", "[check][host-paths]") {
    CheckInput input = holding({});
    input.libraries[0].object->add_gap(binfmt::Fact::path_texts,
                                       "paths in the bytes of the file were not looked for");
    CHECK(test::run_one(input, host_paths_check()) ==
          "not checked [paths in the bytes of the file were not looked for]\n");
    CHECK(test::run_one(holding({}), host_paths_check()) == "passed\n");
}

TEST_CASE("which paths are a building machine's", "[check][host-paths]") {
    for (const char* path : {"/home/a/x",
                             "/home/jos\xC3\xA9/k.cu",
                             "/Users/me/k.metal",
                             R"(\Users\me\a.cpp)",
                             "/tmp/x.cpp",
                             "/tmp/pip-build/x/y",
                             "/root/k/src/x",
                             "/builds/team/k/x.cc",
                             "/__w/k/k/src/x",
                             "/srv/k/x.c"}) {
        CAPTURE(path);
        CHECK_FALSE(host_path_reason(path, {"/srv/k"}).empty());
    }
    for (const char* path : {"/home/",
                             "/home/x",
                             "/home/%s/x",
                             "/tmp/",
                             "/tmp/cuda-dbg",
                             "/tmp/x.log",
                             "/Users/Shared/x",
                             R"(\Users\Public\x)",
                             "/srv/kk/x.c",
                             "/mnt/huge",
                             "/tmp/fuserXXXXXX.cpp"}) {
        CAPTURE(path);
        CHECK(host_path_reason(path, {"/srv/k"}).empty());
    }
}

TEST_CASE("all that is searched for begins with one byte", "[check][host-paths]") {
    for (const binfmt::Format format :
         {binfmt::Format::elf, binfmt::Format::macho, binfmt::Format::pe}) {
        const auto beginnings = host_path_beginnings(format, {"/srv/k", "C:/k", ""});
        REQUIRE_FALSE(beginnings.empty());
        for (const std::string& beginning : beginnings) {
            CHECK(beginning[0] == beginnings[0][0]);
        }
    }
}

} // namespace
} // namespace kb::check
