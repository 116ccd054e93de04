// SPDX-License-Identifier: Apache-2.0
#include "cli/app.hpp"
#include "digest/digest.hpp"
#include "document/json.hpp"
#include "package/metadata.hpp"
#include "support/catch.hpp"
#include "support/elf_builder.hpp"
#include "support/support.hpp"

namespace kb::cli {
namespace {

constexpr std::string_view kVariant = "torch-stable-abi211-cpu-x86_64-linux";
constexpr const char* kMetadata = R"({"name":"k","id":"_k_cpu_x","version":1,"license":"mit",
"zz":[1],"python-depends":[],"backend":{"type":"cpu"}})";

struct World {
    test::TempDir dir{};
    sys::EnvironmentMap environment{};
    RecordingTerminal terminal{};

    World() { write(kVariant, kMetadata, {.needed = {"libc.so.6", "libtorch_cpu.so"}}); }

    void write(std::string_view variant, std::string_view metadata, const test::ElfSpec& spec) {
        const auto path = dir / "build" / variant;
        test::write_text(path / "metadata.json", metadata);
        test::write_text(path / "__init__.py", "");
        test::write_text(path / "_k_cpu_x.abi3.so", test::build_elf(spec));
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
};

TEST_CASE("check-abi passes a clean variant and fails a dirty one", "[cli][check-abi]") {
    World world;
    CHECK(world.run({"check-abi"}) == ExitCode::ok);
    CHECK(world.terminal.out_text == std::string{kVariant} + ": passed (8 checks on 1 library)\n");
    world.write("torch-stable-abi212-cpu-x86_64-linux",
                kMetadata,
                {.needed = {"libgomp.so.1", "libtorch.so"},
                 .symbols = {{.name = "_ZTVN3c1010TensorImplE"}}});
    CHECK(world.run({"check-abi"}) == ExitCode::failed);
    CHECK(world.terminal.out_text ==
          std::string{kVariant} +
              ": passed (8 checks on 1 library)\n"
              "torch-stable-abi212-cpu-x86_64-linux: FAILED (2 findings; 8 checks on 1 library)\n"
              "  _k_cpu_x.abi3.so: needs 'libgomp.so.1', which not every machine has [needed]\n"
              "    next: link it statically, or ship it in the variant and set the runpath to "
              "'$ORIGIN'\n"
              "  _k_cpu_x.abi3.so: 'vtable for c10::TensorImpl' is not in torch's stable ABI "
              "[torch-stable-abi]\n"
              "    next: use torch::stable instead, or build without 'stable-abi'\n");
    CHECK(world.terminal.err_text == "error: 1 of 2 variants failed\n");
    CHECK(world.run({"check-abi", "--json"}) == ExitCode::failed);
    const auto json = document::parse_json(world.terminal.out_text, {});
    REQUIRE(json);
    CHECK(json->text_or("schema") == "kernel-builder/report/1");
    CHECK(json->find("variants")->as_array().size() == 2);
}

TEST_CASE("check-abi does not pass what it cannot read", "[cli][check-abi]") {
    World world;
    test::write_text(world.dir / "build" / kVariant / "x.pyd", "no library");
    CHECK(world.run({"check-abi"}) == ExitCode::failed);
    CHECK(world.terminal.out_text.find(
              "  x.pyd: not checked: the file is no ELF, Mach-O or PE object [read]\n") !=
          std::string::npos);
    CHECK(world.run({"check-abi", "--allow-unchecked", "read"}) == ExitCode::ok);
    CHECK(world.run({"check-abi", "nowhere"}) == ExitCode::failed);
}

TEST_CASE("check-abi judges one library by what is asked", "[cli][check-abi]") {
    World world;
    test::write_text(
        world.dir / "a.so",
        test::build_elf({.needed = {"libc10.so"}, .symbols = {{.name = "_ZN3c106ScalarC1Ed"}}}));
    CHECK(world.run({"check-abi", "a.so"}) == ExitCode::ok);
    CHECK(world.run({"check-abi", "a.so", "--torch-stable-abi", "2.11"}) == ExitCode::failed);
}

TEST_CASE("check-abi finds paths of the building machine", "[cli][check-abi]") {
    World world;
    const auto path = world.dir / "build" / kVariant / "_k_cpu_x.abi3.so";
    test::write_text(path, test::read_text(path) + "/home/alice/kernel/norm.cpp");
    CHECK(world.run({"check-abi"}) == ExitCode::failed);
    CHECK(world.terminal.out_text.find("holds '/home/alice/kernel/norm.cpp', in the home of the "
                                       "user 'alice' [host-paths]") != std::string::npos);
    CHECK(world.run({"check-abi", "--only", "hygiene"}) == ExitCode::ok);
    CHECK(world.terminal.out_text.find("1 check on 1 library") != std::string::npos);
    CHECK(world.run({"check-abi", "--only", "strings"}) == ExitCode::usage);
}

TEST_CASE("reports for other programs", "[cli][check-abi][check-builds]") {
    World world;
    REQUIRE(world.run({"hash"}) == ExitCode::ok);
    for (const char* command : {"check-abi", "check-builds"}) {
        CAPTURE(command);
        CHECK(world.run({command, "--format", "sarif"}) == ExitCode::ok);
        const auto sarif = document::parse_json(world.terminal.out_text, {});
        REQUIRE(sarif);
        CHECK(sarif->text_or("version") == "2.1.0");
        CHECK(world.run({command, "--format", "junit"}) == ExitCode::ok);
        CHECK(world.terminal.out_text.starts_with("<?xml"));
        CHECK(world.run({command, "--format", "yaml"}) == ExitCode::usage);
    }
}

TEST_CASE("kernel-builder.toml suppresses findings with a reason", "[cli][check-abi]") {
    World world;
    world.write(kVariant, kMetadata, {.needed = {"libgomp.so.1", "libtorch.so"}});
    REQUIRE(world.run({"check-abi"}) == ExitCode::failed);
    const std::string head = "schema = \"kernel-builder/project/1\"\n[[suppress]]\n"
                             "check = \"needed\"\nsubject = \"libgomp.so.1\"\n";
    test::write_text(world.dir / "kernel-builder.toml", head + "reason = \"r\"\n");
    CHECK(world.run({"check-abi"}) == ExitCode::failed); // without build.toml nobody's project
    test::write_text(world.dir / "build.toml", "");
    CHECK(world.run({"check-abi"}) == ExitCode::ok);
    CHECK(world.terminal.out_text.find("suppressed (r): needs 'libgomp.so.1'") !=
          std::string::npos);
    CHECK(world.run({"check-abi", "build"}) == ExitCode::ok);
    CHECK(world.run({"check-abi", "build/" + std::string{kVariant} + "/"}) == ExitCode::ok);
    test::write_text(world.dir / "kernel-builder.toml", head);
    CHECK(world.run({"check-abi"}) == ExitCode::configuration);
    CHECK(world.terminal.err_text.find("reason") != std::string::npos);
    test::write_text(world.dir / "kernel-builder.toml",
                     "schema = \"kernel-builder/project/1\"\n[[suppress]]\n"
                     "check = \"everything\"\nreason = \"r\"\n");
    CHECK(world.run({"check-abi"}) == ExitCode::configuration);
    CHECK(world.run({"check-builds"}) == ExitCode::configuration);
}

TEST_CASE("check-abi refuses options that mean nothing", "[cli][check-abi]") {
    World world;
    CHECK(world.run({"check-abi", "--manylinux", "manylinux2_28"}) == ExitCode::usage);
    CHECK(world.terminal.err_text == "error: no manylinux policy is called 'manylinux2_28'\n"
                                     "note: did you mean 'manylinux_2_28'?\n");
    CHECK(world.run({"check-abi", "--python-abi", "3.x"}) == ExitCode::usage);
    CHECK(world.run({"check-abi", "--allow-unchecked", "everything"}) == ExitCode::usage);
}

TEST_CASE("hash seals, verify holds until a byte changes", "[cli][hash][verify]") {
    World world;
    CHECK(world.run({"verify"}) == ExitCode::failed);
    CHECK(world.run({"hash", "--dry-run"}) == ExitCode::ok);
    CHECK(world.terminal.out_text == std::string{kVariant} + ": would change (2 files)\n");
    CHECK(world.run({"verify"}) == ExitCode::failed);
    CHECK(world.run({"hash"}) == ExitCode::ok);
    CHECK(world.run({"hash"}) == ExitCode::ok);
    CHECK(world.terminal.out_text == std::string{kVariant} + ": unchanged (2 files)\n");
    const std::string metadata = test::read_text(world.dir / "build" / kVariant / "metadata.json");
    CHECK(metadata.find("\"zz\"") != std::string::npos);
    CHECK(world.run({"verify"}) == ExitCode::ok);
    CHECK(world.terminal.out_text == std::string{kVariant} + ": passed (1 check)\n"
                                                             "  origin unknown\n");
    CHECK(world.run({"verify", "--require-clean"}) == ExitCode::failed);
    CHECK(world.run({"check-builds"}) == ExitCode::ok);
    test::write_text(world.dir / "build" / kVariant / "__init__.py", "import os\n");
    CHECK(world.run({"verify"}) == ExitCode::failed);
    CHECK(world.terminal.out_text.find("the file differs from its digest [digest]") !=
          std::string::npos);
    CHECK(world.run({"check-builds"}) == ExitCode::failed);
}

TEST_CASE("check-builds wants the directory to be what it is named for", "[cli][check-builds]") {
    World world;
    world.write("torch-stable-abi211-cu130-x86_64-linux", kMetadata, {});
    REQUIRE(world.run({"hash"}) == ExitCode::ok);
    CHECK(world.run({"check-builds"}) == ExitCode::failed);
    CHECK(world.terminal.out_text.find("the directory is named for backend 'cuda', metadata.json "
                                       "says 'cpu' [package]") != std::string::npos);
    CHECK(world.terminal.out_text.find("a cuda variant holds no device code [device-code]") !=
          std::string::npos);
}

TEST_CASE("metadata that cannot be read is told with the file", "[cli][verify]") {
    World world;
    test::write_text(world.dir / "build" / kVariant / "metadata.json", "{");
    for (const char* command : {"verify", "check-builds", "check-abi", "hash"}) {
        CAPTURE(command);
        CHECK(world.run({command}) == ExitCode::failed);
        CHECK((world.terminal.out_text + world.terminal.err_text).find("metadata.json") !=
              std::string::npos);
    }
}

} // namespace
} // namespace kb::cli
