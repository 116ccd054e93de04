// SPDX-License-Identifier: Apache-2.0
#include "architecture/source_tree.hpp"
#include "base/text.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <map>

namespace kb::test {
namespace {

/// Files that are longer than the rule, with the length they may have and the reason.
const std::map<std::string, std::size_t>& allowed() {
    static const std::map<std::string, std::size_t> kAllowed = [] {
        std::map<std::string, std::size_t> out;
        const std::string text = read_text(source_dir() / "tests/architecture/sizes.allow");
        for (const std::string_view line : split(text, '\n')) {
            const auto fields = split(line, ' ');
            if (fields.size() >= 3 && !line.starts_with('#')) {
                out.emplace(std::string{fields[0]}, parse_unsigned(fields[1]).value_or(0));
            }
        }
        return out;
    }();
    return kAllowed;
}

TEST_CASE("headers stay below 300 lines, sources below 600", "[sizes]") {
    for (const SourceFile& file : sources()) {
        if (file.is_test) {
            continue;
        }
        const std::string name = shown(file);
        CAPTURE(name);
        const auto exception = allowed().find(name);
        const std::size_t limit =
            exception != allowed().end() ? exception->second : (file.is_header ? 300U : 600U);
        CHECK(file.lines.size() <= limit);
    }
}

TEST_CASE("an exception to the sizes names an existing file that needs it", "[sizes]") {
    for (const auto& [name, limit] : allowed()) {
        CAPTURE(name);
        const auto path = source_dir() / name;
        REQUIRE(std::filesystem::exists(path));
        CHECK(split(read_text(path), '\n').size() > (path.extension() == ".hpp" ? 300U : 600U));
    }
}

} // namespace
} // namespace kb::test
