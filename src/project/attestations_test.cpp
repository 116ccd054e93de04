// SPDX-License-Identifier: Apache-2.0
#include "project/attestations.hpp"

#include "digest/digest.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

namespace kb::project {
namespace {

TEST_CASE("attestations lie beside build, whatever the spelling", "[project][attestations]") {
    CHECK(attestation_directory("/k/build/v") == "/k/.kernel-builder/provenance");
    CHECK(attestation_directory("/k/build/v/") == "/k/.kernel-builder/provenance");
    CHECK(attestation_directory("/k/./build/x/../v") == "/k/.kernel-builder/provenance");
}

TEST_CASE("a signature does not survive another statement", "[project][attestations]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    const sys::Path place = dir / "provenance";
    CHECK(read_attestations(fs, place, "v").error().code == ErrorCode::not_found);
    REQUIRE(write_attestations(fs, place, "v", {.statement = "one", .sbom = "bill"}));
    CHECK(read_attestations(fs, place, "v")->envelope.empty());
    REQUIRE(write_signature(fs, place, "v", "signed"));
    // The same statement again: a rebuild of the same bytes keeps the signature.
    REQUIRE(write_attestations(fs, place, "v", {.statement = "one", .sbom = "bill"}));
    CHECK(read_attestations(fs, place, "v")->envelope == "signed");
    REQUIRE(write_attestations(fs, place, "v", {.statement = "two", .sbom = "bill"}));
    const Attestations now = read_attestations(fs, place, "v").value();
    CHECK(now.statement == "two");
    CHECK(now.envelope.empty());
}

TEST_CASE("a statement without its bill is not the same as none", "[project][attestations]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    REQUIRE(write_attestations(fs, dir.path(), "v", {.statement = "one", .sbom = "bill"}));
    std::filesystem::remove(dir / "v.cdx.json");
    const auto said = read_attestations(fs, dir.path(), "v");
    REQUIRE_FALSE(said);
    CHECK(said.error().code == ErrorCode::corrupt);
    CHECK(said.error().message.find("/v.cdx.json'") != std::string::npos);
    std::filesystem::remove(dir / "v.slsa.json");
    CHECK(read_attestations(fs, dir.path(), "v").error().code == ErrorCode::not_found);
}

TEST_CASE("what a statement names is kept by its digest", "[project][attestations]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    const sys::Path place = dir / "provenance";
    REQUIRE(write_named_blob(fs, place, kSourcesKind, "archive"));
    REQUIRE(write_named_blob(fs, place, kSourcesKind, "archive"));
    const std::string name = digest::sha256("archive").hex() + ".sources.tar";
    const Attestations said{
        .statement =
            R"({"predicate":{"runDetails":{"byproducts":[{"name":"sources.tar","digest":{"sha256":")" +
            digest::sha256("archive").hex() + R"("}}]}}})"};
    CHECK(attestation_names(fs, place, "v", said).value() ==
          std::vector<std::string>{"v.slsa.json", "v.cdx.json", name});
    test::write_text(place / name, "other");
    const auto harmed = attestation_names(fs, place, "v", said);
    REQUIRE_FALSE(harmed);
    CHECK(harmed.error().code == ErrorCode::corrupt);
    std::filesystem::remove(place / name);
    CHECK(attestation_names(fs, place, "v", said).value().size() == 2);
}

} // namespace
} // namespace kb::project
