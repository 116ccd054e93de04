// SPDX-License-Identifier: Apache-2.0
#include "project/variant_dirs.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"

#include <filesystem>
#include <sys/stat.h>

namespace kb::project {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetadata = R"({"name":"k","id":"_k_cpu_x","version":1,"license":"mit",
"python-depends":[],"backend":{"type":"cpu"}})";

sys::FileSystem& real() {
    return sys::real_file_system();
}

std::string names(const Discovery& discovery) {
    std::string out;
    for (const VariantDir& variant : discovery.variants) {
        out += variant.name + " ";
    }
    return out;
}

TEST_CASE("the first usual place with a variant wins and shadows the others", "[project]") {
    const test::TempDir dir;
    test::write_text(dir / "torch-cuda/metadata.json", "{}");
    CHECK(names(*discover_variants(real(), dir.path())) == "torch-cuda ");
    test::write_text(dir / "result/b/metadata.json", "{}");
    test::write_text(dir / "build/empty/file", "");
    CHECK(discover_variants(real(), dir.path())->place == dir / "result");
    test::write_text(dir / "build/b/metadata.json", "{}");
    test::write_text(dir / "build/a/metadata.json", "{}");
    const auto found = discover_variants(real(), dir.path());
    CHECK(found->place == dir / "build");
    CHECK(names(*found) == "a b ");
    CHECK(found->shadowed == std::vector<sys::Path>{dir / "result", dir.path()});
}

TEST_CASE("a directory that is a variant is that one", "[project]") {
    const test::TempDir dir;
    test::write_text(dir / "v/metadata.json", "{}");
    CHECK(names(*discover_variants(real(), dir / "v")) == "v ");
    CHECK(names(*discover_variants(real(), dir / "v/")) == "v ");
}

TEST_CASE("nothing built says where it was looked for", "[project]") {
    const test::TempDir dir;
    const auto none = discover_variants(real(), dir.path());
    REQUIRE_FALSE(none);
    CHECK(none.error().code == ErrorCode::not_found);
    CHECK(none.error().message.find("/result'") != std::string::npos);
    CHECK(discover_variants(real(), dir / "gone").error().code == ErrorCode::not_found);
}

TEST_CASE("the file list follows links to files", "[project]") {
    const test::TempDir dir;
    test::write_text(dir / "blobs/x", "abc");
    test::write_text(dir / "v/sub/b.py", "");
    fs::create_symlink("../blobs/x", dir / "v/a.so");
    const auto files = read_file_list(real(), dir / "v");
    REQUIRE(files);
    REQUIRE(files->size() == 2);
    CHECK((*files)[0].path.text() == "a.so");
    CHECK((*files)[0].size == 3);
    CHECK((*files)[0].sha256 == digest::sha256("abc"));
    CHECK((*files)[1].path.text() == "sub/b.py");
}

TEST_CASE("what Python would follow and no digest covers is refused by name", "[project]") {
    const test::TempDir dir;
    test::write_text(dir / "v/_ops.py", "");
    test::write_text(dir / "evil/__init__.py", "");
    SECTION("a link to a directory, which shadows a module") {
        fs::create_directory_symlink(dir / "evil", dir / "v/_ops");
    }
    SECTION("the same deeper") {
        fs::create_directories(dir / "v/sub");
        fs::create_directory_symlink(dir / "evil", dir / "v/sub/_ops");
    }
    SECTION("a link to nothing") {
        fs::create_symlink("nowhere", dir / "v/_ops");
    }
    SECTION("a link in a circle") {
        fs::create_symlink("_ops", dir / "v/_ops");
    }
    SECTION("a pipe") {
        REQUIRE(::mkfifo((dir / "v/_ops").c_str(), 0600) == 0);
    }
    const auto files = read_file_list(real(), dir / "v");
    REQUIRE_FALSE(files);
    CHECK(files.error().code == ErrorCode::corrupt);
    CHECK(files.error().message.find("/_ops' is ") != std::string::npos);
}

TEST_CASE("a package is its metadata and its files", "[project]") {
    const test::TempDir dir;
    test::write_text(dir / "v/metadata.json", kMetadata);
    test::write_text(dir / "v/__init__.py", "x");
    const auto package = read_package(real(), {.name = "v", .path = dir / "v"});
    REQUIRE(package);
    CHECK(package->metadata.name == "k");
    CHECK(package->files.size() == 2);
    test::write_text(dir / "v/metadata.json", "{}");
    const auto broken = read_package(real(), {.name = "v", .path = dir / "v"});
    REQUIRE_FALSE(broken);
    CHECK(broken.error().to_text().find("metadata.json': the key 'name' is missing") !=
          std::string::npos);
}

TEST_CASE("a variant is exchanged whole, and what is not ours is not replaced",
          "[project][variants]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    const auto stage = [&](const std::string& file) {
        test::write_text(dir / "stage/v/metadata.json", "{}");
        test::write_text(dir / ("stage/v/" + file), "x");
        return publish_variant(fs, dir / "stage/v", dir.path(), "v");
    };
    REQUIRE(stage("old.py"));
    REQUIRE(stage("new.py"));
    CHECK(std::filesystem::exists(dir / "build/v/new.py"));
    CHECK_FALSE(std::filesystem::exists(dir / "build/v/old.py"));
    CHECK_FALSE(std::filesystem::exists(dir / "stage/v"));
    std::filesystem::remove(dir / "build/v/metadata.json");
    CHECK(stage("third.py").error().code == ErrorCode::denied);
    CHECK(std::filesystem::exists(dir / "build/v/new.py"));
}

} // namespace
} // namespace kb::project
