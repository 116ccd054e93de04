// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include "store/archive_builder.hpp"
#include "store/seal.hpp"
#include "support/catch.hpp"
#include "support/faulty_file_system.hpp"
#include "support/support.hpp"

#include <thread>

using namespace kb;
using namespace kb::store;

namespace {

class HandClock final : public sys::Clock {
public:
    std::int64_t unix_seconds() override { return seconds; }

    std::chrono::steady_clock::time_point now() override { return {}; }

    bool sleep(std::chrono::milliseconds) override { return true; }

    std::int64_t seconds = 1'800'000'000;
};

struct Ground {
    kb::test::TempDir dir{};
    HandClock clock{};

    Store open(sys::FileSystem& fs = sys::real_file_system()) {
        auto store = Store::open(fs, clock, dir / "store");
        REQUIRE(store);
        return *store;
    }
};

const digest::Digest kKey = digest::sha256("key");

/// Two files and a link, as an unpacker would leave them.
Result<TreeRef> add(Store& store, sys::FileSystem& fs, std::string_view id = "wheel/x@1") {
    KB_TRY(const sys::Path content, store.make_temporary());
    KB_TRY(fs.make_directories(content / "include"));
    KB_TRY(fs.write_scratch(content / "include/a.h", "int a;\n", FileMode::regular));
    KB_TRY(fs.write_scratch(content / "tool", "#!\n", FileMode::executable));
    KB_TRY(fs.symlink("tool", content / "alias"));
    KB_TRY(const FileManifest manifest, store.read_manifest(content));
    return store.add_package(id, kKey, content, manifest);
}

/// Changes a file of such a tree in place; whatever shares its inode (object, root) changes too.
sys::Path damage(sys::FileSystem& fs, const TreeRef& tree) {
    sys::Path file = tree.path / "include/a.h";
    REQUIRE(fs.set_mode(file, 0644));
    kb::test::write_text(file, "int b;\n");
    return file;
}

} // namespace

