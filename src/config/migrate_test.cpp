// SPDX-License-Identifier: Apache-2.0
#include "config/migrate.hpp"

#include "config/test_support.hpp"
#include "support/support.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

using namespace kb::config::test; // NOLINT(google-build-using-namespace): helpers of these tests
using kb::Diagnostics;
using kb::config::Edition;
using kb::config::Migration;

namespace {

Migration migrated(std::string_view text, std::optional<std::string> license = std::nullopt) {
    Diagnostics diagnostics;
    auto out = kb::config::migrate(
        text, {.name = "build.toml"}, {.license = std::move(license)}, diagnostics);
    UNSCOPED_INFO(all(diagnostics));
    REQUIRE(out);
    CHECK(diagnostics.empty());
    return *std::move(out);
}

std::string refused(std::string_view text) {
    Diagnostics diagnostics;
    CHECK_FALSE(kb::config::migrate(text, {.name = "build.toml"}, {}, diagnostics));
    return all(std::move(diagnostics));
}

} // namespace

TEST_CASE("edition 5 stays byte for byte", "[config][migrate]") {
    const std::string text = "[general]\r\nname='ab'\nversion=1\nedition=5\nlicense='x'\n"
                             "backends=[]\n[torch]\n";
    const Migration out = migrated(text);
    CHECK(out.from == Edition::v5);
    CHECK(out.text == text);
    CHECK(out.changes.empty());
}

TEST_CASE("edition 4 gets one line, comments and order stay", "[config][migrate]") {
    const Migration out = migrated("# kept\n[kernel.main] # first\nbackend = 'cuda'\ndepends=[]\n"
                                   "src = [ # list\n  'a.cu', ]\n\n[torch]\nminver = \"2.0\"\n"
                                   "[general]\n  name = \"old\"\n  version = 3 # v\n"
                                   "  license = 'mit'\n  backends = ['cuda']\n");
    CHECK(out.from == Edition::v4);
    CHECK(out.text == "# kept\n[kernel.main] # first\nbackend = 'cuda'\ndepends=[]\n"
                      "src = [ # list\n  'a.cu', ]\n\n[torch]\nminver = \"2.0\"\n"
                      "[general]\n  name = \"old\"\n  version = 3 # v\n  edition = 5\n"
                      "  license = 'mit'\n  backends = ['cuda']\n");
    CHECK(out.changes == std::vector<std::string>{"line 12: added 'edition = 5'"});
}

TEST_CASE("other ways to write [general] are kept as well", "[config][migrate]") {
    CHECK(migrated("general.name = 'ab'\ngeneral.version = 1\ngeneral.license = 'mit'\n"
                   "general.backends = []\ntorch.src = []")
              .text == "general.name = 'ab'\ngeneral.version = 1\ngeneral.edition = 5\n"
                       "general.license = 'mit'\ngeneral.backends = []\ntorch.src = []");
    CHECK(migrated("general = { name = 'ab', version = 1, license = 'ü', backends = [] }\n[torch]")
              .text ==
          "general = { name = 'ab', version = 1, edition = 5, license = 'ü', backends = [] }\n"
          "[torch]");
    CHECK(migrated("\xEF\xBB\xBF[torch]\r\n[general]\r\nname='ab'\r\nlicense='mit'\r\nbackends=[]"
                   "\r\nversion=1")
              .text == "\xEF\xBB\xBF[torch]\r\n[general]\r\nname='ab'\r\nlicense='mit'\r\n"
                       "backends=[]\r\nversion=1\r\nedition = 5");
}

TEST_CASE("edition 3 gets version, licence and its framework table", "[config][migrate]") {
    const std::string text = "[general]\nname = \"old\"\nbackends = [\"cuda\"] # one\n";
    CHECK(refused(text) ==
          "build.toml:1:2: error: [general] names no licence, which edition 5 needs "
          "[missing-license]\n"
          "note: add it, or give it: kernel-builder update-build --license ID\n");
    const Migration out = migrated(text, "apache-2.0");
    CHECK(out.text == "[general]\nname = \"old\"\nversion = 1\nedition = 5\n"
                      "license = \"apache-2.0\"\nbackends = [\"cuda\"] # one\n\n[torch-noarch]\n");
    CHECK(out.changes == std::vector<std::string>{"line 2: added 'version = 1'",
                                                  "line 2: added 'edition = 5'",
                                                  "line 2: added 'license = \"apache-2.0\"'",
                                                  "line 3: added the table [torch-noarch]"});
}

TEST_CASE("a mistake in an old file stops the migration", "[config][migrate]") {
    // The reference rewrites this file with [torch-noarch] and so loses the table.
    CHECK(
        refused("[general]\nname = \"old\"\nversion = 1\nlicense = \"mit\"\n"
                "backends = [\"cuda\"]\n[torch]\nscr = [\"a.cpp\"]\n")
            .find(
                "7:1: error: [torch] has no key 'scr' [unknown-key]\nnote: did you mean 'src'?") !=
        std::string::npos);
    CHECK(refused("[general\n").find("[toml-syntax]") != std::string::npos);
}

