// SPDX-License-Identifier: Apache-2.0
#include "cli/app.hpp"
#include "digest/digest.hpp"
#include "document/json.hpp"
#include "package/attestation.hpp"
#include "package/metadata.hpp"
#include "project/attestations.hpp"
#include "project/variant_dirs.hpp"
#include "support/catch.hpp"
#include "support/elf_builder.hpp"
#include "support/faulty_file_system.hpp"
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

    /// A statement and a bill as a build writes them.
    void attest() const {
        sys::FileSystem& fs = sys::real_file_system();
        const sys::Path variant = dir / "build" / kVariant;
        const auto package =
            project::read_package(fs, {.name = std::string{kVariant}, .path = variant});
        REQUIRE(package);
        const package::AttestationInput input{.package = *package};
        const std::string sbom = package::write_sbom(input);
        REQUIRE(project::write_attestations(
            fs,
            project::attestation_directory(variant),
            kVariant,
            {.statement = package::write_statement(input, sbom), .sbom = sbom}));
    }

    ExitCode run(const std::vector<std::string>& arguments,
                 sys::FileSystem& fs = sys::real_file_system()) {
        terminal = {};
        return cli::run(arguments,
                        {.fs = fs,
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
    CHECK(world.terminal.out_text == std::string{kVariant} + ": passed (9 checks on 1 library)\n");
    world.write("torch-stable-abi212-cpu-x86_64-linux",
                kMetadata,
                {.needed = {"libgomp.so.1", "libtorch.so"},
                 .symbols = {{.name = "_ZTVN3c1010TensorImplE"}}});
    CHECK(world.run({"check-abi"}) == ExitCode::failed);
    CHECK(world.terminal.out_text ==
          std::string{kVariant} +
              ": passed (9 checks on 1 library)\n"
              "torch-stable-abi212-cpu-x86_64-linux: FAILED (2 findings; 9 checks on 1 library)\n"
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
    CHECK(world.run({"check-abi", "nowhere"}) == ExitCode::usage);
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

TEST_CASE("no library may name the folder of its own project", "[cli][check-abi][check-builds]") {
    World world;
    world.environment["KERNEL_BUILDER_STORE"] = (world.dir / "home/store").string();
    const auto path = world.dir / "build" / kVariant / "_k_cpu_x.abi3.so";
    test::write_text(path,
                     test::read_text(path) + std::string(1, '\0') + world.dir.path().string());
    REQUIRE(world.run({"hash"}) == ExitCode::ok);
    CHECK(world.run({"check-abi"}) == ExitCode::ok); // without build.toml nobody's project
    test::write_text(world.dir / "build.toml", "");
    const std::string found = "below '" + world.dir.path().string() + "' of this machine";
    const std::string variant = "build/" + std::string{kVariant};
    for (const std::string& what : {std::string{"."},
                                    std::string{"build"},
                                    variant,
                                    variant + "/",
                                    variant + "/_k_cpu_x.abi3.so"}) {
        CAPTURE(what);
        CHECK(world.run({"check-abi", what}) == ExitCode::failed);
        CHECK(world.terminal.out_text.find(found) != std::string::npos);
    }
    CHECK(world.run({"check-builds"}) == ExitCode::failed);
    CHECK(world.terminal.out_text.find(found) != std::string::npos);
    CHECK(world.run({"upload", "--repo-id", "me/k", "--allow-weak-sandbox", "--dry-run"}) ==
          ExitCode::failed);
    CHECK(world.terminal.err_text.find("did not pass check 'host-paths'") != std::string::npos);
}

TEST_CASE("upload refuses only findings that count", "[cli][upload]") {
    World world;
    world.environment["KERNEL_BUILDER_STORE"] = (world.dir / "home/store").string();
    world.write(kVariant, kMetadata, {.needed = {"libgomp.so.1", "libtorch.so"}});
    REQUIRE(world.run({"hash"}) == ExitCode::ok);
    test::write_text(world.dir / "build.toml", "");
    for (const char* directory : {".", "build"}) {
        CAPTURE(directory);
        const std::vector<std::string> upload{
            "upload", directory, "--repo-id", "me/k", "--allow-weak-sandbox", "--dry-run"};
        CHECK(world.run(upload) == ExitCode::failed);
        CHECK(world.terminal.err_text.find("did not pass check 'needed'") != std::string::npos);
        test::write_text(world.dir / "kernel-builder.toml",
                         "schema = \"kernel-builder/project/1\"\n[[suppress]]\n"
                         "check = \"needed\"\nreason = \"r\"\n");
        CHECK(world.run(upload) == ExitCode::usage); // no registry is named
        CHECK(world.terminal.err_text.find("did not pass") == std::string::npos);
        REQUIRE(sys::real_file_system().remove_file(world.dir / "kernel-builder.toml"));
    }
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

constexpr const char* kFakePython = R"sh(#!/bin/sh
cat <<'END'
noise of the kernel
{"torch": "2.11.0+cpu", "cuda": null, "ops": [
  {"name": "_k_cpu_x::f", "schema": "f() -> ()", "keys": ["CPU"], "fake": false}]}
END
)sh";

TEST_CASE("check-ops judges what an import registers", "[cli][check-ops]") {
    World world;
    std::string python = kFakePython;
    // The answer is one line.
    const std::size_t at = python.find("[\n");
    python.erase(at + 1, 1);
    test::write_text(world.dir / "python", python);
    REQUIRE(sys::real_file_system().set_mode(world.dir / "python", 0755));
    const std::string program = (world.dir / "python").string();
    CHECK(world.run({"check-ops", "--python", program}) == ExitCode::failed);
    CHECK(world.terminal.out_text.find("'_k_cpu_x::f' has no fake implementation") !=
          std::string::npos);
    CHECK(world.run({"check-ops", "--python", program, "--allow-missing", "op-fake"}) ==
          ExitCode::ok);
    CHECK(world.run({"check-ops", "--python", program, "--allow-missing", "op"}) ==
          ExitCode::usage);
    CHECK(world.run({"check-ops", "--python", (world.dir / "none").string()}) == ExitCode::failed);
    REQUIRE(world.run({"hash"}) == ExitCode::ok);
    CHECK(world.run({"check-builds", "--python", program}) == ExitCode::ok);
    world.write("torch-stable-abi212-cpu-x86_64-linux", kMetadata, {});
    REQUIRE(world.run({"hash"}) == ExitCode::ok);
    CHECK(world.run({"check-builds", "--python", program}) == ExitCode::failed);
    CHECK(world.terminal.out_text.find("not checked: it is for torch 2.12 and newer, this is 2.11 "
                                       "[import]") != std::string::npos);
    CHECK(world.run({"check-builds", "--python", program, "--allow-unchecked", "import"}) ==
          ExitCode::ok);
}

TEST_CASE("abi diff tells what is gone", "[cli][abi]") {
    World world;
    test::write_text(world.dir / "a.so",
                     test::build_elf({.symbols = {{.name = "f", .defined = true},
                                                  {.name = "g", .defined = true}}}));
    test::write_text(
        world.dir / "b.so",
        test::build_elf({.needed = {"libx.so"}, .symbols = {{.name = "f", .defined = true}}}));
    CHECK(world.run({"abi", "diff", "a.so", "a.so"}) == ExitCode::ok);
    CHECK(world.terminal.out_text == "no difference\n");
    CHECK(world.run({"abi", "diff", "a.so", "b.so"}) == ExitCode::failed);
    CHECK(world.terminal.out_text.starts_with("- export g\n+ needed library libx.so\n"));
    CHECK(world.run({"abi", "diff", "a.so", "b.so", "--json"}) == ExitCode::failed);
    const auto json = document::parse_json(world.terminal.out_text, {});
    REQUIRE(json);
    CHECK(*json->find("breaks") == document::Node{true});
    CHECK(world.run({"abi", "diff", "a.so", "none.so"}) == ExitCode::usage);
}

TEST_CASE("doctor says why a variant does not load here", "[cli][doctor]") {
    World world;
    test::write_text(world.dir / "python",
                     "#!/bin/sh\necho '{\"python\": \"3.11.2\", \"torch\": \"2.10.0\"}'\n");
    REQUIRE(sys::real_file_system().set_mode(world.dir / "python", 0755));
    const std::string program = (world.dir / "python").string();
    CHECK(world.run({"doctor", "build", "--python", program}) == ExitCode::failed);
    CHECK(world.terminal.out_text.find("it needs torch 2.11 or newer, this is 2.10.0 [torch]") !=
          std::string::npos);
    CHECK(world.terminal.out_text.find("it needs 'libtorch_cpu.so', which is not on this machine "
                                       "[library]") != std::string::npos);
    test::write_text(world.dir / "plain.so", test::build_elf({.needed = {"libc.so.6"}}));
    CHECK(world.run({"doctor", "plain.so", "--python", program}) == ExitCode::ok);
    CHECK(world.run({"doctor", "plain.so", "--python", program, "--json"}) == ExitCode::ok);
    const auto json = document::parse_json(world.terminal.out_text, {});
    REQUIRE(json);
    CHECK(json->text_or("schema") == "kernel-builder/diagnosis/1");
    CHECK(json->find("host")->text_or("python") == "3.11.2");
    CHECK(world.run({"doctor", "nowhere"}) == ExitCode::usage);
}

TEST_CASE("check-abi refuses options that mean nothing", "[cli][check-abi]") {
    World world;
    CHECK(world.run({"check-abi", "--manylinux", "manylinux2_28"}) == ExitCode::usage);
    CHECK(world.terminal.err_text == "error: no manylinux policy is called 'manylinux2_28'\n"
                                     "note: did you mean 'manylinux_2_28'?\n");
    CHECK(world.run({"check-abi", "--python-abi", "3.x"}) == ExitCode::usage);
    for (const char* command : {"check-abi", "check-builds", "check-ops"}) {
        CHECK(world.run({command, "--allow-unchecked", "everything"}) == ExitCode::usage);
        CHECK(world.terminal.err_text.contains("is called 'everything'\nnote: the checks are "));
    }
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
    CHECK(world.terminal.out_text.find("differs from its digest [digest]") != std::string::npos);
    CHECK(world.run({"check-builds"}) == ExitCode::failed);
}

TEST_CASE("bytecode is no part of what a key vouches for", "[cli][sign][verify]") {
    World world;
    REQUIRE(world.run({"hash"}) == ExitCode::ok);
    world.attest();
    REQUIRE(world.run({"sign", "--key", "release.key", "--new-key"}) == ExitCode::ok);
    REQUIRE(world.run({"sign", "--key", "release.key"}) == ExitCode::ok);
    REQUIRE(world.run({"verify", "--key", "release.key.pub"}) == ExitCode::ok);
    const auto variant = world.dir / "build" / kVariant;
    test::write_text(variant / "__pycache__/__init__.cpython-311.pyc", "what an import leaves");
    CHECK(world.run({"verify"}) == ExitCode::ok);
    CHECK(world.run({"verify", "--key", "release.key.pub"}) == ExitCode::failed);
    CHECK(world.terminal.out_text.find(
              "  '__pycache__/__init__.cpython-311.pyc' is not covered by the statement "
              "[statement]\n    next: delete it\n") != std::string::npos);
    CHECK(world.run({"sign", "--key", "release.key"}) == ExitCode::failed);
    CHECK(world.terminal.err_text.find("'__pycache__/__init__.cpython-311.pyc' is not covered by "
                                       "the statement; delete it") != std::string::npos);
    std::filesystem::remove_all(variant / "__pycache__");
    CHECK(world.run({"verify", "--key", "release.key.pub"}) == ExitCode::ok);
    test::write_text(variant / "_ops/__init__.pyc", "comes before _ops.py");
    CHECK(world.run({"verify"}) == ExitCode::failed);
    CHECK(world.terminal.out_text.find("'_ops/__init__.pyc' is bytecode, which no digest covers "
                                       "[digest]") != std::string::npos);
    CHECK(world.run({"verify", "--key", "release.key.pub"}) == ExitCode::failed);
    CHECK(world.run({"sign", "--key", "release.key"}) == ExitCode::failed);
}

TEST_CASE("a statement that lost its bill is found", "[cli][verify]") {
    World world;
    REQUIRE(world.run({"hash"}) == ExitCode::ok);
    world.attest();
    REQUIRE(world.run({"verify"}) == ExitCode::ok);
    const auto place = project::attestation_directory(world.dir / "build" / kVariant);
    std::filesystem::remove(place / (std::string{kVariant} + ".cdx.json"));
    CHECK(world.run({"verify"}) == ExitCode::failed);
    CHECK(world.terminal.out_text.find("a statement without its bill of materials") !=
          std::string::npos);
    std::filesystem::remove(place / (std::string{kVariant} + ".slsa.json"));
    CHECK(world.run({"verify"}) == ExitCode::ok);
}

TEST_CASE("a private key was at no time readable by others", "[cli][sign]") {
    World world;
    test::FaultyFileSystem fs{sys::real_file_system()};
    const auto key = world.dir / "release.key";
    const std::vector<std::string> make{"sign", "--key", "release.key", "--new-key"};
    // Stopped after each step: what is there by its name is the owner's alone.
    for (std::size_t call = 1;; ++call) {
        REQUIRE(call < 20);
        fs.fail_at(call, test::FaultyFileSystem::Death::yes);
        const ExitCode code = world.run(make, fs);
        if (std::filesystem::exists(key)) {
            CHECK(std::filesystem::status(key).permissions() ==
                  (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
        }
        if (code == ExitCode::ok) {
            break;
        }
        for (const auto& file : std::filesystem::directory_iterator{world.dir.path()}) {
            if (file.path().filename().string().starts_with("release.key")) {
                std::filesystem::remove(file.path());
            }
        }
    }
    CHECK(test::read_text(key).starts_with("-----BEGIN PRIVATE KEY-----"));
    CHECK(world.run(make) == ExitCode::failed);
    CHECK(sys::real_file_system().list(world.dir.path())->size() == 3); // build, key, key.pub
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
