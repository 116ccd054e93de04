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

TEST_CASE("findings are suppressed with a reason", "[config][settings]") {
    const Outcome outcome = read("schema = \"kernel-builder/project/1\"\n"
                                 "[[suppress]]\ncheck = \"needed\"\nsubject = \"libx.so.1\"\n"
                                 "reason = \"part of every driver\"\n"
                                 "[[suppress]]\ncheck = \"hygiene\"\nlibrary = \"a.so\"\n"
                                 "variant = \"torch-cpu\"\nreason = \"r\"\n");
    INFO(outcome.text);
    REQUIRE(outcome.settings);
    CHECK(outcome.settings->suppressions ==
          std::vector<Suppression>{
              {.check = "needed", .subject = "libx.so.1", .reason = "part of every driver"},
              {.check = "hygiene", .variant = "torch-cpu", .library = "a.so", .reason = "r"}});
}

TEST_CASE("what kernel-builder.toml says in vain is an error", "[config][settings]") {
    const auto [toml, message] = GENERATE(table<std::string_view, std::string_view>({
        {"experimental = true\n", "schema"},
        {"schema = \"kernel-builder/project/2\"\n", "kernel-builder.toml:1:10: error:"},
        {"schema = \"kernel-builder/project/1\"\nexperimental = \"yes\"\n", "[wrong-type]"},
        {"schema = \"kernel-builder/project/1\"\nexperimetal = true\n",
         "did you mean 'experimental'?"},
        {"schema = \"kernel-builder/project/1\"\n[[suppress]]\ncheck = \"needed\"\n", "reason"},
        {"schema = \"kernel-builder/project/1\"\nsuppress = [\"needed\"]\n", "[wrong-type]"},
        {"schema = \"kernel-builder/project/1\"\n[[suppress]]\ncheck = \"needed\"\nreason = \"\"\n",
         "[empty-value]"},
        {"schema = \"kernel-builder/project/1\"\n[[suppress]]\ncheck = \"needed\"\nreason = "
         "\"r\"\nsubjekt = \"x\"\n",
         "did you mean 'subject'?"},
    }));
    const Outcome outcome = read(toml);
    CHECK_FALSE(outcome.settings);
    INFO(outcome.text);
    CHECK(outcome.text.find(message) != std::string::npos);
}

} // namespace kb::config
