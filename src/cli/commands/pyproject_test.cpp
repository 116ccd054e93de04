// SPDX-License-Identifier: Apache-2.0
#include "cli/app.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

namespace kb::cli {
namespace {

struct World {
    test::TempDir dir{};
    sys::EnvironmentMap environment{{"PATH", "/usr/bin:/bin"}};
    RecordingTerminal terminal{};

    World() {
        REQUIRE(run({"init", ".", "--name", "org/relu", "--backends", "cpu,cuda"}) == ExitCode::ok);
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

    [[nodiscard]] bool has(std::string_view path) const {
        return std::filesystem::exists(dir / path);
    }
};

} // namespace

TEST_CASE("create-pyproject and clean-pyproject leave the project as it was", "[cli][pyproject]") {
    World world;
    REQUIRE(world.run({"create-pyproject"}) == ExitCode::ok);
    CHECK(world.terminal.out_text.find("wrote CMakeLists.txt\n") != std::string::npos);
    CHECK(world.has("cmake/kernel.cmake"));
    CHECK(world.has("torch-ext/registration.h"));
    // A generated header takes part in no digest: the second run finds nothing to do.
    REQUIRE(world.run({"create-pyproject"}) == ExitCode::ok);
    CHECK(world.terminal.err_text == "nothing to do\n");
    REQUIRE(world.run({"clean-pyproject", "--dry-run"}) == ExitCode::ok);
    CHECK(world.terminal.out_text.find("would remove setup.py\n") != std::string::npos);
    CHECK(world.has("setup.py"));
    REQUIRE(world.run({"clean-pyproject"}) == ExitCode::ok);
    CHECK_FALSE(world.has("setup.py"));
    CHECK_FALSE(world.has("cmake"));
    CHECK(world.has("torch-ext/torch_binding.cpp"));
}

TEST_CASE("create-pyproject keeps what others wrote and names it", "[cli][pyproject]") {
    World world;
    test::write_text(world.dir / "setup.py", "mine");
    CHECK(world.run({"create-pyproject"}) == ExitCode::failed);
    CHECK(world.terminal.err_text.find("  setup.py\n") != std::string::npos);
    CHECK(world.terminal.err_text.find("'--force'") != std::string::npos);
    CHECK_FALSE(world.has("CMakeLists.txt"));
    CHECK(test::read_text(world.dir / "setup.py") == "mine");
    CHECK(world.run({"create-pyproject", "--force"}) == ExitCode::ok);
    CHECK(test::read_text(world.dir / "setup.py") != "mine");
}

TEST_CASE("create-pyproject writes provenance and id as told", "[cli][pyproject]") {
    World world;
    const std::string commit(40, 'a');
    REQUIRE(world.run({"create-pyproject",
                       "--unique-id",
                       "abc_1",
                       "--kernel-sha",
                       commit,
                       "--kernel-dirty"}) == ExitCode::ok);
    const std::string text = test::read_text(world.dir / "metadata-cuda.json");
    CHECK(text.find("\"id\": \"_relu_cuda_abc_1\"") != std::string::npos);
    CHECK(text.find(commit) != std::string::npos);
    CHECK(text.find("\"dirty\": true") != std::string::npos);
    CHECK(world.run({"create-pyproject", "--unique-id", "a-b"}) == ExitCode::usage);
    CHECK(world.run({"create-pyproject", "--kernel-sha", "12"}) == ExitCode::usage);
}

TEST_CASE("create-pyproject writes into another directory", "[cli][pyproject]") {
    World world;
    CHECK(world.run({"create-pyproject", ".", "out"}) == ExitCode::usage);
    std::filesystem::create_directories(world.dir / "out");
    CHECK(world.run({"create-pyproject", ".", "out"}) == ExitCode::ok);
    CHECK(world.has("out/CMakeLists.txt"));
    CHECK_FALSE(world.has("CMakeLists.txt"));
    CHECK(world.run({"clean-pyproject", ".", "out"}) == ExitCode::ok);
    CHECK_FALSE(world.has("out/CMakeLists.txt"));
}

TEST_CASE("fill-card fills the scaffold's card", "[cli][fill-card]") {
    World world;
    REQUIRE(world.run({"fill-card"}) == ExitCode::ok);
    CHECK(world.terminal.out_text.find("get_kernel(\"org/relu\", version=1)") != std::string::npos);
    CHECK(world.terminal.out_text.find("- `relu`") != std::string::npos);
    CHECK(world.terminal.out_text.find("- `ReLU`") != std::string::npos);
    REQUIRE(world.run({"fill-card", "-o", "card.md"}) == ExitCode::ok);
    CHECK(world.terminal.out_text.empty());
    CHECK(test::read_text(world.dir / "card.md").find("{{") == std::string::npos);
    test::write_text(world.dir / "CARD.md", "x\n{{ y");
    CHECK(world.run({"fill-card"}) == ExitCode::configuration);
    CHECK(world.terminal.err_text.find("CARD.md:2:1: error:") != std::string::npos);
}

TEST_CASE("generate without a store says so", "[cli][generate]") {
    World world;
    CHECK(world.run({"generate"}) == ExitCode::usage);
    CHECK(world.terminal.err_text.find("KERNEL_BUILDER_STORE") != std::string::npos);
    CHECK_FALSE(world.has("CMakeLists.txt"));
}

} // namespace kb::cli
