// SPDX-License-Identifier: Apache-2.0
#include "registry/page.hpp"

#include "registry/registry_fixture.hpp"

namespace kb::registry::test {

namespace {

constexpr std::string_view kMetadata =
    R"({"name":"relu","id":"_relu_cuda_1","version":3,"license":"Apache-2.0",)"
    R"("upstream":"https://example.org/<b>relu</b>",)"
    R"("backend":{"type":"cuda","archs":["8.0","9.0a"]},"digest":{"algorithm":"sha256"},)"
    R"("provenance":{"kernel":{"commit":"0123456789012345678901234567890123456789","dirty":true}}})";

void publish(Fixture& f) {
    f.make_repo();
    REQUIRE(f.commit(Fixture::file("README.md",
                                   "---\nlicense: mit\n---\nFast <script>alert(1)</script> relu"))
                .status == 200);
    REQUIRE(f.ask("POST", "/api/kernels/acme/relu/branch/v2", "{}").status == 200);
    REQUIRE(f.ask("POST", "/api/kernels/acme/relu/branch/v10", "{}").status == 200);
    const std::string cuda = "build/torch210-cxx11-cu128-x86_64-linux/";
    REQUIRE(f.commit(Fixture::file(cuda + "metadata.json", kMetadata) +
                         Fixture::file(cuda + "metadata.json.sigstore", "{}") +
                         Fixture::file(cuda + "a.py", std::string(20'000, 'a')) +
                         Fixture::file("build/torch-cpu/metadata.json", "not json") +
                         Fixture::file("build/x'&lt;img/f", "1") + Fixture::file("README.md", ""),
                     "v10")
                .status == 200);
}

} // namespace

TEST_CASE("a kernel's page shows card, variants, files, history and how to load it",
          "[registry][page]") {
    Fixture f;
    publish(f);
    const Asked page = f.ask("GET", "/kernels/acme/relu", "", "");
    REQUIRE(page.status == 200);
    CHECK(page.header("Content-Type") == "text/html; charset=utf-8");
    for (const std::string_view shown :
         {"HF_ENDPOINT=http://reg",
          "get_kernel(&quot;acme/relu&quot;, version=10)",   // the newest, not the last by name
          "Fast &lt;script&gt;alert(1)&lt;/script&gt; relu", // from main
          "torch 2.10",
          "cuda 12.8<br>x86_64-linux",
          "<span class=\"chip\">9.0a</span>",
          "0123456789012345678901234567890123456789 with uncommitted changes",
          "license: Apache-2.0",
          "/kernels/acme/relu/tree/v2",
          "<td>alice</td><td>change</td>"}) {
        INFO(shown);
        CHECK(page.body.contains(shown));
    }
    CHECK(page.body.contains("/kernels/acme/relu/resolve/" + f.head("v10") +
                             "/build/torch210-cxx11-cu128-x86_64-linux/a.py"));
    CHECK_FALSE(page.body.contains("license: mit"));
    const Asked main = f.ask("GET", "/kernels/acme/relu/tree/main", "", "");
    CHECK(main.body.contains("revision=&quot;main&quot;"));
    CHECK_FALSE(main.body.contains("class=\"matrix\""));
    CHECK(f.ask("GET", "/kernels/acme/relu/tree/" + f.head("v10"), "", "").status == 200);
    CHECK(f.ask("GET", "/kernels/acme/relu/tree/nope", "", "").status == 404);
}

TEST_CASE("whatever a publisher wrote, a page holds no markup of his", "[registry][page]") {
    Fixture f;
    publish(f);
    const std::string body = f.ask("GET", "/kernels/acme/relu/tree/v10", "", "").body;
    CHECK_FALSE(body.contains("<script"));
    CHECK_FALSE(body.contains("<b>relu"));
    CHECK(body.contains("x&#39;&amp;lt;img"));
    CHECK_FALSE(body.contains("href=\"https://example.org"));
    const Asked index = f.ask("GET", "/search?q=%22%3E%3Cscript%3E", "", "");
    CHECK_FALSE(index.body.contains("<script"));
    // Should something slip through all the same, the browser runs nothing of it.
    CHECK(index.header("Content-Security-Policy")
              .starts_with("default-src 'none'; style-src 'sha256-"));
    const std::size_t begin = body.find("<style>") + 7;
    const std::string style = body.substr(begin, body.find("</style>") - begin);
    CHECK(index.header("Content-Security-Policy").contains(digest::sha256(style).base64()));
}

TEST_CASE("the index lists and searches what the visitor may see", "[registry][page]") {
    Fixture f;
    f.make_repo();
    f.make_repo("acme/gelu", "private");
    f.make_repo("alice/thing");
    const std::string all = f.ask("GET", "/", "", "").body;
    CHECK(all.contains("href=\"/kernels/acme/relu\""));
    CHECK(all.contains("alice/thing"));
    CHECK_FALSE(all.contains("gelu"));
    CHECK(f.ask("GET", "/", "", "reader").body.contains("gelu"));
    const std::string found = f.ask("GET", "/search?q=RELU", "", "").body;
    CHECK(found.contains("acme/relu"));
    CHECK_FALSE(found.contains("alice/thing"));
    CHECK(f.ask("GET", "/search?q=zzz", "", "").body.contains("Nothing was found"));
    CHECK(f.ask("GET", "/kernels/acme/gelu", "", "").status == 401);
    CHECK(f.ask("GET", "/kernels/acme/gelu", "", "reader").status == 200);
}

} // namespace kb::registry::test