TEST_CASE("edition 2 keeps its bounds and gets its backends", "[config][migrate]") {
    CHECK(migrated("[general]\nname = \"two\"\ncuda-minver = \"12.4\" # old\n"
                   "cuda-maxver = \"12.8\"\n[torch]\nsrc = []\n"
                   "[kernel.m]\nbackend = \"cuda\"\nsrc = []\ndepends = []\n",
                   "mit")
              .text == "[general]\nname = \"two\"\nversion = 1\nedition = 5\nlicense = \"mit\"\n"
                       "backends = [\"cuda\"]\ncuda.minver = \"12.4\" # old\n"
                       "cuda.maxver = \"12.8\"\n[torch]\nsrc = []\n"
                       "[kernel.m]\nbackend = \"cuda\"\nsrc = []\ndepends = []\n");
    CHECK(migrated("[general]\nname = \"uni_two\"\nuniversal = true\n[torch]\npyext = [\"json\"]\n"
                   "src = []\n",
                   "mit")
              .text ==
          "[general]\nname = \"uni-two\"\nversion = 1\nedition = 5\nlicense = \"mit\"\n"
          "backends = [\"cann\", \"cpu\", \"cuda\", \"metal\", \"neuron\", \"rocm\", \"xpu\"]\n"
          "[torch-noarch]\npyext = [\"json\"]\n");
    CHECK(migrated("general = {name = \"uni\", universal = true}\n", "mit").text ==
          "general = {name = \"uni\", version = 1, edition = 5, license = \"mit\", "
          "backends = [\"cann\", \"cpu\", \"cuda\", \"metal\", \"neuron\", \"rocm\", \"xpu\"]}\n\n"
          "[torch-noarch]\n");
    CHECK(migrated("general = {universal = true, name = \"uni\"}\n", "mit")
              .text.starts_with("general = {name = \"uni\", version = 1, "));
}

TEST_CASE("edition 1 gets a section for each backend", "[config][migrate]") {
    const Migration out =
        migrated("[general]\nname = \"old_one\"\n\n[torch]\nsrc = [\"b.cpp\"]\nuniversal = false\n"
                 "\n[kernel.m]\nlanguage = \"cuda-hipify\" # both\nsrc = [\"a.cu\"]\n"
                 "rocm-archs = [\"gfx942\"]\ndepends = [\"torch\"]\ninclude = [\".\"]\n"
                 "\n[kernel.p]\nsrc = [\"p.cu\"]\ndepends = []\n",
                 "mit");
    CHECK(out.text ==
          "[general]\nname = \"old-one\"\nversion = 1\nedition = 5\nlicense = \"mit\"\n"
          "backends = [\"cuda\", \"rocm\"]\n\n[torch]\nsrc = [\"b.cpp\"]\n"
          "\n[kernel.m]\nbackend = \"cuda\" # both\nsrc = [\"a.cu\"]\ndepends = [\"torch\"]\n"
          "include = [\".\"]\n\n[kernel.m_rocm]\nbackend = \"rocm\"\ndepends = [\"torch\"]\n"
          "src = [\"a.cu\"]\ninclude = [\".\"]\nrocm-archs = [\"gfx942\"]\n"
          "\n[kernel.p]\nsrc = [\"p.cu\"]\ndepends = []\nbackend = \"cuda\"\n");
    CHECK(out.changes.size() == 11);
}

TEST_CASE("what cannot be rewritten in place is refused unchanged", "[config][migrate]") {
    Diagnostics diagnostics;
    CHECK_FALSE(
        kb::config::migrate("general = { name = \"ab\" }\n"
                            "torch = { src = [] }\n"
                            "kernel = { m = { language = \"cuda-hipify\", src = [], depends "
                            "= [] } }\n",
                            {.name = "build.toml"},
                            {.license = "mit"},
                            diagnostics));
    CHECK(all(diagnostics).find("[cannot-migrate]") != std::string::npos);
}

TEST_CASE("a migrated sample means what it meant", "[config][migrate]") {
    const std::filesystem::path samples =
        kb::test::source_dir() / "tests" / "interop" / "oracle" / "samples";
    std::size_t seen = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator{samples}) {
        if (entry.path().extension() != ".toml") {
            continue;
        }
        const std::string text = kb::test::read_text(entry.path());
        Diagnostics diagnostics;
        const auto before = try_read(text, diagnostics);
        if (!before || before->edition == Edition::v5) {
            continue;
        }
        CAPTURE(entry.path().string());
        const Migration out = migrated(text, "mit");
        kb::config::Config after = good(out.text);
        after.license = before->license;
        CHECK(after.edition == Edition::v5);
        CHECK(kb::config::same_meaning(*before, after));
        ++seen;
    }
    CHECK(seen >= 3);
}
