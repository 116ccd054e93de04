// SPDX-License-Identifier: Apache-2.0
#include "registry/auth.hpp"

#include "support/catch.hpp"

namespace kb::registry {

namespace {

hub::RepoId repo() {
    return hub::RepoId::parse(hub::RepoType::kernels, "acme/relu").value();
}

} // namespace

TEST_CASE("who may read, write and delete is one table", "[registry][auth]") {
    using V = hub::Visibility;

    struct Row {
        const char* name;
        Caller caller;
        bool reads_public;
        bool reads_private;
        bool writes;
        bool owns;
    };

    const Row row = GENERATE(values<Row>(
        {{"nobody", {}, true, false, false, false},
         {"another user", {.user = "bob", .scope = Scope::write}, true, false, false, false},
         {"another admin of his own",
          {.user = "bob", .scope = Scope::admin, .namespaces = {"bob"}},
          true,
          false,
          false,
          false},
         {"the owner, read", {.user = "acme", .scope = Scope::read}, true, true, false, false},
         {"the owner, write", {.user = "acme", .scope = Scope::write}, true, true, true, true},
         {"a member, read",
          {.user = "bob", .scope = Scope::read, .namespaces = {"acme"}},
          true,
          true,
          false,
          false},
         {"a member, write",
          {.user = "bob", .scope = Scope::write, .namespaces = {"acme"}},
          true,
          true,
          true,
          false},
         {"a member, admin",
          {.user = "bob", .scope = Scope::admin, .namespaces = {"acme"}},
          true,
          true,
          true,
          true},
         {"the admin of all", {.user = "root", .scope = Scope::admin}, true, true, true, true}}));
    INFO(row.name);
    CHECK(may_read(row.caller, repo(), V::public_, AnonymousRead::yes) == row.reads_public);
    CHECK(may_read(row.caller, repo(), V::private_, AnonymousRead::yes) == row.reads_private);
    CHECK(may_read(row.caller, repo(), V::public_, AnonymousRead::no) ==
          !row.caller.is_anonymous());
    CHECK(may_write(row.caller, "acme") == row.writes);
    CHECK(may_own(row.caller, "acme") == row.owns);
}

TEST_CASE("tokens are found in Bearer and Basic", "[registry][auth]") {
    CHECK(token_of("Bearer hf_x") == "hf_x");
    CHECK(token_of("bearer  hf_x ") == "hf_x");
    CHECK(token_of("Basic dXNlcjpoZl94") == "hf_x"); // user:hf_x
    const std::string bad = GENERATE(
        "", "Bearer", "Bearer ", "hf_x", "Basic dXNlcjo=", "Basic !", "Basic dXNlcg==", "Digest x");
    INFO(bad);
    CHECK_FALSE(token_of(bad).has_value());
}

TEST_CASE("tokens are long, different and kept as a hash", "[registry][auth]") {
    const std::string token = make_token();
    CHECK(token.starts_with("hf_"));
    CHECK(token.size() == 67);
    CHECK(token != make_token());
    CHECK(token_hash(token).hex().find(token.substr(3, 8)) == std::string::npos);
}

TEST_CASE("scopes are spelt as on the command line", "[registry][auth]") {
    for (const Scope scope : {Scope::read, Scope::write, Scope::admin}) {
        CHECK(parse_scope(to_text(scope)) == scope);
    }
    CHECK_FALSE(parse_scope("owner").has_value());
}

TEST_CASE("a hidden repository and a missing one look alike", "[registry][auth]") {
    CHECK(repo_not_found({}).http == 401);
    CHECK(repo_not_found({.user = "bob"}).http == 404);
    CHECK(repo_not_found({}).code == hub::HubErrorCode::RepoNotFound);
    CHECK(forbidden({}).http == 401);
    CHECK(forbidden({.user = "bob"}).http == 403);
}

} // namespace kb::registry
