// SPDX-License-Identifier: Apache-2.0
#include "registry/collect.hpp"

#include "registry/fsck.hpp"
#include "registry/registry_fixture.hpp"

namespace kb::registry::test {

namespace {

std::string lfs_line(std::string_view path, std::string_view content) {
    return hub::write_line(hub::LfsFileOp{
        .path = RelPath::literal(path), .oid = digest::sha256(content), .size = content.size()});
}

CollectReport run(Fixture& f, CollectMode mode, std::int64_t before) {
    f.close();
    const auto report =
        collect(sys::real_file_system(), f.root(), {.mode = mode, .before = before});
    REQUIRE(report.has_value());
    f.open();
    CHECK(fsck(sys::real_file_system(), f.root())->problems.empty());
    return *report;
}

} // namespace

TEST_CASE("what nothing leads to is collected, the rest is read as before", "[registry][gc]") {
    Fixture f;
    f.make_repo();
    const std::string kept(30'000, 'k');
    const std::string dropped(30'001, 'd');
    const std::string regular(20'000, 'r'); // a blob of its own that came inside a commit
    REQUIRE(f.put_object(kept) == 200);
    REQUIRE(f.put_object(dropped) == 200);
    REQUIRE(f.commit(lfs_line("kept.so", kept) + Fixture::file("a.txt", "small")).status == 200);
    REQUIRE(f.ask("POST", "/api/kernels/acme/relu/branch/side", "{}").status == 200);
    REQUIRE(f.commit(lfs_line("dropped.so", dropped) + Fixture::file("side.txt", "side") +
                         Fixture::file("side.bin", regular),
                     "side")
                .status == 200);
    const std::string side = f.head("side");
    const std::int64_t later = f.clock.seconds + 1;
    const CollectReport nothing = run(f, CollectMode::remove, later);
    CHECK((nothing.commits == 0 && nothing.trees == 0 && nothing.blobs == 0 &&
           nothing.objects == 0 && nothing.files == 0));
    REQUIRE(f.ask("DELETE", "/api/kernels/acme/relu/branch/side").status == 200);

    // Within the time that a commit may take, the object stays.
    CHECK(run(f, CollectMode::look, f.clock.seconds).objects == 0);
    const CollectReport looked = run(f, CollectMode::look, later);
    CHECK((looked.commits == 1 && looked.objects == 1 && looked.blobs == 2));
    CHECK(looked.bytes == dropped.size() + regular.size());
    CHECK(f.ask("GET", "/kernels/acme/relu/resolve/" + side + "/side.txt").body == "side");

    const CollectReport removed = run(f, CollectMode::remove, later);
    CHECK((removed.commits == looked.commits && removed.trees == looked.trees &&
           removed.files == looked.files && removed.blobs == looked.blobs));
    CHECK(f.ask("GET", "/kernels/acme/relu/resolve/" + side + "/side.txt").status == 404);
    CHECK(f.ask("GET", "/kernels/acme/relu/resolve/main/kept.so").body == kept);
    CHECK(f.ask("GET", "/kernels/acme/relu/resolve/main/a.txt").body == "small");
    CHECK(f.blobs().list()->size() == 1);
    // What was collected can be uploaded again.
    CHECK(f.put_object(dropped) == 200);
}

TEST_CASE("a deleted repository goes once it is old enough", "[registry][gc]") {
    Fixture f;
    f.make_repo();
    REQUIRE(f.commit(Fixture::file("a.bin", std::string(20'000, 'a'))).status == 200);
    REQUIRE(f.ask("POST", "/api/kernels/acme/relu/branch/dev", "{}").status == 200);
    REQUIRE(f.ask("DELETE",
                  "/api/repos/delete",
                  R"({"name":"relu","organization":"acme","type":"kernel"})",
                  "root")
                .status == 200);
    CHECK(run(f, CollectMode::remove, f.clock.seconds).repositories == 0);
    CHECK(f.blobs().list()->size() == 1);
    const CollectReport report = run(f, CollectMode::remove, f.clock.seconds + 1);
    CHECK((report.repositories == 1 && report.blobs == 1));
    CHECK(f.blobs().list()->empty());
    f.make_repo();
    CHECK(f.commit(Fixture::file("a.bin", std::string(20'000, 'a'))).status == 200);
}

TEST_CASE("beside a server what is old goes, after an hour at the least", "[registry][gc]") {
    Fixture f;
    f.make_repo();
    sys::FileSystem& fs = sys::real_file_system();
    const std::int64_t now = f.clock.seconds;
    const auto hasty = collect(fs, f.root(), {.before = now - 60, .now = now});
    REQUIRE_FALSE(hasty.has_value());
    CHECK(hasty.error().code == ErrorCode::denied);
    CHECK(hasty.error().message.contains("at least 1 hour"));

    const std::string dropped(30'000, 'd');
    const std::string kept(30'001, 'k');
    REQUIRE(f.put_object(dropped) == 200);
    REQUIRE(f.put_object(kept) == 200);
    REQUIRE(f.commit(lfs_line("kept.so", kept)).status == 200);
    const CollectOptions options{.before = now + 1, .now = now + 2 * kLeastServedGrace};
    // By the clock of the disk the contents are not older than that.
    REQUIRE(fs.set_mtime(f.blobs().path_of(digest::sha256(dropped)), now + 1).has_value());
    CHECK(collect(fs, f.root(), options)->blobs == 0);
    CHECK(f.blobs().size(digest::sha256(dropped)).value() == dropped.size());
    REQUIRE(fs.set_mtime(f.blobs().path_of(digest::sha256(dropped)), now).has_value());
    CHECK(collect(fs, f.root(), options)->blobs == 1);
    CHECK(f.ask("GET", "/kernels/acme/relu/resolve/main/kept.so").body == kept);
    CHECK(f.put_object(dropped) == 200);
    CHECK(f.commit(lfs_line("dropped.so", dropped)).status == 200);
    CHECK(f.ask("GET", "/kernels/acme/relu/resolve/main/dropped.so").body == dropped);
    f.close();
    CHECK(fsck(fs, f.root())->problems.empty());
}

TEST_CASE("a ref is not led to a commit that was just collected", "[registry][gc]") {
    Fixture f;
    f.make_repo();
    REQUIRE(f.ask("POST", "/api/kernels/acme/relu/branch/side", "{}").status == 200);
    REQUIRE(f.commit(Fixture::file("side.txt", "side"), "side").status == 200);
    const std::string side = f.head("side");
    REQUIRE(f.ask("DELETE", "/api/kernels/acme/relu/branch/side").status == 200);
    const std::int64_t now = f.clock.seconds;
    const auto report = collect(
        sys::real_file_system(), f.root(), {.before = now + 1, .now = now + 2 * kLeastServedGrace});
    CHECK(report->commits == 1);
    // The server still remembers it.
    const Asked made = f.ask("POST",
                             "/api/kernels/acme/relu/branch/again",
                             fmt::format(R"({{"startingPoint":"{}"}})", side));
    CHECK(made.status >= 400);
    CHECK(f.head("again").empty());
    f.close();
    CHECK(fsck(sys::real_file_system(), f.root())->problems.empty());
}

} // namespace kb::registry::test
