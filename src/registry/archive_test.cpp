// SPDX-License-Identifier: Apache-2.0
#include "registry/archive.hpp"

#include "registry/fsck.hpp"
#include "registry/registry_fixture.hpp"

namespace kb::registry::test {

namespace {

const std::string kLarge(40'000, 'l');
const std::string kRegular(20'000, 'r');
/// Travels as an object and is also a small file of the same content.
const std::string kBoth(500, 'b');

std::string lfs_line(std::string_view path, std::string_view content) {
    return hub::write_line(hub::LfsFileOp{
        .path = RelPath::literal(path), .oid = digest::sha256(content), .size = content.size()});
}

void fill(Fixture& f) {
    f.make_repo();
    REQUIRE(f.put_object(kLarge) == 200);
    REQUIRE(f.put_object(kBoth) == 200);
    REQUIRE(f.commit(Fixture::file("README.md", "card")).status == 200);
    REQUIRE(f.ask("POST", "/api/kernels/acme/relu/branch/v1", "{}").status == 200);
    REQUIRE(f.commit(lfs_line("build/torch-cpu/k.so", kLarge) + lfs_line("both.bin", kBoth) +
                         Fixture::file("both.txt", kBoth) + Fixture::file("r.bin", kRegular),
                     "v1")
                .status == 200);
    REQUIRE(f.ask("POST", "/api/kernels/acme/relu/tag/v1", R"({"tag":"v1.0"})").status == 200);
    f.make_repo("acme/secret", "private");
}

sys::Path archive_of(Fixture& f, const kb::test::TempDir& dir, std::string_view name = "a.tar") {
    const sys::Path output = dir / std::string{name};
    const auto report = export_archive(sys::real_file_system(), f.root(), {.output = output});
    REQUIRE(report.has_value());
    return output;
}

Result<ArchiveReport> import(Fixture& f, const sys::Path& archive) {
    f.close();
    auto report =
        import_archive(sys::real_file_system(), f.root(), {.archive = archive, .now = 1000});
    f.open();
    CHECK(fsck(sys::real_file_system(), f.root())->problems.empty());
    CHECK(sys::real_file_system().list(RootPaths{f.root()}.temporary())->empty());
    return report;
}

std::string refs_of(Fixture& f) {
    return f.ask("GET", "/api/kernels/acme/relu/refs").body;
}

} // namespace

TEST_CASE("an imported registry reads as the exported one", "[registry][archive]") {
    const kb::test::TempDir dir;
    Fixture from;
    fill(from);
    const sys::Path archive = archive_of(from, dir);
    Fixture to;
    const auto report = import(to, archive);
    REQUIRE(report.has_value());
    CHECK((report->repositories == 2 && report->refs == 4 && report->refs_unchanged == 0));
    CHECK(refs_of(to) == refs_of(from));
    for (const std::string_view path :
         {"build/torch-cpu/k.so", "both.bin", "both.txt", "r.bin", "README.md"}) {
        const std::string url = fmt::format("/kernels/acme/relu/resolve/v1.0/{}", path);
        const Asked got = to.ask("GET", url);
        CHECK(got.status == 200);
        CHECK(got.body == from.ask("GET", url).body);
    }
    CHECK(to.ask("GET", "/kernels/acme/secret", "", "").status == 401);
    // An object of the archive is present for uploads too.
    CHECK(to.commit(lfs_line("again.so", kLarge)).status == 200);
    // Once more: main moved on here, which is no ancestor of what the archive has.
    const auto again = import(to, archive);
    REQUIRE_FALSE(again.has_value());
    CHECK(again.error().code == ErrorCode::denied);
    CHECK(again.error().message.contains("refs/heads/main"));
}

TEST_CASE("an import goes forward, and twice is once", "[registry][archive]") {
    const kb::test::TempDir dir;
    Fixture from;
    fill(from);
    Fixture to;
    REQUIRE(import(to, archive_of(from, dir)).has_value());
    REQUIRE(from.commit(Fixture::file("new.txt", "new"), "v1").status == 200);
    const sys::Path second = archive_of(from, dir, "b.tar");
    CHECK(import(to, second)->refs_unchanged == 3);
    CHECK(to.ask("GET", "/kernels/acme/relu/resolve/v1/new.txt").body == "new");
    CHECK(import(to, second)->refs_unchanged == 4);
    // Equal registries give equal archives.
    CHECK(kb::test::read_text(archive_of(from, dir, "c.tar")) == kb::test::read_text(second));
}

TEST_CASE("repositories are chosen by name", "[registry][archive]") {
    const kb::test::TempDir dir;
    Fixture from;
    fill(from);
    sys::FileSystem& fs = sys::real_file_system();
    const auto one =
        export_archive(fs, from.root(), {.output = dir / "x.tar", .repos = {"kernels/acme/relu"}});
    REQUIRE(one.has_value());
    CHECK(one->repositories == 1);
    const auto none =
        export_archive(fs, from.root(), {.output = dir / "y.tar", .repos = {"acme/relu"}});
    REQUIRE_FALSE(none.has_value());
    CHECK(none.error().message.contains("'kernels/owner/name'"));
    CHECK_FALSE(sys::exists(fs, dir / "y.tar"));
    const auto taken = export_archive(fs, from.root(), {.output = dir / "x.tar"});
    CHECK(taken.error().message.contains("exists"));
}

TEST_CASE("an altered archive imports nothing", "[registry][archive]") {
    const kb::test::TempDir dir;
    Fixture from;
    fill(from);
    const std::string whole = kb::test::read_text(archive_of(from, dir));
    const auto altered = [&whole](std::string_view what, std::string_view by) {
        std::string text = whole;
        const std::size_t at = text.find(what);
        REQUIRE(at != std::string::npos);
        return text.replace(at, by.size(), by);
    };
    const std::vector<std::string> bad{
        altered("lllllll", "lllXlll"),                      // an object
        altered("rrrrrrr", "rrrXrrr"),                      // a regular file
        altered("\ncommitter alice", "\ncommitter eve  "),  // a commit
        altered("r.bin\0", std::string_view{"../xn\0", 6}), // a tree
        altered(digest::sha256(kRegular).hex(), digest::sha256(kLarge).hex()),
        altered("registry-archive/1", "registry-archive/2"),
        whole.substr(0, whole.size() / 2),
        whole.substr(0, 3000),
        ""};
    Fixture to;
    for (const std::string& text : bad) {
        kb::test::write_text(dir / "bad.tar", text);
        const auto report = import(to, dir / "bad.tar");
        REQUIRE_FALSE(report.has_value());
        CHECK(report.error().code == ErrorCode::corrupt);
        CHECK(to.meta().repos()->empty());
        CHECK(to.blobs().list()->empty());
    }
}

TEST_CASE("an import beside a server is seen by it, a refused one leaves nothing",
          "[registry][archive]") {
    const kb::test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    Fixture from;
    fill(from);
    const sys::Path archive = archive_of(from, dir);
    Fixture to;
    to.make_repo("acme/other");
    const std::string whole = kb::test::read_text(archive);
    kb::test::write_text(dir / "bad.tar", whole.substr(0, whole.size() / 2));
    CHECK_FALSE(import_archive(fs, to.root(), {.archive = dir / "bad.tar"}).has_value());
    CHECK(fs.list(RootPaths{to.root()}.temporary())->empty());
    REQUIRE(import_archive(fs, to.root(), {.archive = archive, .now = 1000}).has_value());
    CHECK(refs_of(to) == refs_of(from));
    CHECK(to.ask("GET", "/kernels/acme/relu/resolve/v1/both.bin").body == kBoth);
    REQUIRE(to.commit(Fixture::file("here.txt", "x")).status == 200);
    to.close();
    CHECK(fsck(fs, to.root())->problems.empty());
}

} // namespace kb::registry::test
