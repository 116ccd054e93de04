// SPDX-License-Identifier: Apache-2.0
#include "upload/journal.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"

#include <filesystem>

using namespace kb;
using namespace kb::upload;
using kb::test::read_text;
using kb::test::TempDir;
using kb::test::write_text;

namespace {

const digest::Digest kBlob = digest::sha256("blob");
const digest::Digest kOther = digest::sha256("other");

JournalKey key(const std::string& branch = "v1") {
    return {.endpoint = "http://h/",
            .repo = "kernels/a/b",
            .branch = branch,
            .content = digest::sha256("content")};
}

Journal open(const TempDir& dir, const JournalKey& k = key()) {
    auto journal = Journal::open(sys::real_file_system(), dir / "sub/upload.journal", k);
    REQUIRE(journal.has_value());
    return std::move(*journal);
}

} // namespace

TEST_CASE("what was confirmed is known after a restart", "[upload][journal]") {
    const TempDir dir;
    {
        Journal journal = open(dir);
        CHECK_FALSE(journal.has_blob(kBlob));
        REQUIRE(journal.add_blob(kBlob).has_value());
        REQUIRE(journal.add_part(kOther, 10, {.number = 3, .etag = "\"e\""}).has_value());
        CHECK(journal.has_blob(kBlob));
    }
    const Journal again = open(dir);
    CHECK(again.has_blob(kBlob));
    CHECK_FALSE(again.has_blob(kOther));
    REQUIRE(again.parts(kOther, 10).size() == 1);
    CHECK(again.parts(kOther, 10).at(3).etag == "\"e\"");
    CHECK(again.parts(kOther, 11).empty()); // other part size, other parts
}

TEST_CASE("a journal begins to exist with the first confirmation", "[upload][journal]") {
    const TempDir dir;
    REQUIRE(open(dir, key("v2")).add_blob(kBlob).has_value());
    Journal journal = open(dir);
    REQUIRE(journal.forget_parts(kBlob).has_value());
    REQUIRE(journal.forget_blobs().has_value());
    CHECK_FALSE(std::filesystem::exists(dir / "sub/upload.journal"));
    REQUIRE(journal.add_blob(kOther).has_value());
    CHECK(open(dir).has_blob(kOther));
}

TEST_CASE("another upload begins a new journal", "[upload][journal]") {
    const TempDir dir;
    REQUIRE(open(dir).add_blob(kBlob).has_value());
    CHECK_FALSE(open(dir, key("v2")).has_blob(kBlob));
    CHECK_FALSE(open(dir).has_blob(kBlob));
}

TEST_CASE("a torn last line confirms nothing and is cut off", "[upload][journal]") {
    const TempDir dir;
    REQUIRE(open(dir).add_blob(kBlob).has_value());
    const std::string whole = read_text(dir / "sub/upload.journal");
    for (std::size_t cut = whole.size() - 1; cut > whole.find('\n') + 1; --cut) {
        write_text(dir / "sub/upload.journal", whole.substr(0, cut));
        Journal journal = open(dir);
        CHECK_FALSE(journal.has_blob(kBlob));
        REQUIRE(journal.add_blob(kOther).has_value());
        CHECK(open(dir).has_blob(kOther));
    }
}

TEST_CASE("a damaged journal is no confirmation", "[upload][journal]") {
    const TempDir dir;
    REQUIRE(open(dir).add_blob(kBlob).has_value());
    const std::string text = read_text(dir / "sub/upload.journal");
    const std::string head = text.substr(0, text.find('\n') + 1);
    write_text(dir / "sub/upload.journal",
               head + "nonsense\n{\"blob\":\"zz\"}\n{\"part-of\":\"" + kBlob.hex() +
                   "\",\"part\":-1}\n\n{\"blob\":\"" + kOther.hex() + "\"}\n");
    const Journal journal = open(dir);
    CHECK_FALSE(journal.has_blob(kBlob));
    CHECK(journal.has_blob(kOther));
    CHECK(journal.parts(kBlob, 0).empty());
    write_text(dir / "sub/upload.journal", "not a journal");
    CHECK_FALSE(open(dir).has_blob(kOther));
}

TEST_CASE("what a registry lost is forgotten, now and after a restart", "[upload][journal]") {
    const TempDir dir;
    Journal journal = open(dir);
    REQUIRE(journal.add_part(kBlob, 10, {.number = 1, .etag = "a"}).has_value());
    REQUIRE(journal.add_part(kOther, 10, {.number = 1, .etag = "a"}).has_value());
    REQUIRE(journal.forget_parts(kBlob).has_value());
    CHECK(journal.parts(kBlob, 10).empty());
    CHECK(open(dir).parts(kBlob, 10).empty());
    CHECK(open(dir).parts(kOther, 10).size() == 1);
    REQUIRE(journal.add_blob(kBlob).has_value());
    REQUIRE(journal.forget_blobs().has_value());
    CHECK_FALSE(journal.has_blob(kBlob));
    CHECK_FALSE(open(dir).has_blob(kBlob));
}

TEST_CASE("a finished upload leaves no journal", "[upload][journal]") {
    const TempDir dir;
    Journal journal = open(dir);
    REQUIRE(journal.close().has_value());
    CHECK_FALSE(std::filesystem::exists(dir / "sub/upload.journal"));
}

TEST_CASE("a journal that cannot be written stops the upload", "[upload][journal]") {
    const TempDir dir;
    write_text(dir / "file", "in the way");
    auto journal = Journal::open(sys::real_file_system(), dir / "file/upload.journal", key());
    CHECK_FALSE((journal && journal->add_blob(kBlob)));
}
