// SPDX-License-Identifier: Apache-2.0
#include "project/generated.hpp"

#include "support/catch.hpp"
#include "support/faulty_file_system.hpp"
#include "support/support.hpp"

namespace kb::project {
namespace {

using Names = std::vector<std::string>;

FileImage image(std::string_view path, std::string content) {
    return {.path = RelPath::literal(path), .content = std::move(content)};
}

struct World {
    test::TempDir dir{};
    sys::FileSystem& fs = sys::real_file_system();

    GeneratedReport write(const std::vector<FileImage>& images,
                          Force force = Force::no,
                          DryRun dry_run = DryRun::no) {
        return write_generated(fs, dir.path(), dir / ".kernel-builder", images, force, dry_run)
            .value();
    }
};

TEST_CASE("generated files are written, skipped when equal, replaced when ours, removed when stale",
          "[project][generated]") {
    World world;
    CHECK(world.write({image("CMakeLists.txt", "1"), image("cmake/a.cmake", "a")}).written ==
          Names{"CMakeLists.txt", "cmake/a.cmake"});
    CHECK(
        world.write({image("CMakeLists.txt", "1"), image("cmake/a.cmake", "a")}).unchanged.size() ==
        2);
    const GeneratedReport third = world.write({image("CMakeLists.txt", "2")});
    CHECK(third.written == Names{"CMakeLists.txt"});
    CHECK(third.removed == Names{"cmake/a.cmake"});
    CHECK_FALSE(std::filesystem::exists(world.dir / "cmake"));
    CHECK(test::read_text(world.dir / "CMakeLists.txt") == "2");
}

TEST_CASE("foreign and edited files are kept and named, and nothing is done",
          "[project][generated]") {
    World world;
    world.write({image("a", "1"), image("stale", "1")});
    test::write_text(world.dir / "a", "edited");
    test::write_text(world.dir / "stale", "edited too");
    test::write_text(world.dir / "foreign", "mine");
    const std::vector<FileImage> images{image("a", "2"), image("foreign", "2"), image("new", "2")};
    const GeneratedReport report = world.write(images);
    CHECK(report.kept == Names{"a", "foreign", "stale"});
    CHECK_FALSE(std::filesystem::exists(world.dir / "new"));
    CHECK(test::read_text(world.dir / "foreign") == "mine");
    const GeneratedReport forced = world.write(images, Force::yes);
    CHECK(forced.written == Names{"a", "foreign", "new"});
    CHECK(forced.removed == Names{"stale"});
}

TEST_CASE("a dry run changes nothing and says the same", "[project][generated]") {
    World world;
    CHECK(world.write({image("a", "1")}, Force::no, DryRun::yes).written == Names{"a"});
    CHECK_FALSE(std::filesystem::exists(world.dir / "a"));
}

TEST_CASE("no images removes what is ours and leaves the rest", "[project][generated]") {
    World world;
    world.write({image("sub/a", "1")});
    test::write_text(world.dir / "sub/mine", "x");
    CHECK(world.write({}).removed == Names{"sub/a"});
    CHECK(std::filesystem::exists(world.dir / "sub/mine"));
}

TEST_CASE("a link in the place of a generated file is not followed", "[project][generated]") {
    World world;
    test::write_text(world.dir / "victim", "precious");
    std::filesystem::create_symlink("victim", world.dir / "a");
    CHECK(world.write({image("a", "1")}).kept == Names{"a"});
    CHECK(test::read_text(world.dir / "victim") == "precious");
}

TEST_CASE("killed at any step, the next run takes nothing of ours for somebody else's",
          "[project][generated]") {
    const std::vector<FileImage> first{image("a", "1"), image("sub/b", "1"), image("stale", "1")};
    const std::vector<FileImage> second{image("a", "2"), image("sub/b", "2"), image("c", "2")};
    const std::vector<FileImage> third{image("a", "3"), image("c", "3")};
    std::size_t kills = 0;
    for (std::size_t n = 1; n < 100; ++n) {
        World world;
        world.write(first);
        test::FaultyFileSystem faulty{world.fs};
        faulty.fail_at(n, test::FaultyFileSystem::Death::yes);
        const auto killed = write_generated(
            faulty, world.dir.path(), world.dir / ".kernel-builder", second, Force::no, DryRun::no);
        kills += killed ? 0U : 1U;
        CAPTURE(n);
        // What is generated changed meanwhile.
        CHECK(world.write(third).kept.empty());
        CHECK(test::read_text(world.dir / "a") == "3");
        CHECK_FALSE(std::filesystem::exists(world.dir / "sub"));
        CHECK_FALSE(std::filesystem::exists(world.dir / "stale"));
        if (killed) {
            break;
        }
    }
    CHECK(kills > 5);
}

TEST_CASE("our folder is marked, and not made for nothing", "[project][generated]") {
    World world;
    world.write({});
    CHECK_FALSE(std::filesystem::exists(world.dir / ".kernel-builder"));
    world.write({image("a", "1")});
    CHECK(std::filesystem::exists(world.dir / ".kernel-builder/CACHEDIR.TAG"));
}

} // namespace
} // namespace kb::project
