// SPDX-License-Identifier: Apache-2.0
#include "architecture/source_tree.hpp"
#include "base/text.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

namespace kb::test {
namespace {

/// What a header must include itself: another library's headers happen to bring it, or do not.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kOwners{
    {{"int8_t", "cstdint"},
     {"int16_t", "cstdint"},
     {"int32_t", "cstdint"},
     {"int64_t", "cstdint"},
     {"array<", "array"},
     {"function<", "functional"},
     {"map<", "map"},
     {"optional<", "optional"},
     {"set<", "set"},
     {"span<", "span"},
     {"string ", "string"},
     {"string_view", "string_view"},
     {"unique_ptr<", "memory"},
     {"vector<", "vector"}}};

/// "std::" or "std::u" before the name, outside comments.
bool names(const SourceFile& file, std::string_view name) {
    return std::ranges::any_of(file.lines, [name](std::string_view line) {
        const std::string_view code = line.substr(0, line.find("//"));
        return code.find("std::" + std::string{name}) != std::string_view::npos ||
               code.find("std::u" + std::string{name}) != std::string_view::npos;
    });
}

std::vector<std::string> missing_includes(const SourceFile& file) {
    std::vector<std::string> out;
    for (const auto& [name, header] : kOwners) {
        const std::string line = "#include <" + std::string{header} + ">";
        if (file.is_header && names(file, name) &&
            std::ranges::find(file.lines, line) == file.lines.end()) {
            out.push_back(shown(file) + ": names std::" + std::string{name} + " without " + line);
        }
    }
    return out;
}

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
        std::ranges::move(breaches_of(file), std::back_inserter(breaches));
        std::ranges::move(missing_includes(file), std::back_inserter(breaches));
    }
    INFO(join(breaches, "\n"));
    CHECK(breaches.empty());
}

TEST_CASE("the check sees a missing licence, missing braces and an excluded feature", "[style]") {
    const SourceFile bad{.path = source_dir() / "src/x.cpp",
                         .module = "x",
                         .lines = {"int a;", "    if (a) b = 1;", "auto y = dynamic_cast<T*>(x);"}};
    CHECK(breaches_of(bad).size() == 3);
    const SourceFile header{
        .path = source_dir() / "src/x.hpp",
        .module = "x",
        .lines = {"#include <vector>", "std::vector<std::uint8_t> a; // std::map<"},
        .is_header = true};
    CHECK(missing_includes(header).size() == 1);
}

} // namespace
} // namespace kb::test
