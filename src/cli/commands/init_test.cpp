// SPDX-License-Identifier: Apache-2.0
#include "cli/app.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

namespace kb::cli {
namespace {

struct World {
    test::TempDir dir{};
    sys::EnvironmentMap environment{};
    RecordingTerminal terminal{};

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
};

} // namespace

TEST_CASE("init writes a project and says how to go on", "[cli][init]") {
    World world;
    REQUIRE(world.run({"init", "relu", "--name", "org/relu"}) == ExitCode::ok);
    CHECK(world.terminal.out_text.find("relu/torch-ext/torch_binding.cpp\n") != std::string::npos);
    CHECK(world.terminal.err_text == "next:  cd relu && kernel-builder build\n"
                                     "       kernel-builder check-builds\n");
    CHECK(test::read_text(world.dir / "relu/build.toml").find("repo-id = \"org/relu\"") !=
          std::string::npos);
    CHECK(std::filesystem::exists(world.dir / "relu/relu_cuda/relu.cu"));
}

TEST_CASE("init into files that exist writes nothing", "[cli][init]") {
    World world;
    test::write_text(world.dir / "relu/README.md", "mine");
    CHECK(world.run({"init", "relu"}) == ExitCode::usage);
    CHECK(world.terminal.err_text ==
          "error: 1 file is already there in 'relu':\n"
          "  README.md\n"
          "note: nothing was written; '--overwrite' replaces these files\n");
    CHECK_FALSE(std::filesystem::exists(world.dir / "relu/build.toml"));
    CHECK(world.run({"init", "relu", "--overwrite"}) == ExitCode::ok);
    CHECK(test::read_text(world.dir / "relu/README.md") != "mine");
}

TEST_CASE("init judges names, backends and frameworks first", "[cli][init]") {
    World world;
    const auto [arguments, message] = GENERATE(table<std::vector<std::string>, std::string>({
        {{"init", "relu", "--name", "relu"}, "'relu' is not of the form OWNER/REPO"},
        {{"init", "9lives"}, "'9lives' is not a kernel name"},
        {{"init", "relu", "--backends", "cpu,cdua"}, "'cdua' is not a backend"},
        {{"init", "relu", "--backends", "tpu"}, "a torch kernel for 'tpu' cannot be built"},
        {{"init", "relu", "--framework", "jax"}, "'jax' is not a framework"},
    }));
    CHECK(world.run(arguments) == ExitCode::usage);
    CHECK(world.terminal.err_text.find("error: " + message) != std::string::npos);
    CHECK(std::filesystem::is_empty(world.dir.path()));
}

TEST_CASE("init --dry-run only lists", "[cli][init]") {
    World world;
    CHECK(world.run({"init", "relu", "--backends", "all", "--dry-run"}) == ExitCode::ok);
    CHECK(world.terminal.out_text.find("relu/relu_metal/relu.cpp\n") != std::string::npos);
    CHECK(std::filesystem::is_empty(world.dir.path()));
}

} // namespace kb::cli
