// SPDX-License-Identifier: Apache-2.0
#include "architecture/source_tree.hpp"
#include "base/text.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <algorithm>

namespace kb::test {
namespace {

std::vector<std::string> breaches_of(const SourceFile& file) {
    std::vector<std::string> out;
    const auto breach = [&](std::size_t line, std::string_view why) {
        out.push_back(shown(file) + ":" + std::to_string(line + 1) + ": " + std::string{why});
    };
    if (file.lines.empty() || file.lines[0] != "// SPDX-License-Identifier: Apache-2.0") {
        breach(0, "the first line is not the licence line");
    }
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
        const std::string_view line = trim(file.lines[i]);
        const bool opens_branch =
            line.starts_with("if (") || line.starts_with("for (") || line.starts_with("while (");
        // clang-format 14 cannot insert braces, so a branch that ends its line with ';' is found
        // here.
        if (opens_branch && line.ends_with(");") == false && line.ends_with(';') &&
            std::ranges::count(line, '(') == std::ranges::count(line, ')') &&
            line.find('{') == std::string_view::npos) {
            breach(i, "a branch without braces");
        }
        if (line == "else" || (line.starts_with("else ") &&
                               line.find('{') == std::string_view::npos && line.ends_with(';'))) {
            breach(i, "an else without braces");
        }
        if (line.starts_with("using namespace") && file.is_header) {
            breach(i, "using namespace in a header");
        }
        if (line.find("dynamic_cast<") != std::string_view::npos ||
            line.find("std::regex") != std::string_view::npos ||
            line.find("std::expected") != std::string_view::npos ||
            line.find("std::views::") != std::string_view::npos) {
            if (!line.starts_with("//") && !line.starts_with("///")) {
                breach(i,
                       "uses what house rules exclude (dynamic_cast, std::regex, std::expected, "
                       "std::views)");
            }
        }
    }
    return out;
}

TEST_CASE("sources follow the rules that no formatter checks", "[style]") {
    std::vector<std::string> breaches;
    for (const SourceFile& file : sources()) {
        for (std::string& breach : breaches_of(file)) {
            breaches.push_back(std::move(breach));
        }
    }
    INFO(join(breaches, "\n"));
    CHECK(breaches.empty());
}

TEST_CASE("the check sees a missing licence, missing braces and an excluded feature", "[style]") {
    const SourceFile bad{.path = source_dir() / "src/x.cpp",
                         .module = "x",
                         .lines = {"int a;", "    if (a) b = 1;", "auto y = dynamic_cast<T*>(x);"}};
    CHECK(breaches_of(bad).size() == 3);
}

} // namespace
} // namespace kb::test
