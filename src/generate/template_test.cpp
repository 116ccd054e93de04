// SPDX-License-Identifier: Apache-2.0
#include "generate/template.hpp"

#include "support/catch.hpp"

namespace kb::generate {

namespace {

const Values kValues{{"name", "relu"},
                     {"empty", ""},
                     {"yes", true},
                     {"no", false},
                     {"list", std::vector<std::string>{"a", "b"}},
                     {"none", std::vector<std::string>{}}};

std::string rendered(std::string_view text) {
    Diagnostics diagnostics;
    const auto out = render(text, kValues, {"CARD.md"}, diagnostics);
    for (const Diagnostic& d : diagnostics.items()) {
        return to_text(d);
    }
    REQUIRE(out);
    return *out;
}

} // namespace

TEST_CASE("templates are filled", "[generate][template]") {
    const auto [text, expected] = GENERATE(table<std::string, std::string>({
        {"", ""},
        {"no tags { } {x} %}", "no tags { } {x} %}"},
        {"<{{ name }}> <{{name}}> <{{ \"x y\" }}>", "<relu> <relu> <x y>"},
        {"{{ unknown }}|{{ list }}|{{ yes }}", "|a, b|true"},
        {"{{ name | upper }} {{ list | length }} {{ list | join(\"; \") }}", "RELU 2 a; b"},
        {"{{ unknown | default(\"d\") | upper }} {{ name | default('d') }}", "D relu"},
        {"{# gone #}\nx", "x"},
        {"{% if yes %}\nA\n{% else %}\nB\n{% endif %}\nC", "A\nC"},
        {"{% if no %}A{% elif name %}B{% else %}C{% endif %}", "B"},
        {"{% if no %}A{% elif empty %}B{% else %}C{% endif %}", "C"},
        {"{% if not no and yes %}1{% endif %}{% if no or none %}2{% endif %}", "1"},
        {"{% if no and yes or yes %}1{% endif %}", "1"},
        {"{% if name == \"relu\" %}1{% endif %}{% if name != 'relu' %}2{% endif %}", "1"},
        {"{% if name == \"a or b\" %}1{% else %}2{% endif %}", "2"},
        {"{% if unknown is defined %}1{% endif %}{% if name is defined %}2{% endif %}", "2"},
        {"{% if unknown is not defined %}1{% endif %}", "1"},
        {"{% for x in list %}\n- {{ x }}\n{% endfor %}\n.", "- a\n- b\n."},
        {"{% for x in none %}x{% endfor %}{% for x in unknown %}y{% endfor %}.", "."},
        {"{% for x in list %}{% for y in list %}{{ x }}{{ y }} {% endfor %}{% endfor %}",
         "aa ab ba bb "},
        {"{% for x in list %}{% if x == \"b\" %}{{ x }}{% endif %}{% endfor %}", "b"},
        {"{% if no %}{% for x in list %}{% if yes %}1{% endif %}{% endfor %}{% endif %}2", "2"},
        {"a\r\n{% if yes %}\r\nb\r\n{% endif %}\r\n", "a\r\nb\r\n"},
    }));
    CAPTURE(text);
    CHECK(rendered(text) == expected);
}

TEST_CASE("a mistake in a template is shown with its place", "[generate][template]") {
    const auto [text, expected] = GENERATE(table<std::string, std::string>({
        {"a\n{{ name ", "CARD.md:2:1: error: '{{' is not closed by '}}' [template-syntax]\n"},
        {"x {% if yes %}y",
         "CARD.md:1:16: error: a block is not closed, 'endif' is missing [template-syntax]\n"},
        {"{% endfor %}",
         "CARD.md:1:1: error: 'endfor' is not expected here [template-syntax]\n"
         "note: known blocks are 'if', 'elif', 'else', 'endif', 'for' and 'endfor'\n"},
        {"{% if yes %}{% endfor %}{% endif %}",
         "CARD.md:1:13: error: 'endfor' is not expected here [template-syntax]\n"
         "note: known blocks are 'if', 'elif', 'else', 'endif', 'for' and 'endfor'\n"},
        {"{% if yes %}{% else %}{% else %}{% endif %}",
         "CARD.md:1:23: error: only 'endif' may follow the branch of 'else' [template-syntax]\n"},
        {"{{ name | uper }}",
         "CARD.md:1:1: error: 'uper' is not a filter [template-syntax]\n"
         "note: did you mean 'upper'?\n"},
        {"{{ name + 1 }}",
         "CARD.md:1:1: error: 'name + 1' is neither a name nor a string [template-syntax]\n"
         "note: supported are names, strings and the filters 'lower', 'upper', 'length', 'join' "
         "and 'default'\n"},
        {"{% for x %}{% endfor %}",
         "CARD.md:1:1: error: a loop reads 'for NAME in LIST' [template-syntax]\n"},
    }));
    CAPTURE(text);
    CHECK(rendered(text) == expected);
}

TEST_CASE("an unclosed nest of blocks ends", "[generate][template]") {
    std::string text;
    for (int i = 0; i < 30; ++i) {
        text += "{% if yes %}";
    }
    CHECK(rendered(text).find("'endif' is missing") != std::string::npos);
}

TEST_CASE("a hostile card ends soon", "[generate][template]") {
    const auto repeated = [](std::string_view text, std::size_t times) {
        std::string out;
        for (std::size_t i = 0; i < times; ++i) {
            out += text;
        }
        return out;
    };
    const std::string nested_loops =
        repeated("{% for x in list %}", 30) + "x" + repeated("{% endfor %}", 30);
    CHECK(rendered(nested_loops).contains("the template is too large"));
    const std::string deep = repeated("{% if yes %}", 20000) + repeated("{% endif %}", 20000);
    CHECK(rendered(deep).contains("the template is too large"));
    CHECK(rendered("{% if " + repeated("yes or ", 20000) + "yes %}{% endif %}")
              .contains("longer than 4096 bytes"));
    CHECK(rendered(repeated("{% if yes %}", 30) + "x" + repeated("{% endif %}", 30)) == "x");
}

} // namespace kb::generate
