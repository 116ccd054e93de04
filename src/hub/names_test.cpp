// SPDX-License-Identifier: Apache-2.0
#include "hub/percent.hpp"
#include "hub/repo_id.hpp"
#include "hub/revision.hpp"
#include "support/catch.hpp"

namespace kb::hub {

TEST_CASE("repository types have a plural for URLs and a singular for bodies", "[hub][repo_id]") {
    for (const RepoType type : kRepoTypes) {
        CHECK(parse_repo_type(plural(type)) == type);
        CHECK(parse_repo_type(singular(type)) == type);
    }
    CHECK(plural(RepoType::kernels) == "kernels");
    CHECK(singular(RepoType::datasets) == "dataset");
    CHECK_FALSE(parse_repo_type("Kernel").has_value());
    CHECK_FALSE(parse_repo_type("").has_value());
}

TEST_CASE("a repository id keeps owner and name and knows its paths", "[hub][repo_id]") {
    const Result<RepoId> kernel = RepoId::parse(RepoType::kernels, "acme/relu_2.0-x");
    REQUIRE(kernel.has_value());
    CHECK(kernel->owner() == "acme");
    CHECK(kernel->name() == "relu_2.0-x");
    CHECK(kernel->text() == "acme/relu_2.0-x");
    CHECK(kernel->api_path() == "/api/kernels/acme/relu_2.0-x");
    CHECK(kernel->web_path() == "/kernels/acme/relu_2.0-x");
    const Result<RepoId> model = RepoId::parse(RepoType::models, "acme/relu");
    REQUIRE(model.has_value());
    CHECK(model->web_path() == "/acme/relu");
    CHECK(model->api_path() == "/api/models/acme/relu");
}

TEST_CASE("names that a hub refuses are refused", "[hub][repo_id]") {
    const std::string longest(47, 'a');
    CHECK(RepoId::parse(RepoType::kernels, longest + "/" + longest + "x").has_value() == true);
    const std::string text = GENERATE("acme",
                                      "/relu",
                                      "acme/",
                                      "a/b/c",
                                      "acme/-relu",
                                      "acme/relu.",
                                      "acme/re--lu",
                                      "acme/re..lu",
                                      "acme/relu.git",
                                      "acme/re lu",
                                      "acme/r\xC3\xA9lu",
                                      "..",
                                      "../..",
                                      "acme/..",
                                      "acme/re%2flu");
    INFO(text);
    CHECK_FALSE(RepoId::parse(RepoType::kernels, text).has_value());
    CHECK_FALSE(RepoId::parse(RepoType::kernels, std::string(60, 'a') + "/" + std::string(60, 'b'))
                    .has_value());
}

TEST_CASE("revisions are branches, tags, full refs and commits", "[hub][revision]") {
    const std::string commit(40, 'a');
    CHECK(Revision::parse("main")->text() == "main");
    CHECK(Revision::parse("HEAD")->text() == "main");
    CHECK(Revision::parse(commit)->is_commit());
    CHECK_FALSE(Revision::parse("main")->is_commit());
    CHECK(Revision::parse("refs/pr/1")->is_full_ref());
    CHECK(Revision::parse("refs/heads/v1")->encoded() == "refs%2Fheads%2Fv1");
    CHECK(Revision::parse("feature/x")->encoded() == "feature%2Fx");
}

TEST_CASE("revisions that could name something else are refused", "[hub][revision]") {
    const std::string text = GENERATE("",
                                      "-x",
                                      "refs/heads/../../main",
                                      "a b",
                                      "a//b",
                                      "/a",
                                      "a/",
                                      "a..b",
                                      "a.lock",
                                      "a\nb",
                                      "a:b",
                                      "a~1",
                                      "a^",
                                      "a@{1}",
                                      "@",
                                      "a\\b",
                                      "\xFF",
                                      ".a",
                                      "a/.b",
                                      "<script>");
    INFO(text);
    CHECK_FALSE(Revision::parse(text).has_value());
    CHECK_FALSE(RefName::branch(text).has_value());
    CHECK_FALSE(Revision::parse(std::string(201, 'a')).has_value());
}

TEST_CASE("a branch may not look like a commit or a full ref", "[hub][revision]") {
    const std::string text =
        GENERATE(std::string(40, 'a'), std::string(40, 'A'), "refs/heads/x", "HEAD");
    INFO(text);
    CHECK_FALSE(RefName::branch(text).has_value());
    CHECK_FALSE(RefName::tag(text).has_value());
}

TEST_CASE("full ref names parse back", "[hub][revision]") {
    for (const std::string text : {"refs/heads/v1", "refs/tags/a/b", "refs/pr/12"}) {
        const Result<RefName> name = RefName::parse_full(text);
        REQUIRE(name.has_value());
        CHECK(name->full() == text);
    }
    CHECK(RefName::pull_request(3).kind() == RefKind::pr);
    const std::string bad =
        GENERATE("refs/pr/0", "refs/pr/01", "refs/pr/x", "refs/notes/x", "main", "refs/heads/");
    INFO(bad);
    CHECK_FALSE(RefName::parse_full(bad).has_value());
}

TEST_CASE("percent encoding round-trips every byte but NUL", "[hub][percent]") {
    std::string all;
    for (int c = 1; c < 256; ++c) {
        all += static_cast<char>(c);
    }
    CHECK(*decode_percent(encode_segment(all)) == all);
    CHECK(*decode_percent(encode_path(all)) == all);
    CHECK(encode_segment("a/b c") == "a%2Fb%20c");
    CHECK(encode_path("a/b c") == "a/b%20c");
    CHECK(*decode_percent("a%2fb") == "a/b");
    CHECK(*decode_percent("a%252fb") == "a%2fb");
    const std::string bad = GENERATE("%", "%2", "%zz", "a%0", "%00");
    INFO(bad);
    CHECK_FALSE(decode_percent(bad).has_value());
}

} // namespace kb::hub