TEST_CASE("a package becomes a read-only tree with one time", "[store]") {
    Ground ground;
    sys::FileSystem& fs = sys::real_file_system();
    Store store = ground.open();
    CHECK(store.find_package("wheel/x@1", kKey).value() == std::nullopt);
    const auto tree = add(store, fs);
    REQUIRE(tree);
    CHECK(store.find_package("wheel/x@1", kKey).value() == *tree);
    CHECK(store.find_package("wheel/x@1", digest::sha256("other")).value() == std::nullopt);
    CHECK(tree->path.filename() == store.manifest_of(tree->digest)->digest().hex());
    const auto entries = sys::walk(fs, tree->path);
    REQUIRE(entries);
    CHECK(entries->size() == 4);
    for (const sys::WalkEntry& entry : *entries) {
        INFO(entry.path.text());
        CHECK(entry.info.mtime_ns == kFixedTime * 1'000'000'000);
        if (entry.info.type != sys::FileType::symlink) {
            CHECK((entry.info.mode & 0222U) == 0);
        }
    }
    CHECK(fs.stat(tree->path)->mode == 0555);
    CHECK(fs.stat(tree->path)->mtime_ns == kFixedTime * 1'000'000'000);
    CHECK(fs.list(ground.dir / "store/tmp")->empty());
    CHECK(store.verify()->findings.empty());
}

TEST_CASE("equal files of two trees are one file on disk", "[store]") {
    Ground ground;
    sys::FileSystem& fs = sys::real_file_system();
    Store store = ground.open();
    const auto first = add(store, fs);
    const auto content = store.make_temporary();
    REQUIRE(fs.write_scratch(*content / "same.h", "int a;\n", FileMode::regular));
    const auto second =
        store.add_package("wheel/y@1", kKey, *content, *store.read_manifest(*content));
    REQUIRE(first);
    REQUIRE(second);
    CHECK(fs.stat(first->path / "include/a.h")->inode == fs.stat(second->path / "same.h")->inode);
    CHECK(fs.list(second->path)->size() == 1);
}

TEST_CASE("a damaged object does not come back into a tree that is fetched again", "[store]") {
    Ground ground;
    sys::FileSystem& fs = sys::real_file_system();
    Store store = ground.open();
    const auto tree = add(store, fs);
    REQUIRE(tree);
    damage(fs, *tree);
    const auto report = store.verify();
    REQUIRE(report);
    REQUIRE(report->findings.size() == 1);
    CHECK(report->findings[0].name == "tree/" + tree->digest.hex());
    CHECK(report->findings[0].message == "'include/a.h' has changed");
    REQUIRE(fs.remove_tree(tree->path));
    const auto again = add(store, fs);
    REQUIRE(again);
    CHECK(kb::test::read_text(again->path / "include/a.h") == "int a;\n");
    CHECK(store.verify()->findings.empty());
}

TEST_CASE("a damaged tree counts as not there and is made anew", "[store]") {
    Ground ground;
    sys::FileSystem& fs = sys::real_file_system();
    Store store = ground.open();
    const auto tree = add(store, fs);
    REQUIRE(tree);
    const RootRecipe recipe{.name = "r", .parts = {{.tree = tree->digest}}};
    const auto root = store.compose(recipe);
    REQUIRE(root);
    CHECK(store.find_package("wheel/x@1", kKey).value() == *tree);
    damage(fs, *tree);
    // The process that looked before goes on with what it saw.
    CHECK(store.find_package("wheel/x@1", kKey).value() == *tree);
    Store next = ground.open();
    CHECK(next.find_package("wheel/x@1", kKey).value() == std::nullopt);
    REQUIRE(next.discarded().size() == 1);
    CHECK(next.discarded()[0].name == "tree/" + tree->digest.hex());
    CHECK(next.discarded()[0].message == "'include/a.h' has changed");
    const auto again = add(next, fs);
    REQUIRE(again);
    CHECK(next.compose(recipe).value() == *root);
    CHECK(next.discarded().size() == 2);
    CHECK(kb::test::read_text(root->path / "include/a.h") == "int a;\n");
    CHECK(next.verify()->findings.empty());
    CHECK(fs.list(ground.dir / "store/tmp")->empty());
}

TEST_CASE("what only reading finds is taken away by a repair", "[store]") {
    Ground ground;
    sys::FileSystem& fs = sys::real_file_system();
    Store store = ground.open();
    const auto tree = add(store, fs);
    REQUIRE(tree);
    const sys::Path file = damage(fs, *tree);
    REQUIRE(fs.set_mtime(file, kFixedTime)); // as a failing disk leaves it
    Store next = ground.open();
    CHECK(next.find_package("wheel/x@1", kKey).value() == *tree);
    CHECK(next.verify()->findings.size() == 1);
    CHECK(next.verify(Repair::yes)->findings.size() == 1);
    CHECK(next.verify()->findings.empty());
    CHECK(ground.open().find_package("wheel/x@1", kKey).value() == std::nullopt);
}

TEST_CASE("verify names missing, foreign and changed things", "[store]") {
    Ground ground;
    sys::FileSystem& fs = sys::real_file_system();
    Store store = ground.open();
    const auto tree = add(store, fs);
    REQUIRE(tree);
    const auto finding = [&] {
        return store.verify()->findings.at(0).message;
    };
    REQUIRE(fs.set_mode(tree->path, 0755));
    kb::test::write_text(tree->path / "foreign", "x");
    CHECK(finding() == "'foreign' does not belong there");
    REQUIRE(fs.remove_file(tree->path / "foreign"));
    REQUIRE(fs.set_mtime(tree->path / "tool", 1));
    CHECK(finding() == "'tool' has another time");
    REQUIRE(fs.remove_file(tree->path / "alias"));
    CHECK(finding() == "'alias' is missing");
    REQUIRE(fs.remove_file(manifest_path(tree->path)));
    CHECK(finding().find("No such file") != std::string::npos);
}

TEST_CASE("whatever call fails or kills, a recorded package is whole", "[store]") {
    const auto death =
        GENERATE(kb::test::FaultyFileSystem::Death::no, kb::test::FaultyFileSystem::Death::yes);
    bool finished = false;
    for (std::size_t at = 1; !finished; ++at) {
        REQUIRE(at < 200);
        Ground ground;
        ground.open(); // the directories are there
        kb::test::FaultyFileSystem faulty{sys::real_file_system()};
        Store store = ground.open(faulty);
        faulty.fail_at(at, death);
        const auto tree = add(store, faulty);
        finished = faulty.calls() < at;
        Store after = ground.open();
        INFO("call " << at);
        const auto found = after.find_package("wheel/x@1", kKey);
        REQUIRE(found);
        CHECK(!(tree && !*found));
        CHECK(after.verify()->findings.empty());
        // The next run makes it whole, whatever was left.
        REQUIRE(add(after, sys::real_file_system()));
        CHECK(after.find_package("wheel/x@1", kKey).value().has_value());
        CHECK(after.verify()->findings.empty());
    }
}

TEST_CASE("a root is made once from moved parts, files and links", "[store]") {
    Ground ground;
    sys::FileSystem& fs = sys::real_file_system();
    Store store = ground.open();
    const auto tree = add(store, fs);
    REQUIRE(tree);
    const RootRecipe recipe{
        .name = "test",
        .parts = {{.tree = tree->digest, .moves = {{"include/", ""}, {"tool", "bin/tool"}}}},
        .files = {{.path = RelPath::literal("etc/made"), .content = "yes\n"}},
        .links = {{.path = RelPath::literal("bin/t"), .target = "tool"}}};
    const auto root = store.compose(recipe);
    REQUIRE(root);
    CHECK(kb::test::read_text(root->path / "a.h") == "int a;\n");
    CHECK(kb::test::read_text(root->path / "bin/t") == "#!\n");
    CHECK(kb::test::read_text(root->path / "etc/made") == "yes\n");
    CHECK_FALSE(sys::exists(fs, root->path / "alias"));
    CHECK(store.compose(recipe).value() == *root);
    CHECK(store.verify()->findings.empty());
    RootRecipe other = recipe;
    other.files[0].content = "no\n";
    CHECK(store.compose(other).value().digest != root->digest);
    // The recipe of a root, not where its store lies, names it.
    Ground elsewhere;
    Store second = elsewhere.open();
    REQUIRE(add(second, fs));
    CHECK(second.compose(recipe).value().digest == root->digest);
}

TEST_CASE("parts that disagree about a file make no root", "[store]") {
    Ground ground;
    Store store = ground.open();
    const auto tree = add(store, sys::real_file_system());
    REQUIRE(tree);
    const RootRecipe recipe{
        .name = "test",
        .parts = {{.tree = tree->digest}},
        .files = {{.path = RelPath::literal("include/a.h"), .content = "other"}}};
    const auto root = store.compose(recipe);
    REQUIRE(!root);
    CHECK(root.error().to_text() ==
          "composing root 'test': two parts of the root hold different files 'include/a.h'");
    CHECK(sys::real_file_system().list(ground.dir / "store/tmp")->empty());
}

TEST_CASE("concurrent adders of one package do not collide", "[store]") {
    Ground ground;
    Store store = ground.open();
    std::vector<int> good(6, 0);
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < good.size(); ++i) {
            threads.emplace_back([&, i] {
                Store mine = store;
                good[i] = add(mine, sys::real_file_system()).has_value() ? 1 : 0;
            });
        }
    }
    CHECK(good == std::vector<int>(6, 1));
    CHECK(store.verify()->findings.empty());
    CHECK(store.verify()->trees == 1);
    CHECK(sys::real_file_system().list(ground.dir / "store/tmp")->empty());
}

