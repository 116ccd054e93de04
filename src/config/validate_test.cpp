// SPDX-License-Identifier: Apache-2.0
#include "config/licenses.hpp"
#include "config/test_support.hpp"
#include "support/support.hpp"

#include <fmt/format.h>

#include <algorithm>

using namespace kb::config::test; // NOLINT(google-build-using-namespace): helpers of these tests
using kb::Diagnostics;
using kb::RelPath;

namespace {

std::vector<RelPath> files(const std::vector<std::string>& names) {
    std::vector<RelPath> out;
    for (const std::string& name : names) {
        out.push_back(RelPath::literal(name));
    }
    return out;
}

std::string warnings(std::string_view text, const std::vector<std::string>& names) {
    const kb::config::Config config = good(text);
    Diagnostics diagnostics;
    const std::vector<RelPath> paths = files(names);
    kb::config::validate(config, paths, diagnostics);
    CHECK_FALSE(diagnostics.has_errors());
    return all(std::move(diagnostics));
}

/// A kernel that nothing can be said about; `change` replaces one line of it.
std::string kernel(std::string_view from = "", std::string_view to = "") {
    std::string text = "[general]\n"
                       "name = \"demo-op\"\n"
                       "version = 1\n"
                       "edition = 5\n"
                       "license = \"apache-2.0\"\n"
                       "backends = [\"cpu\", \"cuda\"]\n"
                       "python-depends = [\"einops\"]\n"
                       "[general.cuda]\n"
                       "minver = \"12.6\"\n"
                       "maxver = \"13.0\"\n"
                       "[general.hub]\n"
                       "repo-id = \"acme/demo-op\"\n"
                       "branch = \"release/1\"\n"
                       "[torch]\n"
                       "src = [\"torch-ext/binding.cpp\"]\n"
                       "include = [\".\"]\n"
                       "minver = \"2.9\"\n"
                       "maxver = \"2.13\"\n"
                       "pyext = [\"py\", \"json\"]\n"
                       "stable-abi = { cpu = \"2.11\" }\n"
                       "[kernel.main]\n"
                       "backend = \"cpu\"\n"
                       "depends = [\"torch\"]\n"
                       "src = [\"cpu/a.cpp\"]\n"
                       "include = [\"cpu/\"]\n"
                       "[kernel.gpu]\n"
                       "backend = \"cuda\"\n"
                       "depends = [\"cutlass_4_0\"]\n"
                       "src = [\"cuda/a.cu\"]\n"
                       "cuda-capabilities = [\"8.0\", \"9.0a\", \"12.0+PTX\"]\n"
                       "cuda-minver = \"12.8\"\n";
    if (!from.empty()) {
        const std::size_t at = text.find(from);
        REQUIRE(at != std::string::npos);
        text.replace(at, from.size(), to);
    }
    return text;
}

const std::vector<std::string> kFiles{
    "build.toml", "torch-ext/binding.cpp", "cpu/a.cpp", "cuda/a.cu"};

} // namespace

TEST_CASE("a sound kernel has no findings", "[config][validate]") {
    CHECK(warnings(kernel(), kFiles).empty());
}

