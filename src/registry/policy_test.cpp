// SPDX-License-Identifier: Apache-2.0
// What a registry allows beyond rights: published versions, release tags, names that moved, rates.
#include "registry/registry_fixture.hpp"

namespace kb::registry::test {

namespace {

std::string deleted(std::string_view path) {
    return hub::write_line(hub::DeletedFileOp{.path = RelPath::literal(path)});
}

void publish_v1(Fixture& f) {
    f.make_repo();
    REQUIRE(f.commit(Fixture::file("build/old/from-main", "main")).status == 200);
    REQUIRE(f.ask("POST", "/api/kernels/acme/relu/branch/v1", "{}").status == 200);
    // A new version begins as a copy of main; what came along may go with the first commit.
    REQUIRE(f.commit(deleted("build/old/from-main") + Fixture::file("build/torch-cpu/a.py", "one") +
                         Fixture::file("build/torch-cpu/sub/b.py", "two") +
                         Fixture::file("README.md", "r"),
                     "v1")
                .status == 200);
}

} // namespace

TEST_CASE("what a version branch has published stays, new things may come", "[registry][policy]") {
    Fixture f;
    publish_v1(f);
    const std::string head = f.head("v1");
    const std::string changed = Fixture::file("build/torch-cpu/a.py", "other");
    const std::string folder =
        hub::write_line(hub::DeletedFolderOp{.path = RelPath::literal("build/torch-cpu/sub")});
    for (const std::string& lines :
         {changed, deleted("build/torch-cpu/sub/b.py"), folder, deleted("build/torch-cpu/a.py")}) {
        const Asked refused = f.commit(lines, "v1");
        CHECK(refused.status == 403);
        CHECK(refused.header("X-Error-Message").contains("published on 'refs/heads/v1'"));
    }
    CHECK(f.head("v1") == head);
    CHECK(f.commit(Fixture::file("build/torch-cuda/a.py", "new"), "v1").status == 200);
    CHECK(f.commit(Fixture::file("build/torch-cpu/more.py", "new"), "v1").status == 200);
    CHECK(f.commit(Fixture::file("README.md", "changed") + deleted("README.md"), "v1").status ==
          200);
    CHECK(f.commit(Fixture::file("build/torch-cpu/a.py", "one"), "v1").status == 200); // the same
    CHECK(f.ask("DELETE", "/api/kernels/acme/relu/branch/v1").status == 403);
    // An administrator can, and so can anybody on branches that are no versions.
    CHECK(f.commit(changed, "v1", "root").status == 200);
    CHECK(f.commit(Fixture::file("build/old/from-main", "x")).status == 200);
    CHECK(f.ask("DELETE", "/api/kernels/acme/relu/branch/v1", "", "root").status == 200);
}

TEST_CASE("versions can be left free by the settings", "[registry][policy]") {
    Fixture f{{.policy = {.append_only_versions = false, .fixed_release_tags = false}}};
    publish_v1(f);
    CHECK(f.commit(Fixture::file("build/torch-cpu/a.py", "other"), "v1").status == 200);
    REQUIRE(f.ask("POST", "/api/kernels/acme/relu/tag/v1", R"({"tag":"v1.0"})").status == 200);
    CHECK(f.ask("DELETE", "/api/kernels/acme/relu/tag/v1.0").status == 200);
    CHECK(f.ask("DELETE", "/api/kernels/acme/relu/branch/v1").status == 200);
}

TEST_CASE("release tags stay, other tags may go", "[registry][policy]") {
    Fixture f;
    f.make_repo();
    for (const std::string_view tag : {"v1.0", "latest", "vienna"}) {
        REQUIRE(
            f.ask("POST", "/api/kernels/acme/relu/tag/main", fmt::format(R"({{"tag":"{}"}})", tag))
                .status == 200);
    }
    CHECK(f.ask("POST", "/api/kernels/acme/relu/tag/main", R"({"tag":"v1.0"})").status == 409);
    CHECK(f.ask("DELETE", "/api/kernels/acme/relu/tag/v1.0").status == 403);
    CHECK(f.ask("DELETE", "/api/kernels/acme/relu/tag/latest").status == 200);
    CHECK(f.ask("DELETE", "/api/kernels/acme/relu/tag/vienna").status == 200);
    CHECK(f.ask("DELETE", "/api/kernels/acme/relu/tag/v1.0", "", "root").status == 200);
}

TEST_CASE("a moved repository is found under its old name until that is taken",
          "[registry][policy]") {
    Fixture f;
    f.make_repo();
    REQUIRE(f.commit(Fixture::file("a.txt", "hello")).status == 200);
    const auto move = [&](std::string_view from, std::string_view to, std::string_view who) {
        return f
            .ask("POST",
                 "/api/repos/move",
                 fmt::format(R"({{"fromRepo":"{}","toRepo":"{}","type":"kernel"}})", from, to),
                 who)
            .status;
    };
    CHECK(move("acme/relu", "acme/gelu", "reader") == 403);
    CHECK(move("acme/relu", "acme/gelu", "") == 401);
    CHECK(move("acme/relu", "../x", "root") == 400);
    CHECK(move("acme/relu", "api/x", "root") == 400);
    f.make_repo("alice/taken");
    CHECK(move("acme/relu", "Alice/Taken", "root") == 409);
    REQUIRE(move("acme/relu", "acme/gelu", "root") == 200);
    CHECK(f.ask("GET", "/kernels/acme/gelu/resolve/main/a.txt").body == "hello");
    const Asked old = f.ask("GET", "/kernels/acme/relu/resolve/main/a.txt?x=1");
    CHECK(old.status == 307);
    CHECK(old.header("Location") == "/kernels/acme/gelu/resolve/main/a.txt?x=1");
    CHECK(f.ask("GET", "/api/kernels/acme/relu/refs").header("Location") ==
          "/api/kernels/acme/gelu/refs");
    // Once private, the old name tells outsiders nothing.
    REQUIRE(f.ask("PUT", "/api/kernels/acme/gelu/settings", R"({"private":true})", "root").status ==
            200);
    CHECK(f.ask("GET", "/api/kernels/acme/relu", "", "bob").status == 404);
    CHECK(f.ask("GET", "/api/kernels/acme/relu", "", "reader").status == 307);
    f.make_repo(); // the old name is taken
    CHECK(f.ask("GET", "/kernels/acme/relu/resolve/main/a.txt").status == 404);
    CHECK(move("acme/gelu", "acme/gelu", "root") == 200);
}

TEST_CASE("requests over the limit wait a minute", "[registry][policy]") {
    Fixture f{{.rate = {.per_user = 3, .per_address = 2}}};
    const auto ask = [&](std::string_view who) {
        return f.ask("GET", "/api/kernels", "", who);
    };
    CHECK(ask("alice").header("RateLimit") == "\"api\";r=2;t=60");
    f.clock.seconds += 20;
    CHECK(ask("alice").status == 200);
    CHECK(ask("alice").header("RateLimit") == "\"api\";r=0;t=40");
    const Asked refused = ask("alice");
    CHECK(refused.status == 429);
    CHECK(refused.header("Retry-After") == "40");
    CHECK(refused.header("RateLimit-Policy") == "\"fixed window\";\"api\";q=3;w=60");
    // Others have their own count; wrong tokens count for their address.
    CHECK(ask("bob").status == 200);
    CHECK(ask("Bearer hf_wrong").status == 401);
    CHECK(ask("").status == 200);
    CHECK(ask("Bearer hf_wrong").status == 429);
    CHECK(f.ask("GET", "/health", "", "").status == 200); // a probe is never refused
    f.clock.seconds += 40;
    CHECK(ask("alice").status == 200);
}

TEST_CASE("tokens are listed without their secret and end when revoked", "[registry][policy]") {
    Fixture f;
    f.token("extra", {.user = "eve", .scope = Scope::read, .namespaces = {"acme"}, .days = 1});
    CHECK(f.ask("GET", "/api/whoami-v2", "", "extra").status == 200);
    const auto tokens = f.meta().tokens();
    REQUIRE(tokens.has_value());
    REQUIRE(tokens->size() == 5);
    const auto eve = std::ranges::find(*tokens, "eve", &TokenRow::user);
    REQUIRE(eve != tokens->end());
    CHECK(eve->expires == f.clock.seconds + 86'400);
    CHECK(f.meta().remove_token(eve->hash, {.action = "revoke-token"}).value());
    CHECK_FALSE(f.meta().remove_token(eve->hash, {.action = "revoke-token"}).value());
    CHECK(f.ask("GET", "/api/whoami-v2", "", "extra").status == 401);
    CHECK(f.ask("GET", "/api/whoami-v2", "", "alice").status == 200);
}

} // namespace kb::registry::test
