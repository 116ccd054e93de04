// SPDX-License-Identifier: Apache-2.0
#include "registry/routes.hpp"

#include "support/catch.hpp"

namespace kb::registry {

namespace {

const RouteMatch* match(const RouteVerdict& verdict) {
    return std::get_if<RouteMatch>(&verdict);
}

} // namespace

TEST_CASE("paths are split before they are decoded", "[registry][routes]") {
    using Row = std::tuple<std::string, std::string, Action, std::string, std::string, std::string>;
    const auto [method, path, action, repo, rev, rest] =
        GENERATE(table<std::string, std::string, Action, std::string, std::string, std::string>(
            {Row{"GET", "/api/kernels/a/b", Action::repo_info, "a/b", "", ""},
             Row{"HEAD", "/api/kernels/a/b/revision/main", Action::repo_info, "a/b", "main", ""},
             Row{"GET",
                 "/api/kernels/a/b/tree/refs%2Fheads%2Fv1/build",
                 Action::tree,
                 "a/b",
                 "refs/heads/v1",
                 "build"},
             Row{"GET",
                 "/api/kernels/a/b/tree/v1/build%2Ftorch-cpu",
                 Action::tree,
                 "a/b",
                 "v1",
                 "build/torch-cpu"},
             Row{"GET",
                 "/api/models/a/b/tree/v1/build/torch-cpu",
                 Action::tree,
                 "a/b",
                 "v1",
                 "build/torch-cpu"},
             Row{"HEAD", "/kernels/a/b/resolve/v1/x%20y/z", Action::resolve, "a/b", "v1", "x y/z"},
             Row{"GET", "/a/b/resolve/v1/x", Action::resolve, "a/b", "v1", "x"},
             Row{"POST",
                 "/datasets/a/b.git/info/lfs/objects/batch",
                 Action::lfs_batch,
                 "a/b",
                 "",
                 ""},
             Row{"POST",
                 "/api/spaces/a/b/commit/refs%2Fpr%2F1",
                 Action::commit,
                 "a/b",
                 "refs/pr/1",
                 ""}}));
    INFO(path);
    const RouteVerdict verdict = find_route(method, path);
    const RouteMatch* found = match(verdict);
    REQUIRE(found != nullptr);
    CHECK(found->row->action == action);
    REQUIRE(found->repo.has_value());
    CHECK(found->repo->text() == repo);
    CHECK(parameter(found->parameters, "rev") == rev);
    CHECK(parameter(found->parameters, "path") == rest);
}

TEST_CASE("addresses that are none match nothing", "[registry][routes]") {
    const std::string path = GENERATE("",
                                      "//",
                                      "/api",
                                      "/api/wheels/a/b/refs",
                                      "/api/kernel/a/b/refs",
                                      "/api/kernels/a",
                                      "/api/kernels/a/b/",
                                      "/api/kernels/a%2Fb/c/refs",
                                      "/api/kernels/../b/refs",
                                      "/api/kernels/a/b.git/refs",
                                      "/kernels/a/b/resolve/main",
                                      "/a/b/resolve/%zz/x",
                                      "/api/kernels/a/b/revision/%",
                                      "/api/kernels/a/b/revision/%00",
                                      "/kernels/a/b/resolve/main/");
    INFO(path);
    CHECK(std::holds_alternative<NoRoute>(find_route("GET", path)));
}

TEST_CASE("a known address with another method says which", "[registry][routes]") {
    CHECK(std::get<WrongMethod>(find_route("POST", "/api/kernels/a/b/refs")).allow == "GET, HEAD");
    CHECK(std::get<WrongMethod>(find_route("GET", "/api/kernels/a/b/branch/x")).allow ==
          "POST, DELETE");
    CHECK(std::get<WrongMethod>(find_route("OPTIONS", "/health")).allow == "GET, HEAD");
}

TEST_CASE("every route that changes a repository needs the right to write", "[registry][routes]") {
    for (const RouteRow& row : routes()) {
        INFO(row.pattern);
        const bool is_read_by_post =
            row.action == Action::paths_info || row.action == Action::lfs_batch;
        if (row.area != Area::root && row.method != "GET" && !is_read_by_post) {
            CHECK((row.right == Right::write || row.right == Right::own));
        }
        if (row.area != Area::root) {
            CHECK(row.right >= Right::read);
        }
    }
}

TEST_CASE("forms are decoded", "[registry][routes]") {
    const Parameters form = parse_form("a=1&b=x+y%2Bz&a=2&c&=d&e=%zz");
    CHECK(parameter(form, "a") == "1");
    CHECK(parameter(form, "b") == "x y+z");
    CHECK(parameter(form, "c").empty());
    CHECK(parameter(form, "e").empty());
    CHECK(form.size() == 4);
    CHECK(parse_form("").empty());
}

} // namespace kb::registry