TEST_CASE("each finding is a warning with its place", "[config][validate]") {
    const auto [from, to, expected] = GENERATE(table<std::string, std::string, std::string>({
        {"[\"cpu\", \"cuda\"]",
         "[\"cpu\", \"cuda\", \"cpu\"]",
         "6:28: warning: backend 'cpu' is listed twice [duplicate-backend]\n"},
        {"[\"cpu\", \"cuda\"]",
         "[\"cpu\", \"cuda\", \"xpu\"]",
         "6:28: warning: backend 'xpu' is listed but no [kernel.*] section is for it "
         "[backend-without-section]\nnote: add a section with backend = \"xpu\", or take it off "
         "the list\n"},
        {"[\"cpu\", \"cuda\"]",
         "[\"cpu\", \"cuda\", \"tpu\"]",
         "6:28: warning: backend 'tpu' cannot be built from [torch], only from [torch-noarch] "
         "[backend-without-section]\n"},
        {"cpu/a.cpp",
         "cpu/b.cpp",
         "24:8: warning: [kernel.main]: there is no file 'cpu/b.cpp' [missing-source]\n"
         "note: did you mean 'cpu/a.cpp'?\n"},
        {"\"cpu/a.cpp\"",
         "\"a.cpp\"",
         "24:8: warning: [kernel.main]: there is no file 'a.cpp' [missing-source]\n"
         "note: did you mean 'cpu/a.cpp'?\n"},
        {"\"cpu/a.cpp\"",
         "\"/cpu/a.cpp\"",
         "24:8: warning: [kernel.main]: '/cpu/a.cpp' is no path below the project "
         "[source-outside]\nnote: write it relative to build.toml, with '/', without '.' and '..': "
         "a build sees only files of the project\n"},
        {"[\"cpu/a.cpp\"]",
         "[\"cpu/a.cpp\", \"cpu/a.cpp\"]",
         "24:21: warning: 'cpu/a.cpp' is listed twice in 'src' of [kernel.main] "
         "[duplicate-source]\n"},
        {"[\"cpu/a.cpp\"]",
         "[]",
         "21:9: warning: [kernel.main] has no sources: nothing is compiled [no-sources]\n"},
        {"[\"cpu/\"]",
         "[\"cpx\"]",
         "25:12: warning: [kernel.main]: there is no folder 'cpx' [missing-include]\n"},
        {"\"13.0\"",
         "\"12.0\"",
         "9:10: warning: no CUDA version lies between minver 12.6 and maxver 12.0: nothing is "
         "built [empty-range]\nbuild.toml:31:15: warning: section 'kernel.gpu' is never built: it "
         "needs CUDA 12.8, general.cuda.maxver is 12.0 [never-built]\n"},
        {"\"2.9\"",
         "\"2.14\"",
         "17:10: warning: no torch version lies between minver 2.14 and maxver 2.13: nothing is "
         "built [empty-range]\n"},
        {"\"2.11\" }",
         "\"2.14\" }",
         "20:22: warning: the stable ABI of torch 2.14 needs that torch, maxver of [torch] is 2.13 "
         "[stable-abi-above-maxver]\n"},
        {"{ cpu = \"2.11\" }",
         "{ xpu = \"2.11\" }",
         "20:22: warning: 'stable-abi' names 'xpu', which is not in 'backends' of [general] "
         "[unlisted-backend]\n"},
        {"{ cpu = \"2.11\" }",
         "{}",
         "20:14: warning: 'stable-abi' of [torch] is empty: no backend uses the stable ABI "
         "[empty-stable-abi]\n"},
        {"\"apache-2.0\"",
         "\"apache2.0\"",
         "5:11: warning: licence 'apache2.0' is not known [unknown-license]\n"
         "note: did you mean 'apache-2.0'?\n"},
        {"\"apache-2.0\"", "\"\"", "5:11: warning: 'license' is empty [unknown-license]\n"},
        {"\"cutlass_4_0\"",
         "\"metal-cpp\"",
         "28:12: warning: 'metal-cpp' is of no use to backend 'cuda' [odd-dependency]\n"},
        {"\"einops\"",
         "\"einop\"",
         "7:19: warning: python package 'einop' is not known [unknown-python-dependency]\n"
         "note: did you mean 'einops'?\n"
         "note: known packages: 'einops', 'helion' and 'tvm-ffi'\n"},
        {"\"einops\"",
         "\"nki\"",
         "7:19: warning: python package 'nki' is not known [unknown-python-dependency]\n"
         "note: put it under [general.neuron]\n"
         "note: known packages: 'einops', 'helion' and 'tvm-ffi'\n"},
        {"\"json\"",
         "\".json\"",
         "19:16: warning: '.json' in 'pyext' matches no file: extensions are written without the "
         "dot [bad-extension]\n"},
        {"acme/demo-op",
         "demo-op",
         "12:11: warning: 'demo-op' is no repository id [bad-repo-id]\n"
         "note: write owner/name, each of letters, digits, '-', '_' and '.'\n"},
        {"release/1",
         "re lease",
         "13:10: warning: 're lease' is no name that git takes for a branch [bad-branch]\n"},
        {"[\"einops\"]",
         "[]\nkernel-depends = [{ repo-id = \"acme/demo-op\", version = 1 }]",
         "8:19: warning: the kernel depends on itself, 'acme/demo-op' [depends-on-itself]\n"},
        {"[\"einops\"]",
         "[]\n[general.xpu]",
         "8:1: warning: [general.xpu] has no effect: 'xpu' is not in 'backends' of [general] "
         "[unlisted-backend]\n"},
    }));
    CAPTURE(from, to);
    CHECK(warnings(kernel(from, to), kFiles) == "build.toml:" + expected);
}

