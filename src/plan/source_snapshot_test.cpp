// SPDX-License-Identifier: Apache-2.0
#include "plan/source_snapshot.hpp"

#include "plan/include_graph.hpp"
#include "plan/test_world.hpp"
#include "support/catch.hpp"

#include <string>
#include <vector>

namespace kb::plan {

namespace {

std::string includes_of(std::string_view text) {
    std::string all;
    for (const Include& include : scan_source(RelPath::literal("a.cpp"), text).includes) {
        switch (include.form) {
        case IncludeForm::quoted:
            all += '"' + include.path + "\" ";
            break;
        case IncludeForm::angled:
            all += '<' + include.path + "> ";
            break;
        case IncludeForm::computed:
            all += include.path + ' ';
            break;
        }
    }
    return all;
}

} // namespace

TEST_CASE("include directives are found, and nothing else", "[plan][snapshot]") {
    const auto [text, expected] = GENERATE(table<std::string, std::string>({
        {"#include <a.h>\n", "<a.h> "},
        {"  #  include \"a/b.h\"", "\"a/b.h\" "},
        {"#include<a.h>\n#include<a.h>\n", "<a.h> "},
        {"#import \"a.h\"\n#include_next <b.h>\n", "\"a.h\" <b.h> "},
        {"#if 0\n#include <a.h>\n#endif\n", "<a.h> "},
        {"#include CONFIG_HEADER\n", "CONFIG_HEADER "},
        {"// #include <a.h>\n", ""},
        {"// spliced \\\n#include <a.h>\n", ""},
        {"/* #include <a.h>\n#include <b.h> */ #include <c.h>\n", "<c.h> "},
        {"int x; #include <a.h>\n", ""},
        {"const char* s = \"\\\"\\n#include <a.h>\";\n#include <b.h>\n", "<b.h> "},
        {"auto s = R\"x(\n#include <a.h>\n)\" )x\";\n#include <b.h>\n", "<b.h> "},
        {"int n = 1'000'000;\n#include <a.h>\n", "<a.h> "},
        {"char c = '\"';\n#include <a.h>\n", "<a.h> "},
        {"char c = '\\'';\n#include <a.h>\n", "<a.h> "},
        {"#include \\\n <a.h>\n", "<a.h> "},
        {"\r\n#include <a.h>\r\n", "<a.h> "},
        {"#include <a.h", ""},
        {"#include", ""},
        {"#define X #include <a.h>\n", ""},
        {"\"unterminated\n#include <a.h>\n", "<a.h> "},
        {"R\"(never closed", ""},
        {"/* never closed", ""},
    }));
    CAPTURE(text);
    CHECK(includes_of(text) == expected);
}

TEST_CASE("a source says whether it names the ops id", "[plan][snapshot]") {
    const RelPath path = RelPath::literal("a.cpp");
    CHECK(scan_source(path, "f(TORCH_EXTENSION_NAME)").names_ops);
    CHECK(scan_source(path, "f(TVM_FFI_EXTENSION_NAME)").names_ops);
    CHECK_FALSE(scan_source(path, "f(EXTENSION)").names_ops);
    CHECK(scan_source(path, "x").sha256 == digest::sha256("x"));
}

TEST_CASE("needs are found through the headers of the project", "[plan][snapshot]") {
    const SourceSnapshot snapshot = test::snapshot_of({
        {"a/plain.cpp", "#include \"plain.h\"\n#include <vector>\n"},
        {"a/plain.h", "#include \"../b/deep.h\"\n"},
        {"b/deep.h", "#include \"deep.h\"\n"},
        {"a/torch.cpp", "#include <wrap.h>\n"},
        {"inc/wrap.h", "#include <c10/util/Half.h>\n"},
        {"a/python.cpp", "#include <Python.h>\n"},
        {"a/ops.cpp", "#include \"ops.h\"\n"},
        {"a/ops.h", "TORCH_EXTENSION_NAME"},
        {"a/computed.cpp", "#include WHICH\n"},
    });
    const IncludeGraph graph{snapshot};
    const auto reach = [&](std::string_view path) {
        return graph.reach(*graph.find(path), {"inc"});
    };
    const Reach plain = reach("a/plain.cpp");
    CHECK_FALSE(plain.torch);
    CHECK_FALSE(plain.ops);
    REQUIRE(plain.headers.size() == 2);
    CHECK(plain.headers[0]->path.text() == "a/plain.h");
    CHECK(plain.headers[1]->path.text() == "b/deep.h");
    CHECK(reach("a/torch.cpp").torch);
    CHECK(reach("a/python.cpp").python);
    CHECK_FALSE(reach("a/python.cpp").torch);
    CHECK(reach("a/ops.cpp").ops);
    // Without its include folder the header is not the project's.
    CHECK_FALSE(graph.reach(*graph.find("a/torch.cpp"), {}).torch);
    // Nobody knows what a macro includes: every header, and everything that headers may need.
    const Reach computed = reach("a/computed.cpp");
    CHECK(computed.torch);
    CHECK(computed.ops);
    CHECK(computed.headers.size() == 4);
}

} // namespace kb::plan
