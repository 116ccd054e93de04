// SPDX-License-Identifier: Apache-2.0
#include "project/hash_cache.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"

#include <fmt/format.h>

#include <unistd.h>

namespace kb::project {
namespace {

/// A clock that stands `offset` seconds from now.
class ShiftedClock final : public sys::Clock {
public:
    explicit ShiftedClock(std::int64_t offset) : offset_{offset} {}

    std::int64_t unix_seconds() override { return sys::real_clock().unix_seconds() + offset_; }

    std::chrono::steady_clock::time_point now() override { return sys::real_clock().now(); }

    bool sleep(std::chrono::milliseconds) override { return true; }

private:
    std::int64_t offset_;
};

TEST_CASE("an unchanged file is not read again, a changed one is", "[project][hash_cache]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    ShiftedClock later{60};
    test::write_text(dir / "a", "one");
    HashCache first = HashCache::open(fs, dir / "hashes");
    CHECK(first.sha256(fs, later, dir / "a").value() == digest::sha256("one"));
    REQUIRE(first.save(fs));
    // The cache is believed: a planted digest comes back.
    std::string planted = test::read_text(dir / "hashes");
    planted.replace(planted.find(digest::sha256("one").hex()), 64, digest::sha256("planted").hex());
    test::write_text(dir / "hashes", planted);
    HashCache second = HashCache::open(fs, dir / "hashes");
    CHECK(second.sha256(fs, later, dir / "a").value() == digest::sha256("planted"));
    test::write_text(dir / "a", "three");
    CHECK(second.sha256(fs, later, dir / "a").value() == digest::sha256("three"));
}

TEST_CASE("a file that was just written is hashed but not remembered", "[project][hash_cache]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    ShiftedClock now{0};
    test::write_text(dir / "a", "one");
    HashCache cache = HashCache::open(fs, dir / "hashes");
    CHECK(cache.sha256(fs, now, dir / "a").value() == digest::sha256("one"));
    REQUIRE(cache.save(fs));
    CHECK_FALSE(std::filesystem::exists(dir / "hashes"));
}

TEST_CASE("files hashed ahead cost a stat and are kept unless they are new",
          "[project][hash_cache]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    ShiftedClock later{60};
    ShiftedClock now{0};
    const std::vector<sys::Path> paths{dir / "a", dir / "b", dir / "missing"};
    test::write_text(dir / "a", "one");
    test::write_text(dir / "b", "longer");
    HashCache racy = HashCache::open(fs, dir / "hashes");
    racy.hash_ahead(fs, now, paths, 2);
    CHECK(racy.sha256(fs, now, dir / "a").value() == digest::sha256("one"));
    REQUIRE(racy.save(fs));
    CHECK_FALSE(std::filesystem::exists(dir / "hashes"));
    HashCache cache = HashCache::open(fs, dir / "hashes");
    cache.hash_ahead(fs, later, paths, 2);
    test::write_text(dir / "b", "changed since");
    CHECK(cache.sha256(fs, later, dir / "a").value() == digest::sha256("one"));
    CHECK(cache.sha256(fs, later, dir / "b").value() == digest::sha256("changed since"));
    CHECK(cache.sha256(fs, later, dir / "missing").error().code == ErrorCode::not_found);
    REQUIRE(cache.save(fs));
    CHECK(test::read_text(dir / "hashes").find(digest::sha256("one").hex()) != std::string::npos);
}

TEST_CASE("no name that another process may use is in the way of saving", "[project][hash_cache]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    ShiftedClock later{60};
    test::write_text(dir / "a", "one");
    // What a process of this number in another container writes.
    std::filesystem::create_directories(dir / fmt::format("hashes.{}.tmp", ::getpid()));
    HashCache cache = HashCache::open(fs, dir / "hashes");
    CHECK(cache.sha256(fs, later, dir / "a").value() == digest::sha256("one"));
    REQUIRE(cache.save(fs));
    CHECK(test::read_text(dir / "hashes").find(digest::sha256("one").hex()) != std::string::npos);
    CHECK(fs.list(dir.path())->size() == 3); // nothing else stays
    // A place that cannot be written keeps nothing either.
    HashCache other = HashCache::open(fs, dir / "folder/hashes");
    CHECK(other.sha256(fs, later, dir / "a").value() == digest::sha256("one"));
    std::filesystem::create_directories(dir / "folder/hashes/in the way");
    CHECK_FALSE(other.save(fs));
    CHECK(fs.list(dir / "folder")->size() == 1);
}

TEST_CASE("a malformed cache is an empty one", "[project][hash_cache]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    ShiftedClock later{60};
    test::write_text(dir / "hashes", "nonsense\n1:2:3 xyz\n");
    test::write_text(dir / "a", "one");
    HashCache cache = HashCache::open(fs, dir / "hashes");
    CHECK(cache.sha256(fs, later, dir / "a").value() == digest::sha256("one"));
    CHECK(cache.sha256(fs, later, dir / "missing").error().code == ErrorCode::not_found);
}

} // namespace
} // namespace kb::project