TEST_CASE("a section for a backend that is not listed is found", "[config][validate]") {
    CHECK(
        warnings(kernel("[\"cpu\", \"cuda\"]", "[\"cpu\"]"), kFiles) ==
        "build.toml:8:1: warning: [general.cuda] has no effect: 'cuda' is not in 'backends' of "
        "[general] [unlisted-backend]\n"
        "build.toml:27:11: warning: section 'kernel.gpu' is never built: backend 'cuda' is not in "
        "'backends' of [general] [unlisted-backend]\n");
}

TEST_CASE("architectures are judged by the backend's vendor", "[config][validate]") {
    const std::string out = warnings(kernel("\"9.0a\"", "\"abc\", \"99999.0\", \"\""), kFiles);
    CHECK(std::ranges::count(out, '\n') >= 3);
    CHECK(out.find("build.toml:30:29: warning: ") != std::string::npos);
    CHECK(out.find("build.toml:30:36: warning: ") != std::string::npos);
    CHECK(out.find("build.toml:30:47: warning: ") != std::string::npos);
    CHECK(out.find("[unknown-arch]") != std::string::npos);
    // Known to the vendor, whatever a toolkit makes of it.
    CHECK(warnings(kernel("\"9.0a\"", "\"5.0\", \"10.3a\""), kFiles).empty());
}

TEST_CASE("a kernel of Python files has its own findings", "[config][validate]") {
    const std::string text = "[general]\nname = \"ab\"\nversion = 1\nedition = 5\n"
                             "license = \"mit\"\nbackends = []\n"
                             "[torch-noarch]\nrocm_archs = [\"gfx942\", \"gfx1\"]\n"
                             "[kernel.x]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"a.cpp\"]\n";
    const std::string out = warnings(text, {"a.cpp"});
    CAPTURE(out);
    CHECK(out.find("2:8: warning: 'backends' in [general] is empty: there is nothing to build "
                   "[no-backends]\n") != std::string::npos);
    CHECK(out.find("8:25: warning: ") != std::string::npos);
    CHECK(out.find("9:9: warning: section 'kernel.x' is ignored: [torch-noarch] compiles nothing "
                   "[ignored-section]\nnote: use [torch] if it is meant to be compiled\n") !=
          std::string::npos);
}

TEST_CASE("names of branches and repositories follow git and the hub", "[config][validate]") {
    const auto branch = [](std::string_view name) {
        return warnings(kernel("release/1", name), kFiles).empty();
    };
    for (const std::string_view fine : {"v1", "a/b/c", "feature-1.2", "ü"}) {
        CAPTURE(fine);
        CHECK(branch(fine));
    }
    for (const std::string_view wrong : {"",
                                         "-a",
                                         "a..b",
                                         "a.lock",
                                         "/a",
                                         "a/",
                                         "a//b",
                                         ".a",
                                         "a/.b",
                                         "a~1",
                                         "@",
                                         "a@{1}",
                                         "a."}) {
        CAPTURE(wrong);
        CHECK_FALSE(branch(wrong));
    }
    const auto repo = [](std::string_view name) {
        return warnings(kernel("acme/demo-op", name), kFiles).empty();
    };
    for (const std::string_view fine : {"a/b", "kernels-community/flash_attn.v2"}) {
        CAPTURE(fine);
        CHECK(repo(fine));
    }
    for (const std::string_view wrong : {"", "a", "a/b/c", "/b", "a/", "a/.b", "a/b c", "a--b/c"}) {
        CAPTURE(wrong);
        CHECK_FALSE(repo(wrong));
    }
}

TEST_CASE("licence ids are sorted and lower case, for the search", "[config][validate]") {
    const auto known = kb::config::known_licenses();
    CHECK(std::ranges::is_sorted(known));
    CHECK(std::ranges::adjacent_find(known) == known.end());
    CHECK(known.size() > 100);
    CHECK(warnings(kernel("apache-2.0", "Apache-2.0"), kFiles).empty());
}
