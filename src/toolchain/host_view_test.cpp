// SPDX-License-Identifier: Apache-2.0
#include "toolchain/host_view.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"
#include "sys/process.hpp"

#include <string>
#include <vector>

using namespace kb;
using namespace kb::toolchain;

namespace {

const std::string kElf = std::string{"\x7f"} + "ELF of nothing";

void write_program(const sys::Path& path, const std::string& content) {
    std::filesystem::create_directories(path.parent_path());
    test::write_text(path, content);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

/// A root as the debs of g++ give it, as far as the view looks at it.
sys::Path make_usr(const test::TempDir& dir) {
    const sys::Path usr = dir / "store/usr root";
    write_program(usr / "lib64/ld-linux-x86-64.so.2", kElf);
    std::filesystem::create_directories(usr / "lib/x86_64-linux-gnu");
    const sys::Path parts = usr / "lib/gcc/x86_64-linux-gnu/12";
    write_program(parts / "cc1plus", kElf);
    write_program(parts / "liblto_plugin.so", kElf);
    test::write_text(parts / "crtbegin.o", kElf);
    write_program(usr / "bin/x86_64-linux-gnu-g++-12", kElf);
    write_program(usr / "bin/x86_64-linux-gnu-gcc-ar-12", kElf);
    write_program(usr / "bin/x86_64-linux-gnu-as", kElf);
    write_program(usr / "bin/ninja", kElf);
    write_program(usr / "bin/ldd", "#!/bin/sh\n");
    std::filesystem::create_symlink("x86_64-linux-gnu-g++-12", usr / "bin/g++-12");
    std::filesystem::create_symlink("g++-12", usr / "bin/g++");
    std::filesystem::create_symlink("nothing", usr / "bin/dangling");
    return usr;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST_CASE("a view holds the places as links and the programs as scripts", "[toolchain][view]") {
    const test::TempDir dir;
    const sys::Path usr = make_usr(dir);
    const sys::Path view = dir / "view";
    std::filesystem::create_directories(view / "bin");
    std::filesystem::create_directories(view / "src");
    test::write_text(view / "bin/stale", "");
    test::write_text(view / "src/a.cpp", "");
    const std::vector<Root> roots{{.host = dir / "store/t", .mount = "/toolchain/torch-2.11"},
                                  {.host = usr, .mount = "/usr"}};
    const std::vector<PlaceAt> places{{"/work", dir / "work"}};
    const Result<void> written = write_host_view(sys::real_file_system(), view, roots, places);
    INFO((written ? std::string{} : written.error().to_text()));
    REQUIRE(written);

    CHECK(std::filesystem::read_symlink(view / "usr") == usr);
    CHECK(std::filesystem::read_symlink(view / "toolchain/torch-2.11") == dir / "store/t");
    CHECK(std::filesystem::read_symlink(view / "work") == dir / "work");
    CHECK(std::filesystem::read_symlink(view / "lib64") == "usr/lib64");
    CHECK_FALSE(std::filesystem::exists(view / "bin/stale"));
    CHECK(std::filesystem::exists(view / "src/a.cpp"));

    const std::string compiler = test::read_text(view / "bin/g++");
    CHECK(has(compiler, "'" + (usr / "lib64/ld-linux-x86-64.so.2").string() + "'"));
    CHECK(has(compiler, "-B'" + (view / "gcc/x86_64-linux-gnu").string() + "/'"));
    CHECK(has(compiler, "--sysroot='" + view.string() + "'"));
    CHECK(has(compiler, "'-ffile-prefix-map=" + (dir / "work").string() + "=/work'"));
    CHECK(has(compiler, "'-ffile-prefix-map=" + usr.string() + "=/usr'"));
    CHECK(test::read_text(view / "bin/g++-12").find("-B'") != std::string::npos);

    // Only compiler drivers are told more than the user said.
    for (const char* plain : {"bin/ninja",
                              "bin/x86_64-linux-gnu-gcc-ar-12",
                              "bin/x86_64-linux-gnu-as",
                              "gcc/x86_64-linux-gnu/cc1plus",
                              "gcc/x86_64-linux-gnu/as"}) {
        CAPTURE(plain);
        const std::string script = test::read_text(view / plain);
        CHECK(has(script, "--library-path"));
        CHECK_FALSE(has(script, "--sysroot"));
    }
    // No programs.
    for (const char* none : {"bin/ldd",
                             "bin/dangling",
                             "gcc/x86_64-linux-gnu/crtbegin.o",
                             "gcc/x86_64-linux-gnu/liblto_plugin.so"}) {
        CAPTURE(none);
        CHECK_FALSE(std::filesystem::exists(view / none));
    }
    // A second time over itself.
    CHECK(write_host_view(sys::real_file_system(), view, roots, places));
}

TEST_CASE("a root without a loader says which levels remain", "[toolchain][view]") {
    const test::TempDir dir;
    const sys::Path usr = make_usr(dir);
    std::filesystem::remove(usr / "lib64/ld-linux-x86-64.so.2");
    const std::vector<Root> roots{{.host = usr, .mount = "/usr"}};
    const Result<void> result =
        write_host_view(sys::real_file_system(), dir / "view", roots, std::vector<PlaceAt>{});
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::unsupported);
    CHECK(has(result.error().message, "--sandbox namespaces or chroot"));
}

TEST_CASE("a script runs its program by the root's loader, words unchanged", "[toolchain][view]") {
    const sys::Path loader = "/lib64/ld-linux-x86-64.so.2";
    if (!std::filesystem::exists(loader) ||
        !std::filesystem::exists("/usr/lib/x86_64-linux-gnu/libc.so.6")) {
        std::printf("SKIPPED: no x86-64 loader at Debian's place\n");
        return;
    }
    const test::TempDir dir;
    const sys::Path usr = dir / "it's a root";
    for (const char* folder : {"lib64", "bin", "lib/x86_64-linux-gnu"}) {
        std::filesystem::create_directories(usr / folder);
    }
    std::filesystem::copy_file(loader, usr / loader.relative_path());
    std::filesystem::copy_file("/usr/lib/x86_64-linux-gnu/libc.so.6",
                               usr / "lib/x86_64-linux-gnu/libc.so.6");
    std::filesystem::copy_file("/bin/echo", usr / "bin/echo");
    const std::vector<Root> roots{{.host = usr, .mount = "/usr"}};
    const sys::Path view = dir / "a view";
    REQUIRE(write_host_view(sys::real_file_system(), view, roots, std::vector<PlaceAt>{}));
    const auto ran = sys::real_process_runner().run(
        {.argv = {(view / "bin/echo").string(), "a b", "it's", "\"$HOME\""}});
    REQUIRE(ran);
    CHECK(ran->out == "a b it's \"$HOME\"\n");
}

} // namespace
