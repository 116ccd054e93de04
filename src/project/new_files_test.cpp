// SPDX-License-Identifier: Apache-2.0
#include "project/new_files.hpp"

#include "support/catch.hpp"
#include "support/faulty_file_system.hpp"
#include "support/support.hpp"

#include <map>

namespace kb::project {

namespace {

const std::vector<FileImage> kImages{{RelPath::literal("a"), "new a", FileMode::regular},
                                     {RelPath::literal("dir/b"), "new b", FileMode::executable},
                                     {RelPath::literal("dir/deep/c"), "new c", FileMode::regular}};

/// Every file below the directory, temporary ones included.
std::map<std::string, std::string> content_of(const std::filesystem::path& root) {
    std::map<std::string, std::string> content;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
        content.emplace(entry.path().lexically_relative(root).string(),
                        entry.is_directory() ? "<dir>" : test::read_text(entry.path()));
    }
    return content;
}

} // namespace

TEST_CASE("a new project is written with its modes", "[project][new]") {
    const test::TempDir dir;
    REQUIRE(write_new_files(sys::real_file_system(), dir / "kernel", kImages, Force::no));
    CHECK(content_of(dir / "kernel") ==
          std::map<std::string, std::string>{{"a", "new a"},
                                             {"dir", "<dir>"},
                                             {"dir/b", "new b"},
                                             {"dir/deep", "<dir>"},
                                             {"dir/deep/c", "new c"}});
    CHECK((std::filesystem::status(dir / "kernel/dir/b").permissions() &
           std::filesystem::perms::owner_exec) != std::filesystem::perms::none);
}

TEST_CASE("files in the way are listed and nothing is written", "[project][new]") {
    const test::TempDir dir;
    test::write_text(dir / "a", "mine");
    std::filesystem::create_directories(dir / "dir");
    std::filesystem::create_symlink("nowhere", dir / "dir/b");
    const auto refused = write_new_files(sys::real_file_system(), dir.path(), kImages, Force::no);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message ==
          "2 files are already there, nothing was written: 'a' and 'dir/b'");
    CHECK_FALSE(std::filesystem::exists(dir / "dir/deep"));
    CHECK(test::read_text(dir / "a") == "mine");
    std::filesystem::remove(dir / "dir/b");
    REQUIRE(write_new_files(sys::real_file_system(), dir.path(), kImages, Force::yes));
    CHECK(test::read_text(dir / "a") == "new a");
    CHECK(test::read_text(dir / "dir/b") == "new b");
}

TEST_CASE("a fault at any step leaves all files or none", "[project][new]") {
    const auto force = GENERATE(Force::no, Force::yes);
    std::size_t faults = 0;
    for (std::size_t n = 1; n < 200; ++n) {
        const test::TempDir dir;
        if (force == Force::yes) {
            test::write_text(dir / "a", "old a");
            test::write_text(dir / "dir/keep", "mine");
        }
        const auto before = content_of(dir.path());
        test::FaultyFileSystem fs{sys::real_file_system()};
        fs.fail_at(n, test::FaultyFileSystem::Death::no);
        const auto done = write_new_files(fs, dir.path(), kImages, force);
        if (done) {
            CHECK(test::read_text(dir / "a") == "new a");
            CHECK(test::read_text(dir / "dir/deep/c") == "new c");
            break;
        }
        ++faults;
        CAPTURE(n);
        const auto after = content_of(dir.path());
        // Only the clean-up of replaced files may fail with everything in place.
        const bool all = after.contains("dir/deep/c") && after.at("a") == "new a";
        CHECK((all || after == before));
    }
    CHECK(faults > 5);
}

} // namespace kb::project
