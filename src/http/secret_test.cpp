// SPDX-License-Identifier: Apache-2.0
#include "http/secret.hpp"

#include "support/catch.hpp"

#include <fmt/format.h>

#include <concepts>
#include <sstream>

using kb::http::Secret;

namespace {

template <typename T>
concept Streamable = requires(std::ostream& out, const T& value) {
    out << value;
};

} // namespace

TEST_CASE("nothing prints, streams or compares a secret", "[http][secret]") {
    STATIC_REQUIRE_FALSE(fmt::is_formattable<Secret>::value);
    STATIC_REQUIRE_FALSE(Streamable<Secret>);
    STATIC_REQUIRE_FALSE(std::equality_comparable<Secret>);
    STATIC_REQUIRE_FALSE(std::convertible_to<Secret, std::string>);
}

TEST_CASE("a moved secret leaves nothing behind", "[http][secret]") {
    Secret first{"hf_x"};
    const Secret second = std::move(first);
    CHECK(second.reveal() == "hf_x");
    CHECK(
        first.empty()); // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move): the point
}

TEST_CASE("assignment replaces the text and survives itself", "[http][secret]") {
    Secret a{"one"};
    const Secret b{"another one, longer than a short string"};
    a = b;
    CHECK(a.reveal() == b.reveal());
    const Secret& same = a;
    a = same;
    CHECK(a.reveal() == b.reveal());
}

TEST_CASE("a text that echoes the secret is cleaned", "[http][secret]") {
    const Secret token{"hf_abc"};
    CHECK(kb::http::without_secret("bad token hf_abc (hf_abc)", token) == "bad token *** (***)");
    CHECK(kb::http::without_secret("bad token", Secret{}) == "bad token");
}
