// SPDX-License-Identifier: Apache-2.0
#include "store/blob_store.hpp"

#include "support/catch.hpp"
#include "support/faulty_file_system.hpp"
#include "support/support.hpp"

#include <thread>

using namespace kb;
using namespace kb::store;

namespace {

BlobStore open_at(const test::TempDir& dir, sys::FileSystem& fs = sys::real_file_system()) {
    auto store = BlobStore::open(fs, dir / "blobs", dir / "tmp");
    REQUIRE(store);
    return *store;
}

std::size_t temporaries(const test::TempDir& dir) {
    return sys::real_file_system().list(dir / "tmp")->size();
}

} // namespace

TEST_CASE("a blob is found under the sha256 of its bytes and is read-only", "[store][blob]") {
    const test::TempDir dir;
    BlobStore store = open_at(dir);
    auto writer = store.begin();
    REQUIRE(writer);
    REQUIRE(writer->write("hello "));
    REQUIRE(writer->write("world"));
    const auto blob = writer->finish();
    REQUIRE(blob);
    CHECK(blob->digest.hex() == "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9");
    CHECK(blob->size == 11);
    CHECK(test::read_text(store.path_of(blob->digest)) == "hello world");
    CHECK(sys::real_file_system().stat(store.path_of(blob->digest))->mode == 0444);
    CHECK(store.size(blob->digest).value() == 11);
    CHECK(store.put("hello world").value() == *blob);
    CHECK(store.list().value() == std::vector{blob->digest});
    CHECK(temporaries(dir) == 0);
    REQUIRE(store.remove(blob->digest));
    CHECK(store.size(blob->digest).value() == std::nullopt);
    CHECK(store.open_read(blob->digest).error().code == ErrorCode::not_found);
}

TEST_CASE("a blob that is not the expected one is refused and leaves nothing", "[store][blob]") {
    const test::TempDir dir;
    BlobStore store = open_at(dir);
    const auto wrong = store.put("abc", {.digest = digest::sha256("abd")});
    REQUIRE(!wrong);
    CHECK(wrong.error().code == ErrorCode::corrupt);
    CHECK(wrong.error().message == "expected sha256 " + digest::sha256("abd").hex() + ", found " +
                                       digest::sha256("abc").hex());
    CHECK(store.put("abc", {.size = 4}).error().message == "expected 4 bytes, found 3");
    CHECK(store.list().value().empty());
    CHECK(temporaries(dir) == 0);
}

TEST_CASE("a changed blob is found by verify", "[store][blob]") {
    const test::TempDir dir;
    BlobStore store = open_at(dir);
    const auto blob = store.put("content");
    REQUIRE(blob);
    CHECK(store.verify(blob->digest));
    REQUIRE(sys::real_file_system().set_mode(store.path_of(blob->digest), 0644));
    test::write_text(store.path_of(blob->digest), "Content");
    CHECK(store.verify(blob->digest).error().code == ErrorCode::corrupt);
}

TEST_CASE("a file is adopted by renaming it in", "[store][blob]") {
    const test::TempDir dir;
    BlobStore store = open_at(dir);
    test::write_text(dir / "tmp/upload", "payload");
    const auto blob = store.adopt(dir / "tmp/upload", {.size = 7});
    REQUIRE(blob);
    CHECK(temporaries(dir) == 0);
    CHECK(test::read_text(store.path_of(blob->digest)) == "payload");
}

TEST_CASE("whatever call fails or kills, a listed blob is whole", "[store][blob]") {
    const auto death =
        GENERATE(test::FaultyFileSystem::Death::no, test::FaultyFileSystem::Death::yes);
    bool finished = false;
    for (std::size_t at = 1; !finished; ++at) {
        REQUIRE(at < 100);
        const test::TempDir dir;
        test::FaultyFileSystem faulty{sys::real_file_system()};
        BlobStore store = open_at(dir, faulty);
        faulty.fail_at(at, death);
        const auto blob = store.put("content");
        finished = faulty.calls() < at;
        CHECK(blob.has_value() == finished);
        BlobStore after = open_at(dir);
        const auto listed = after.list();
        REQUIRE(listed);
        for (const digest::Digest& digest : *listed) {
            CHECK(after.verify(digest));
        }
        // The next run is not disturbed by what is left.
        CHECK(after.put("content"));
        if (death == test::FaultyFileSystem::Death::no) {
            CHECK(temporaries(dir) == 0);
        }
    }
}

TEST_CASE("concurrent adders of one blob all succeed", "[store][blob]") {
    const test::TempDir dir;
    BlobStore store = open_at(dir);
    std::vector<int> good(8, 0);
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < good.size(); ++i) {
            threads.emplace_back([&, i] { good[i] = store.put("same").has_value() ? 1 : 0; });
        }
    }
    CHECK(good == std::vector<int>(8, 1));
    CHECK(store.list().value().size() == 1);
    CHECK(temporaries(dir) == 0);
}

TEST_CASE("a blob is set aside beside adders only when nobody wants it", "[store][blob]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    BlobStore store = BlobStore::open(fs, dir / "blobs", dir / "tmp", Renew::yes).value();
    const auto blob = store.put("content");
    REQUIRE(blob);
    const sys::Path path = store.path_of(blob->digest);
    const auto aside = [&](std::int64_t before, bool wanted) {
        return store.set_aside(blob->digest, before, [wanted] { return Result<bool>{wanted}; })
            .value();
    };
    REQUIRE(fs.set_mtime(path, 1000));
    CHECK_FALSE(aside(1000, false)); // too young
    CHECK_FALSE(aside(1001, true));
    CHECK(test::read_text(path) == "content");
    // Adding it again renews it.
    REQUIRE(store.put("content"));
    CHECK_FALSE(aside(2000, false));
    REQUIRE(fs.set_mtime(path, 1000));
    // Somebody adds it while it is aside: theirs stays.
    CHECK(store
              .set_aside(blob->digest,
                         2000,
                         [&]() -> Result<bool> {
                             REQUIRE(store.put("content"));
                             return false;
                         })
              .value());
    CHECK(test::read_text(path) == "content");
    REQUIRE(fs.set_mtime(path, 1000));
    // A collector that was killed in the middle.
    REQUIRE(fs.rename(path, dir / "tmp" / ("aside-" + blob->digest.hex())));
    REQUIRE(store.restore_aside());
    CHECK(test::read_text(path) == "content");
    CHECK(aside(2000, false));
    CHECK_FALSE(sys::exists(fs, path));
    CHECK_FALSE(aside(2000, false));
    CHECK(temporaries(dir) == 0);
}
