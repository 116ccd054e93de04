// SPDX-License-Identifier: Apache-2.0
#include "project/package_reader.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"

#include <fmt/format.h>

using namespace kb;
using namespace kb::project;
using kb::test::TempDir;
using kb::test::write_text;

namespace {

const std::string kLarge(kClaimedBytes, 'x');

/// A variant whose metadata claims digests of a large and a small file.
struct Variant {
    explicit Variant(const std::string& claimed_large) {
        write_text(dir / "torch-cpu/large.bin", kLarge);
        write_text(dir / "torch-cpu/small.py", "pass\n");
        write_text(dir / "torch-cpu/metadata.json",
                   fmt::format(R"({{"name":"relu","id":"_relu_1","version":1,"license":"MIT",)"
                               R"("python-depends":[],"backend":{{"type":"cpu"}},"digest":)"
                               R"({{"algorithm":"sha256","files":{{"large.bin":"{}",)"
                               R"("small.py":"{}"}}}}}})",
                               claimed_large,
                               digest::sha256("other").base64()));
    }

    [[nodiscard]] PackageReader reader() const {
        return {sys::real_file_system(),
                sys::real_clock(),
                HashCache::open(sys::real_file_system(), dir / "hashes"),
                2};
    }

    [[nodiscard]] static digest::Digest of(const package::Package& package, const char* name) {
        for (const package::FileEntry& file : package.files) {
            if (file.path.text() == name) {
                return file.sha256;
            }
        }
        return {};
    }

    TempDir dir;
    VariantDir directory{.name = "torch-cpu", .path = dir / "torch-cpu"};
};

} // namespace

TEST_CASE("a large file is taken at its word until it is checked", "[project][reader]") {
    const digest::Digest other = digest::sha256("something else");
    const Variant variant{other.base64()};
    PackageReader reader = variant.reader();
    auto packages = reader.read(std::span{&variant.directory, 1}, Trust::claims);
    REQUIRE(packages.has_value());
    CHECK(Variant::of(packages->front(), "large.bin") == other);
    // A small one never is.
    CHECK(Variant::of(packages->front(), "small.py") == digest::sha256("pass\n"));
    const auto as_claimed = reader.check_claims(*packages);
    REQUIRE(as_claimed.has_value());
    CHECK_FALSE(*as_claimed);
    CHECK(Variant::of(packages->front(), "large.bin") == digest::sha256(kLarge));
}

TEST_CASE("a true claim is confirmed", "[project][reader]") {
    const Variant variant{digest::sha256(kLarge).base64()};
    PackageReader reader = variant.reader();
    auto packages = reader.read(std::span{&variant.directory, 1}, Trust::claims);
    REQUIRE(packages.has_value());
    const auto as_claimed = reader.check_claims(*packages);
    REQUIRE(as_claimed.has_value());
    CHECK(*as_claimed);
    CHECK(Variant::of(packages->front(), "large.bin") == digest::sha256(kLarge));
}

TEST_CASE("without trust, and for a claim that is no digest, the file is hashed at once",
          "[project][reader]") {
    const std::string claim =
        GENERATE(digest::sha256("something else").base64(), std::string{"bm8gZGlnZXN0"});
    const Variant variant{claim};
    PackageReader reader = variant.reader();
    const Trust trust = claim == "bm8gZGlnZXN0" ? Trust::claims : Trust::nothing;
    const auto packages = reader.read(std::span{&variant.directory, 1}, trust);
    REQUIRE(packages.has_value());
    CHECK(Variant::of(packages->front(), "large.bin") == digest::sha256(kLarge));
}
