// SPDX-License-Identifier: Apache-2.0
#include "config/project_settings.hpp"

#include "document/toml.hpp"
#include "support/catch.hpp"

namespace kb::config {

namespace {

struct Outcome {
    std::optional<ProjectSettings> settings{};
    std::string text{};
};

Outcome read(std::string_view toml) {
    Diagnostics diagnostics;
    const auto root = document::parse_toml(toml, {"kernel-builder.toml"}, diagnostics);
    REQUIRE(root);
    Outcome out{.settings = read_project_settings(*root, diagnostics)};
    for (const Diagnostic& item : diagnostics.items()) {
        out.text += to_text(item);
    }
    return out;
}

} // namespace

TEST_CASE("kernel-builder.toml says whether a kernel is experimental", "[config][settings]") {
    const Outcome yes = read("schema = \"kernel-builder/project/1\"\nexperimental = true\n");
    CHECK(yes.settings == ProjectSettings{.experimental = true});
    CHECK(yes.text.empty());
    CHECK(read("schema = \"kernel-builder/project/1\"\n").settings == ProjectSettings{});
}

TEST_CASE("what kernel-builder.toml says in vain is an error", "[config][settings]") {
    const auto [toml, message] = GENERATE(table<std::string_view, std::string_view>({
        {"experimental = true\n", "schema"},
        {"schema = \"kernel-builder/project/2\"\n", "kernel-builder.toml:1:10: error:"},
        {"schema = \"kernel-builder/project/1\"\nexperimental = \"yes\"\n", "[wrong-type]"},
        {"schema = \"kernel-builder/project/1\"\nexperimetal = true\n",
         "did you mean 'experimental'?"},
    }));
    const Outcome outcome = read(toml);
    CHECK_FALSE(outcome.settings);
    INFO(outcome.text);
    CHECK(outcome.text.find(message) != std::string::npos);
}

} // namespace kb::config
