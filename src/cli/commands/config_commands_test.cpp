// SPDX-License-Identifier: Apache-2.0
#include "cli/app.hpp"
#include "document/json.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

namespace kb::cli {
namespace {

constexpr std::string_view kGood = "[general]\n"
                                   "name = \"demo-op\"\n"
                                   "version = 1\n"
                                   "edition = 5\n"
                                   "license = \"apache-2.0\"\n"
                                   "backends = [\"cpu\"]\n"
                                   "[torch]\n"
                                   "src = [\"torch-ext/binding.cpp\"]\n"
                                   "stable-abi = \"2.11\"\n"
                                   "[kernel.main]\n"
                                   "backend = \"cpu\"\n"
                                   "depends = [\"torch\"]\n"
                                   "src = [\"a.cpp\"]\n";
constexpr std::string_view kOld = "# mine\n"
                                  "[general]\n"
                                  "name = \"old\"\n"
                                  "version = 3 # third\n"
                                  "license = \"mit\"\n"
                                  "backends = [\"cpu\"]\n"
                                  "\n"
                                  "[torch-noarch]\n";

struct World {
    test::TempDir dir{};
    sys::EnvironmentMap environment{};
    RecordingTerminal terminal{};

    explicit World(std::string_view config) {
        test::write_text(dir / "build.toml", config);
        test::write_text(dir / "a.cpp", "");
        test::write_text(dir / "torch-ext/binding.cpp", "");
    }

    ExitCode run(const std::vector<std::string>& arguments) {
        terminal = {};
        return cli::run(arguments,
                        {.fs = sys::real_file_system(),
                         .processes = sys::real_process_runner(),
                         .clock = sys::real_clock(),
                         .environment = environment,
                         .terminal = terminal,
                         .current_directory = dir.path(),
                         .self = {}});
    }

