// SPDX-License-Identifier: Apache-2.0
#include "document/markup.hpp"

#include "support/catch.hpp"

namespace kb::document {
namespace {

TEST_CASE("text becomes no markup", "[document][markup]") {
    CHECK(escape_markup("<a b=\"c\">&amp;</a>") == "&lt;a b=&quot;c&quot;&gt;&amp;amp;&lt;/a&gt;");
    CHECK(escape_markup("one\ttwo\nit's é\x1b[0m") == "one\ttwo\nit's é?[0m");
    CHECK(escape_markup("").empty());
}

} // namespace
} // namespace kb::document
