// SPDX-License-Identifier: Apache-2.0
#include "generate/card.hpp"

#include "support/catch.hpp"

namespace kb::generate {

using Names = std::vector<std::string>;

TEST_CASE("__all__ is read as Python would", "[generate][card]") {
    const auto [text, expected] = GENERATE(table<std::string, Names>({
        {"", {}},
        {"__all__ = [\"relu\", 'layers']\n", {"relu", "layers"}},
        {"__all__ = [\n    \"a\",  # \"not this\"\n    \"b\",\n]\n", {"a", "b"}},
        {"\"\"\"doc\n__all__ = [\"no\"]\n\"\"\"\n__all__ = ['yes']", {"yes"}},
        {"if x:\n    __all__ = [\"no\"]\n__all__=[r\"yes\"]\n", {"yes"}},
        {"__all__ += [\"no\"]\n", {}},
        {"__all__ = (\"no\",)\n", {}},
        {"__all__: list = [\"no\"]\n", {}},
        {"x = __all__\n__all__ = [\"a\"]\n__all__ = [\"b\"]\n", {"a"}},
        {"f(\n__all__ = [\"no\"])\n__all__ = [\"yes\"]\n", {"yes"}},
        {"s = 'it\\'s' # __all__\n__all__ = [f\"a\", name]\n", {"a"}},
        {"__all__ = [\"unclosed\"", {"unclosed"}},
        {"s = '''unclosed", {}},
    }));
    CAPTURE(text);
    CHECK(exported_names(text) == expected);
}

TEST_CASE("classes at the top level are found", "[generate][card]") {
    CHECK(top_level_classes("import x\nclass A(nn.Module):\n    class Inner: pass\n\n"
                            "def f():\n    class B: pass\n\nclass C: pass\n# class D:\n"
                            "s = \"\"\"\nclass E:\n\"\"\"\n@decorated\nclass F:\n  pass\n") ==
          Names{"A", "C", "F"});
}

TEST_CASE("a card is filled from build.toml and the package", "[generate][card]") {
    config::Config config;
    config.version.value = 3;
    config.license.value = "Apache-2.0";
    config.hub.repo_id = document::Located<std::string>{"org/relu", {}};
    Diagnostics diagnostics;
    const CardInput input{.config = config,
                          .card =
                              "# {{ repo_id }} v{{ version }} ({{ license }})\n"
                              "{% for f in functions %}\n- {{ f }}\n{% endfor %}\n"
                              "{% if layers %}\nLayers: {{ layers | join(\", \") }}\n{% endif %}\n"
                              "{% if has_benchmark %}\nbench\n{% endif %}\n"
                              "{% if upstream %}\nfrom {{ upstream }}\n{% endif %}\n",
                          .card_name = "CARD.md",
                          .package_init = "__all__ = ['layers', 'relu', 'gelu']",
                          .layers = "class ReLU: ...\n",
                          .has_benchmark = true};
    const auto card = render_card(input, diagnostics);
    REQUIRE(card);
    CHECK(*card == "# org/relu v3 (apache-2.0)\n- relu\n- gelu\nLayers: ReLU\nbench\n");
}

TEST_CASE("a card needs the repository's name", "[generate][card]") {
    config::Config config;
    config.span.file = "build.toml";
    Diagnostics diagnostics;
    const CardInput input{.config = config, .card = "x", .card_name = "CARD.md"};
    CHECK_FALSE(render_card(input, diagnostics));
    REQUIRE(diagnostics.items().size() == 1);
    CHECK(to_text(diagnostics.items()[0]) ==
          "build.toml: error: the card needs the repository's name [missing-repo-id]\n"
          "note: add 'repo-id = \"OWNER/NAME\"' to [general.hub]\n");
}

} // namespace kb::generate