TEST_CASE("collection removes what was not used for long, and only that", "[store]") {
    Ground ground;
    sys::FileSystem& fs = sys::real_file_system();
    Store store = ground.open();
    const auto tree = add(store, fs);
    REQUIRE(tree);
    const auto root = store.compose({.name = "r", .parts = {{.tree = tree->digest}}});
    REQUIRE(root);
    constexpr std::int64_t kDay = 24L * 3600;
    ground.clock.seconds += 20 * kDay;
    CHECK(store.find_package("wheel/x@1", kKey).value().has_value()); // used again
    ground.clock.seconds += 15 * kDay;
    auto report = store.collect({.older_than_seconds = 30 * kDay});
    REQUIRE(report);
    CHECK(report->roots == 1);
    CHECK(report->packages == 0);
    CHECK(sys::exists(fs, tree->path));
    CHECK_FALSE(sys::exists(fs, root->path));
    ground.clock.seconds += 16 * kDay;
    report = store.collect({.older_than_seconds = 30 * kDay});
    REQUIRE(report);
    CHECK(report->packages == 1);
    CHECK(report->trees == 1);
    CHECK(report->bytes == 10);
    CHECK_FALSE(sys::exists(fs, tree->path));
    CHECK(store.find_package("wheel/x@1", kKey).value() == std::nullopt);
    // Objects without a tree are gone too.
    const auto objects = sys::walk(fs, ground.dir / "store/obj/sha256");
    REQUIRE(objects);
    for (const sys::WalkEntry& entry : *objects) {
        CHECK(entry.info.type == sys::FileType::directory);
    }
}

TEST_CASE("a store of another version is refused", "[store]") {
    Ground ground;
    ground.open();
    kb::test::write_text(ground.dir / "store/VERSION", "kernel-builder store 2\n");
    const auto store = Store::open(sys::real_file_system(), ground.clock, ground.dir / "store");
    REQUIRE(!store);
    CHECK(store.error().code == ErrorCode::unsupported);
}

TEST_CASE("a manifest reads back and refuses what is no manifest", "[store]") {
    CHECK_FALSE(FileManifest::parse(""));
    const std::string head = "# kernel-builder tree 1\n";
    CHECK(FileManifest::parse(head).value().entries.empty());
    const std::string hex(64, 'a');
    for (const std::string& bad : {std::string{"f\t" + hex + "\t1\t../x\n"},
                                   std::string{"f\t" + hex + "\tone\tx\n"},
                                   std::string{"q\t" + hex + "\t1\tx\n"},
                                   std::string{"f\tzz\t1\tx\n"},
                                   std::string{"f\t" + hex + "\t1\n"},
                                   std::string{"f\t" + hex + "\t1\tb\nf\t" + hex + "\t1\ta\n"},
                                   std::string{"f\t" + hex + "\t1\ta\nf\t" + hex + "\t1\ta\n"}}) {
        INFO(bad);
        const auto manifest = FileManifest::parse(head + bad);
        REQUIRE(!manifest);
        CHECK(manifest.error().code == ErrorCode::corrupt);
    }
    CHECK_FALSE(FileManifest::parse(head + "f\t" + hex + "\t1\ta")); // cut short
}
