// SPDX-License-Identifier: Apache-2.0
#include "cli/settings.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"

namespace kb::cli {
namespace {

struct World {
    explicit World(sys::EnvironmentMap variables) : environment{std::move(variables)} {}

    sys::EnvironmentMap environment;
    RecordingTerminal terminal{};
    Services services{.fs = sys::real_file_system(),
                      .processes = sys::real_process_runner(),
                      .clock = sys::real_clock(),
                      .environment = environment,
                      .terminal = terminal,
                      .current_directory = "/here"};
};

TEST_CASE("a flag stands above the environment, that above the file, that above the default",
          "[cli][settings]") {
    const test::TempDir dir;
    test::write_text(dir / "kernel-builder/config.toml",
                     "store = '/file'\njobs = 3\nmemory = '2G'\n");
    Diagnostics diagnostics;
    World file{{{"XDG_CONFIG_HOME", dir.path().string()}, {"HOME", "/home/me"}}};
    CHECK(read_settings({}, file.services, diagnostics)->store == "/file");
    CHECK(read_settings({}, file.services, diagnostics)->memory_bytes == 2ULL << 30U);
    World variable{{{"XDG_CONFIG_HOME", dir.path().string()},
                    {"KERNEL_BUILDER_STORE", "/variable"},
                    {"KERNEL_BUILDER_JOBS", "5"}}};
    CHECK(read_settings({}, variable.services, diagnostics)->store == "/variable");
    CHECK(read_settings({}, variable.services, diagnostics)->jobs == 5);
    CHECK(read_settings({.store = "flag"}, variable.services, diagnostics)->store == "/here/flag");
    World home{{{"HOME", "/home/me"}}};
    CHECK(read_settings({}, home.services, diagnostics)->store ==
          "/home/me/.cache/kernel-builder/store");
    CHECK(diagnostics.empty());
}

TEST_CASE("without any place for the store the error lists where one can be named",
          "[cli][settings]") {
    World world{{}};
    Diagnostics diagnostics;
    CHECK_FALSE(read_settings({}, world.services, diagnostics));
    REQUIRE(diagnostics.items().size() == 1);
    CHECK(diagnostics.items()[0].notes[0].find("KERNEL_BUILDER_STORE") != std::string::npos);
}

TEST_CASE("mistakes in the settings file have their place", "[cli][settings]") {
    const test::TempDir dir;
    test::write_text(dir / "kernel-builder/config.toml",
                     "store = '/x'\nmemory = 'lots'\nsandbx = 'plain'\n");
    World world{{{"XDG_CONFIG_HOME", dir.path().string()}}};
    Diagnostics diagnostics;
    CHECK_FALSE(read_settings({}, world.services, diagnostics));
    REQUIRE(diagnostics.items().size() == 2);
    CHECK(diagnostics.items()[0].span.line == 2);
    CHECK(diagnostics.items()[1].notes.at(0) == "did you mean 'sandbox'?");
}

TEST_CASE("a weaker sandbox is asked for by name", "[cli][settings]") {
    World world{{{"HOME", "/h"}, {"KERNEL_BUILDER_SANDBOX", "none"}}};
    Diagnostics diagnostics;
    CHECK_FALSE(read_settings({}, world.services, diagnostics));
    CHECK(read_settings({.sandbox = "plain"}, world.services, diagnostics)->sandbox == "plain");
}

TEST_CASE("memory is a number with a binary unit", "[cli][settings]") {
    CHECK(parse_memory("8G") == 8ULL << 30U);
    CHECK(parse_memory("512M") == 512ULL << 20U);
    CHECK(parse_memory("7") == 7);
    for (const char* bad : {"", "G", "0", "-1G", "1.5G", "1g", "99999999999T"}) {
        CAPTURE(bad);
        CHECK_FALSE(parse_memory(bad));
    }
}

} // namespace
} // namespace kb::cli