    [[nodiscard]] std::string config() const { return test::read_text(dir / "build.toml"); }
};

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
    std::string out{text};
    const std::size_t at = out.find(from);
    REQUIRE(at != std::string::npos);
    return out.replace(at, from.size(), to);
}

TEST_CASE("check-config is silent about a sound file", "[cli][check-config]") {
    World world{kGood};
    CHECK(world.run({"check-config", "--strict"}) == ExitCode::ok);
    CHECK(world.terminal.out_text.empty());
    CHECK(world.terminal.err_text.empty());
}

TEST_CASE("check-config shows every error with its line", "[cli][check-config]") {
    World world{replaced(replaced(kGood, "license", "licence"), "\"cpu\"]", "\"cup\"]")};
    CHECK(world.run({"check-config"}) == ExitCode::configuration);
    CHECK(world.terminal.err_text ==
          "build.toml:1:1: error: [general] needs the key 'license' [missing-key]\n"
          " 1 | [general]\n"
          "   | ^~~~~~~~~\n"
          "build.toml:5:1: error: [general] has no key 'licence' [unknown-key]\n"
          " 5 | licence = \"apache-2.0\"\n"
          "   | ^~~~~~~\n"
          "note: did you mean 'license'?\n"
          "build.toml:6:13: error: there is no backend 'cup' [unknown-backend]\n"
          " 6 | backends = [\"cup\"]\n"
          "   |             ^~~~~\n"
          "note: did you mean 'cpu'?\n"
          "3 errors, 0 warnings\n");
    CHECK(world.terminal.out_text.empty());
}

TEST_CASE("findings are warnings, and errors under --strict", "[cli][check-config]") {
    World world{replaced(kGood, "\"a.cpp\"", "\"b.cpp\"")};
    CHECK(world.run({"check-config"}) == ExitCode::ok);
    CHECK(world.terminal.err_text.find("warning: [kernel.main]: there is no file 'b.cpp'") !=
          std::string::npos);
    CHECK(world.run({"check-config", "--strict"}) == ExitCode::configuration);
    CHECK(world.terminal.err_text.find("error: [kernel.main]: there is no file 'b.cpp'") !=
          std::string::npos);
}

TEST_CASE("an architecture that a toolkit leaves out is a finding", "[cli][check-config]") {
    const std::string cuda = replaced(replaced(kGood, "[\"cpu\"]", "[\"cuda\"]"),
                                      "backend = \"cpu\"\n",
                                      "backend = \"cuda\"\ncuda-capabilities = [\"5.0\"]\n");
    World world{cuda};
    CHECK(world.run({"check-config"}) == ExitCode::ok);
    CHECK(world.terminal.err_text.find("build.toml:10:1: warning: section 'main' has no "
                                       "architecture left for CUDA 13.0") != std::string::npos);
    CHECK(world.run({"check-config", "--strict"}) == ExitCode::configuration);
}

TEST_CASE("check-config --json is one record", "[cli][check-config]") {
    World world{replaced(kGood, "\"a.cpp\"", "\"b.cpp\"")};
    CHECK(world.run({"check-config", "--json"}) == ExitCode::ok);
    const auto record = document::parse_json(world.terminal.out_text, {.name = "out"});
    REQUIRE(record);
    CHECK(record->text_or("schema") == "kernel-builder/check-config/1");
    CHECK(record->text_or("file") == "build.toml");
    CHECK(record->find("valid")->as_bool());
    CHECK(record->find("edition")->as_int() == 5);
    REQUIRE(record->find("diagnostics")->as_array().size() == 1);
    CHECK(record->find("diagnostics")->as_array()[0].text_or("id") == "missing-source");
    CHECK(world.terminal.err_text.empty());

    World broken{"[general\n"};
    CHECK(broken.run({"check-config", "--json"}) == ExitCode::configuration);
    const auto refused = document::parse_json(broken.terminal.out_text, {.name = "out"});
    REQUIRE(refused);
    CHECK_FALSE(refused->find("valid")->as_bool());
    CHECK(refused->find("edition")->is(document::Node::Kind::null));
}

TEST_CASE("check-config without a build.toml names the next step", "[cli][check-config]") {
    World world{kGood};
    CHECK(world.run({"check-config", "nowhere"}) == ExitCode::configuration);
    CHECK(world.terminal.err_text.starts_with("error: "));
    CHECK(world.run({"check-config", "torch-ext"}) == ExitCode::configuration);
    CHECK(world.terminal.err_text.find("kernel-builder init") != std::string::npos);
}

TEST_CASE("update-build rewrites in place and says what it did", "[cli][update-build]") {
    World world{kOld};
    CHECK(world.run({"check-config"}) == ExitCode::ok);
    CHECK(world.terminal.err_text.find("run 'kernel-builder update-build'") != std::string::npos);
    CHECK(world.run({"update-build", "--dry-run"}) == ExitCode::ok);
    CHECK(world.terminal.out_text == "--- build.toml\n"
                                     "+++ build.toml\n"
                                     "@@ -2,6 +2,7 @@\n"
                                     " [general]\n"
                                     " name = \"old\"\n"
                                     " version = 3 # third\n"
                                     "+edition = 5\n"
                                     " license = \"mit\"\n"
                                     " backends = [\"cpu\"]\n"
                                     " \n");
    CHECK(world.config() == kOld);
    CHECK(world.run({"update-build"}) == ExitCode::ok);
    CHECK(world.terminal.out_text == "build.toml: edition 4 is now edition 5\n"
                                     "  line 4: added 'edition = 5'\n");
    CHECK(world.config() == replaced(kOld, "# third\n", "# third\nedition = 5\n"));
    CHECK(world.run({"check-config", "--strict"}) == ExitCode::ok);
    const std::string after = world.config();
    CHECK(world.run({"update-build"}) == ExitCode::ok);
    CHECK(world.terminal.out_text == "build.toml is of edition 5 already\n");
    CHECK(world.config() == after);
}

TEST_CASE("update-build leaves a file with mistakes alone", "[cli][update-build]") {
    const std::string wrong = replaced(kOld, "[torch-noarch]\n", "[torch]\nscr = []\n");
    World world{wrong};
    CHECK(world.run({"update-build"}) == ExitCode::configuration);
    CHECK(world.terminal.err_text.find("did you mean 'src'?") != std::string::npos);
    CHECK(world.config() == wrong);
}

TEST_CASE("update-build needs a licence for editions that had none", "[cli][update-build]") {
    World world{"[general]\nname = \"old\"\nbackends = [\"cpu\"]\n"};
    CHECK(world.run({"update-build"}) == ExitCode::configuration);
    CHECK(world.terminal.err_text.find("update-build --license ID") != std::string::npos);
    CHECK(world.run({"update-build", "--license", "mit"}) == ExitCode::ok);
    CHECK(world.config().find("license = \"mit\"\n") != std::string::npos);
}

TEST_CASE("update-build does not replace a link", "[cli][update-build]") {
    World world{kOld};
    std::filesystem::rename(world.dir / "build.toml", world.dir / "real.toml");
    std::filesystem::create_symlink("real.toml", world.dir / "build.toml");
    CHECK(world.run({"update-build"}) == ExitCode::configuration);
    CHECK(world.terminal.err_text.find("is a link to 'real.toml'") != std::string::npos);
    CHECK(test::read_text(world.dir / "real.toml") == kOld);
}

} // namespace
} // namespace kb::cli
