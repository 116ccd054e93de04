// SPDX-License-Identifier: Apache-2.0
#include "architecture/source_tree.hpp"
#include "base/text.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <algorithm>
#include <set>

namespace kb::test {
namespace {

/// Ids in calls such as `diagnostics.error("unknown-key", ...)`: the literal that opens the
/// arguments.
std::set<std::string> ids_in(const std::string& text) {
    std::set<std::string> out;
    for (const std::string_view call : {"error(", "warning(", "warn(", "problem("}) {
        for (std::size_t at = text.find(call); at != std::string::npos;
             at = text.find(call, at + 1)) {
            const std::size_t quote = text.find_first_not_of(" \n", at + call.size());
            if (quote == std::string::npos || text[quote] != '"') {
                continue;
            }
            const std::string id = text.substr(quote + 1, text.find('"', quote + 1) - quote - 1);
            const std::size_t after = quote + id.size() + 2;
            const bool is_word =
                !id.empty() &&
                id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
            if (is_word && after < text.size() && text[after] == ',') {
                out.insert(id);
            }
        }
    }
    return out;
}

TEST_CASE("docs/diagnostics.md lists every id of the code", "[docs]") {
    const std::string page = read_text(source_dir() / "docs/diagnostics.md");
    std::vector<std::string> missing;
    for (const SourceFile& file : sources()) {
        if (file.is_test) {
            continue;
        }
        for (const std::string& id : ids_in(join(file.lines, "\n"))) {
            if (page.find("`" + id + "`") == std::string::npos) {
                missing.push_back(shown(file) + ": " + id);
            }
        }
    }
    INFO(join(missing, "\n"));
    CHECK(missing.empty());
}

TEST_CASE("the search for ids sees one on the next line and leaves messages alone", "[docs]") {
    CHECK(
        ids_in(
            "d.error(\n    \"some-id\", span, \"text\");\nerr.error(\"a message, with words\");") ==
        std::set<std::string>{"some-id"});
}

TEST_CASE("the README shows both commands, and what it links to exists", "[docs]") {
    const std::string readme = read_text(source_dir() / "README.md");
    CHECK(readme.find("scripts/quickstart") != std::string::npos);
    CHECK(readme.find("scripts/test") != std::string::npos);
    for (std::size_t at = readme.find("]("); at != std::string::npos;
         at = readme.find("](", at + 1)) {
        const std::string target = readme.substr(at + 2, readme.find(')', at) - at - 2);
        CAPTURE(target);
        if (target.find("://") == std::string::npos) {
            CHECK(std::filesystem::exists(source_dir() / target));
        }
    }
}

} // namespace
} // namespace kb::test
