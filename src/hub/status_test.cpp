// SPDX-License-Identifier: Apache-2.0
#include "hub/status.hpp"

#include "support/catch.hpp"

namespace kb::hub {

TEST_CASE("error codes are spelt as clients compare them", "[hub][status]") {
    CHECK(to_text(HubErrorCode::RepoNotFound) == "RepoNotFound");
    CHECK(to_text(HubErrorCode::RevisionNotFound) == "RevisionNotFound");
    CHECK(to_text(HubErrorCode::EntryNotFound) == "EntryNotFound");
    CHECK(to_text(HubErrorCode::GatedRepo) == "GatedRepo");
    CHECK(parse_error_code("EntryNotFound") == HubErrorCode::EntryNotFound);
    CHECK_FALSE(parse_error_code("entrynotfound").has_value());
}

TEST_CASE("the message of an error comes from where a server put it", "[hub][status]") {
    using Row = std::tuple<std::string, std::string, std::string>;
    const auto [header, body, expected] = GENERATE(table<std::string, std::string, std::string>(
        {Row{"from header", R"({"error":"body"})", "from header"},
         Row{"", R"({"error":"body"})", "body"},
         Row{"", R"({"message":"lfs"})", "lfs"},
         Row{"", R"({"error":["a","b"]})", "a; b"},
         Row{"", R"({"errors":[{"message":"x"},{"message":"y"}]})", "x; y"},
         Row{"", "plain text\n", "plain text"},
         Row{" ", "", ""},
         Row{"a\x1B[31mb", "", "a\\x1b[31mb"}}));
    CHECK(error_message(header, body) == expected);
}

TEST_CASE("a long error text is cut", "[hub][status]") {
    CHECK(error_message("", std::string(5000, 'x')).size() == 500);
}

TEST_CASE("a status reads back what it was written from", "[hub][status]") {
    const HubStatus status{.http = 404, .code = HubErrorCode::EntryNotFound, .message = "no 'x'"};
    CHECK(parse_status(404, "EntryNotFound", "no 'x'", "") == status);
    CHECK(to_json(status).text_or("error") == "no 'x'");
    CHECK_FALSE(parse_status(500, "", "", "").code.has_value());
}

} // namespace kb::hub
