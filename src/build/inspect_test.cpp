// SPDX-License-Identifier: Apache-2.0
#include "build/inspect.hpp"

#include "support/catch.hpp"
#include "support/elf_builder.hpp"
#include "support/support.hpp"

#include <algorithm>
#include <filesystem>

namespace kb::build {
namespace {

TEST_CASE("libraries of a variant are read wherever they lie", "[build][inspect]") {
    const test::TempDir dir;
    test::write_text(dir / "_k.abi3.so", test::build_elf({.soname = "k"}));
    test::write_text(dir / "lib/libx.so.1.2", test::build_elf({.soname = "x"}));
    test::write_text(dir / "lib/liby.so.txt", "text");
    test::write_text(dir / "broken.dll", "text");
    test::write_text(dir / "__init__.py", "");
    std::filesystem::create_symlink("_k.abi3.so", dir / "link.so");
    std::filesystem::create_symlink("nowhere", dir / "gone.so");
    const auto libraries = inspect_libraries(sys::real_file_system(), dir.path(), {.threads = 2});
    REQUIRE(libraries);
    std::string seen;
    for (const check::Library& library : *libraries) {
        seen += library.path + "=" +
                (library.object ? std::string{library.object->soname}
                                : library.unread_reason.substr(0, 23)) +
                "\n";
    }
    CHECK(seen == "_k.abi3.so=k\n"
                  "broken.dll=the file is no ELF, Mac\n"
                  "gone.so=opening '" +
                      dir.path().string().substr(0, 14) + "\nlib/libx.so.1.2=x\nlink.so=k\n");
    CHECK_FALSE(inspect_libraries(sys::real_file_system(), dir / "none", {}));
}

TEST_CASE("paths of a building machine are found in a file of any size", "[build][inspect]") {
    const test::TempDir dir;
    std::string bytes = test::build_elf({.soname = "k"});
    bytes.resize(20UL << 20U);
    bytes += "/home/alice/k.cu";
    bytes.replace(10UL << 20U, 9, "/srv/k/x\0", 9);
    test::write_text(dir / "k.so", bytes);
    for (const unsigned threads : {1U, 2U, 3U}) {
        const auto object =
            inspect_file(dir / "k.so", {.threads = threads, .machine_places = {"/srv/k"}});
        REQUIRE(object);
        REQUIRE(object->path_texts.size() == 2);
        CHECK(object->path_texts[0].text == "/srv/k/x");
        CHECK(object->path_texts[1].offset == 20UL << 20U);
        CHECK_FALSE(object->gap(binfmt::Fact::path_texts));
    }
    const auto skipped = inspect_file(dir / "k.so", {.paths = InspectOptions::Paths::skip});
    REQUIRE(skipped);
    CHECK(skipped->path_texts.empty());
    CHECK(skipped->gap(binfmt::Fact::path_texts));
}

TEST_CASE("places of this machine are the project's, links resolved", "[build][inspect]") {
    const test::TempDir dir;
    const std::string real = std::filesystem::canonical(dir.path()).string() + "/my project";
    std::filesystem::create_directory(real);
    std::filesystem::create_directory(dir / "state");
    std::filesystem::create_symlink("my project", dir / "link");
    std::filesystem::create_symlink("../state", dir / "my project/.kernel-builder");
    const std::vector<std::string> places = machine_places(dir / "link/");
    const auto has = [&](const std::string& place) {
        return std::ranges::find(places, place) != places.end();
    };
    CHECK(has((dir / "link").string()));
    CHECK(has(real));
    CHECK(has(std::filesystem::canonical(dir / "state").string()));
    CHECK(std::ranges::is_sorted(places));

    std::string bytes = test::build_elf({.soname = "k"});
    bytes += std::string(1, '\0') + real + "/a.cu";
    test::write_text(dir / "k.so", bytes);
    const auto object = inspect_file(dir / "k.so", {.machine_places = places});
    REQUIRE(object);
    REQUIRE(object->path_texts.size() == 1);
    CHECK(object->path_texts[0].text == real + "/a.cu");
}

TEST_CASE("what the sandbox calls its own places says nothing", "[build][inspect]") {
    for (const char* place : {"/", "/src", "/src/k", "/work", "/toolchain/x", "/ccache"}) {
        CAPTURE(place);
        for (const std::string& found : machine_places(place)) {
            CHECK(found == "/.kernel-builder");
        }
    }
    CHECK(machine_places("/usr/nowhere/k") ==
          std::vector<std::string>{"/usr/nowhere/k", "/usr/nowhere/k/.kernel-builder"});
    CHECK(machine_places("/srcs").size() == 2);
}

TEST_CASE("suppressed findings are no failures", "[build][inspect]") {
    const check::Report report{
        .verdicts = {{.library = "a", .check = "needed", .outcome = check::Outcome::passed},
                     {.library = "b", .check = "needed", .outcome = check::Outcome::failed},
                     {.check = "read"},
                     {.check = "imports", .allowed = true}},
        .findings = {{.library = "a", .check = "hygiene", .message = "x", .suppressed = "known"},
                     {.library = "b", .check = "needed", .message = "needs 'z'"}}};
    CHECK(failures_of(report) == std::vector<std::string>{"needed: needs 'z'"});
    CHECK(failed_checks(report) == std::vector<std::string>{"needed", "read"});
}

TEST_CASE("a variant promises what its name and metadata say", "[build][inspect]") {
    package::Metadata metadata;
    metadata.archs = std::vector<std::string>{"9.0a"};
    const check::Promise stable = promise_of("torch-stable-abi211-cu130-x86_64-linux", &metadata);
    CHECK(stable.torch_stable_abi == Version{{2, 11}});
    CHECK(stable.archs == metadata.archs);
    CHECK(stable.manylinux == "manylinux_2_28");
    CHECK(stable.variant->backend == backend::BackendId::cuda);
    const check::Promise versioned = promise_of("torch213-metal-aarch64-darwin", nullptr);
    CHECK_FALSE(versioned.torch_stable_abi);
    CHECK(versioned.macos == Version{{26, 0}});
    CHECK_FALSE(promise_of("some-folder", nullptr).variant);
}

} // namespace
} // namespace kb::build
