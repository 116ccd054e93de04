// SPDX-License-Identifier: Apache-2.0
#include "cli/app.hpp"

#include "support/catch.hpp"

#include <set>

namespace kb::cli {
namespace {

struct World {
    sys::EnvironmentMap environment{};
    RecordingTerminal terminal{};
    Services services{.fs = sys::real_file_system(),
                      .processes = sys::real_process_runner(),
                      .clock = sys::real_clock(),
                      .environment = environment,
                      .terminal = terminal};
};

TEST_CASE("no argument shows the help and is a usage error", "[cli][app]") {
    World world;
    CHECK(run({}, world.services) == ExitCode::usage);
    CHECK(world.terminal.out_text.find("Usage: kernel-builder") != std::string::npos);
}

TEST_CASE("an unknown command is named, with the help to ask for", "[cli][app]") {
    World world;
    CHECK(run({"biuld"}, world.services) == ExitCode::usage);
    CHECK(world.terminal.err_text == "error: there is no command 'biuld'\n"
                                     "note: did you mean 'build'?\n"
                                     "note: 'kernel-builder --help' explains the options\n");
    CHECK(world.terminal.out_text.empty());
    CHECK(run({"registry", "sreve"}, world.services) == ExitCode::usage);
    CHECK(world.terminal.err_text.find("error: there is no command 'sreve'\n"
                                       "note: did you mean 'registry serve'?\n") !=
          std::string::npos);
    CHECK(run({"--vresion"}, world.services) == ExitCode::usage);
    CHECK(world.terminal.err_text.find("error: there is no option '--vresion'\n") !=
          std::string::npos);
}

TEST_CASE("the help of a command begins with all its words", "[cli][app]") {
    World world;
    CHECK(run({"registry", "token", "create", "--help"}, world.services) == ExitCode::ok);
    CHECK(world.terminal.out_text.find("Usage: kernel-builder registry token create [") !=
          std::string::npos);
    for (const char* group : {"abi", "registry", "store"}) {
        CAPTURE(group);
        world.terminal.out_text.clear();
        CHECK(run({group, "--help"}, world.services) == ExitCode::ok);
        CHECK_FALSE(world.terminal.out_text.starts_with("Usage: "));
    }
}

TEST_CASE("what is no number is said so, before anything is done", "[cli][app]") {
    const char* text = GENERATE("-1", "abc", "0x10", "1.5", "");
    World world;
    CHECK(run({"build", "--jobs", text}, world.services) == ExitCode::usage);
    CHECK(world.terminal.err_text.contains("is no number from 0 on"));
}

TEST_CASE("a group of commands says what it is for", "[cli][app]") {
    World world;
    CHECK(run({"registry", "--help"}, world.services) == ExitCode::ok);
    CHECK(world.terminal.out_text.contains("Tokens of users"));
}

TEST_CASE("--version prints the version alone", "[cli][app]") {
    World world;
    CHECK(run({"--version"}, world.services) == ExitCode::ok);
    CHECK(world.terminal.out_text == "kernel-builder " KB_VERSION "\n");
}

TEST_CASE("a misspelt option before '--' is an error, not a word of the other program",
          "[cli][app]") {
    World world;
    CHECK(run({"testshell", "--sa", "cpu", "--", "true"}, world.services) == ExitCode::usage);
    CHECK(world.terminal.err_text.find("--sa") != std::string::npos);
}

TEST_CASE("every command has a unique name, a summary and a description with an example",
          "[cli][app]") {
    std::set<std::string_view> names;
    for (const auto& command : make_commands()) {
        CAPTURE(command->name());
        CHECK(names.insert(command->name()).second);
        if (!command->is_hidden()) {
            CHECK_FALSE(command->summary().empty());
            CHECK_FALSE(command->summary().ends_with('.'));
            CHECK(command->description().find("kernel-builder ") != std::string_view::npos);
        }
        for (const OptionRow& row : command->options()) {
            CAPTURE(row.name);
            CHECK_FALSE(row.help.empty());
        }
    }
}

} // namespace
} // namespace kb::cli
