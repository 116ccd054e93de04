// SPDX-License-Identifier: Apache-2.0
#include "upload/upload_plan.hpp"

#include "support/catch.hpp"

#include <fmt/format.h>

#include <algorithm>

using namespace kb;
using namespace kb::upload;

namespace {

RelPath path(std::string_view text) {
    return RelPath::literal(text);
}

LocalFile local(std::string_view where, std::string_view content) {
    return {.path = path(where),
            .source = "/here",
            .size = content.size(),
            .sha256 = digest::sha256(content),
            .git_oid = hub::git_id(hub::GitKind::blob, content)};
}

hub::TreeEntry regular(std::string_view where, std::string_view content) {
    return {.oid = hub::git_id(hub::GitKind::blob, content),
            .size = content.size(),
            .path = path(where)};
}

hub::TreeEntry large(std::string_view where, std::string_view content) {
    const hub::LfsPointer pointer{.oid = digest::sha256(content), .size = content.size()};
    return {.oid = hub::pointer_id(pointer),
            .size = content.size(),
            .path = path(where),
            .lfs = pointer};
}

RemoteTree tree(const std::vector<hub::TreeEntry>& entries) {
    return make_remote_tree(digest::sha1("head"), entries).value();
}

std::vector<std::string> texts(const std::vector<RelPath>& paths) {
    std::vector<std::string> out;
    std::ranges::transform(paths, std::back_inserter(out), &RelPath::text);
    return out;
}

std::vector<std::string> adds(const BranchPlan& plan) {
    std::vector<std::string> out;
    for (const LocalFile& file : plan.adds) {
        out.push_back(file.path.text());
    }
    return out;
}

using Texts = std::vector<std::string>;

} // namespace

TEST_CASE("contents go to the version branch, the card to main", "[upload][plan]") {
    UploadInput input{.branch = "v3",
                      .packages = {{.variant = "torch-cuda",
                                    .files = {{.path = path("a.py"), .size = 1}},
                                    .directory = "/p/build/torch-cuda"}},
                      .card = local("README.md", "card"),
                      .benchmarks = {local("benchmarks/benchmark.py", "b")},
                      .has_benchmarks_folder = true};
    const auto contents = make_contents(input);
    REQUIRE(contents.size() == 2);
    CHECK(contents[0].branch == "v3");
    REQUIRE(contents[0].files.size() == 2);
    CHECK(contents[0].files[0].path.text() == "benchmarks/benchmark.py");
    CHECK(contents[0].files[1].path.text() == "build/torch-cuda/a.py");
    CHECK(contents[0].files[1].source == "/p/build/torch-cuda/a.py");
    CHECK(texts(contents[0].folders) == Texts{"build/torch-cuda"});
    CHECK(contents[1].branch == "main");
    CHECK(contents[1].files[0].path.text() == "README.md");
    CHECK(contents[1].folders.empty());

    input.branch = "main";
    const auto together = make_contents(input);
    REQUIRE(together.size() == 1);
    CHECK(together[0].files.size() == 3);
}

TEST_CASE("the difference is by content: sha256 for large files, git id for others",
          "[upload][plan]") {
    const BranchContent content{.branch = "v1",
                                .files = {local("build/v/changed", "new"),
                                          local("build/v/large", "same large"),
                                          local("build/v/large-changed", "aaaa"),
                                          local("build/v/missing", "x"),
                                          local("build/v/same", "same")},
                                .folders = {path("build/v")}};
    const auto plan = plan_branch(content,
                                  tree({regular("build/v/changed", "old"),
                                        large("build/v/large", "same large"),
                                        large("build/v/large-changed", "bbbb"),
                                        regular("build/v/same", "same"),
                                        regular("build/v/stale", "s"),
                                        regular("build/v/sub/stale", "s"),
                                        regular("build/v2/theirs", "t"),
                                        regular("build/v.txt", "t"),
                                        regular("README.md", "t")}),
                                  BranchState::existing);
    CHECK(adds(plan) == Texts{"build/v/changed", "build/v/large-changed", "build/v/missing"});
    CHECK(texts(plan.deletes) == Texts{"build/v/stale", "build/v/sub/stale"});
    CHECK(plan.unchanged == 2);
    CHECK_FALSE(plan.empty());
}

TEST_CASE("a file whose git id is not known is asked for only when it decides", "[upload][plan]") {
    BranchContent content{
        .files = {local("a", "aa"), local("b", "bb"), local("c", "cc"), local("d", "dd")}};
    for (LocalFile& file : content.files) {
        file.git_oid.reset();
    }
    const auto remote = tree({regular("a", "aa"), regular("b", "longer"), large("c", "cc")});
    CHECK(files_to_identify(content, remote) == std::vector<std::size_t>{0});
    CHECK(plan_branch(content, remote, BranchState::existing).unchanged == 1); // c, by sha256
    content.files[0].git_oid = hub::git_id(hub::GitKind::blob, "aa");
    CHECK(files_to_identify(content, remote).empty());
    CHECK(plan_branch(content, remote, BranchState::existing).unchanged == 2);
}

TEST_CASE("a new branch drops what came along from main, an existing one keeps it",
          "[upload][plan]") {
    const BranchContent content{.files = {local("benchmarks/benchmark.py", "b")},
                                .folders = {path("build/v")},
                                .owns_benchmarks = true};
    const auto remote = tree({regular("build/other/a", "x"),
                              regular("benchmarks/benchmark_old.py", "x"),
                              regular("benchmarks/data.bin", "x"),
                              regular("benchmarks/sub/benchmark.py", "x"),
                              regular("README.md", "x")});
    CHECK(texts(plan_branch(content, remote, BranchState::to_create).deletes) ==
          Texts{"benchmarks/benchmark_old.py",
                "benchmarks/data.bin",
                "benchmarks/sub/benchmark.py",
                "build/other/a"});
    CHECK(texts(plan_branch(content, remote, BranchState::existing).deletes) ==
          Texts{"benchmarks/benchmark_old.py"});
    BranchContent without = content;
    without.owns_benchmarks = false;
    CHECK(plan_branch(without, remote, BranchState::existing).deletes.empty());
}

TEST_CASE("changed variants are those that were published before", "[upload][plan]") {
    const auto remote = tree({regular("build/v/a", "old"), regular("build/w/a", "same")});
    const BranchContent content{.files = {local("build/new/a", "x"),
                                          local("build/v/a", "new"),
                                          local("build/w/a", "same"),
                                          local("benchmarks/benchmark.py", "x")},
                                .folders = {path("build/new"), path("build/v"), path("build/w")}};
    const auto plan = plan_branch(content, remote, BranchState::existing);
    CHECK(changed_variants(plan, remote) == Texts{"v"});
    const auto fresh = plan_branch(content, remote, BranchState::to_create);
    CHECK(changed_variants(fresh, remote).empty());
}

TEST_CASE("a plan's size counts each content once", "[upload][plan]") {
    const UploadPlan plan{.branches = {{.adds = {local("a", "12345"), local("b", "12345")}},
                                       {.adds = {local("c", "12345"), local("d", "123")}}}};
    CHECK(plan.bytes() == 8);
    CHECK_FALSE(plan.empty());
    CHECK(UploadPlan{.branches = {{}, {}}}.empty());
}

TEST_CASE("the journal's key follows the wanted content alone", "[upload][plan]") {
    const BranchContent content{.branch = "v1", .files = {local("a b", "1"), local("c", "2")}};
    const auto digest = content_digest(std::span{&content, 1});
    BranchContent same = content;
    same.files[0].source = "/elsewhere";
    same.files[0].git_oid.reset();
    std::swap(same.files[0], same.files[1]);
    CHECK(content_digest(std::span{&same, 1}) == digest);
    BranchContent other = content;
    other.files[0] = local("a b", "3");
    CHECK(content_digest(std::span{&other, 1}) != digest);
    other = content;
    other.branch = "v2";
    CHECK(content_digest(std::span{&other, 1}) != digest);
}

TEST_CASE("two publishers contend only for paths that both touch", "[upload][plan]") {
    const auto before = tree({regular("a", "1"), regular("b", "1"), regular("c", "1")});
    const auto after = tree({regular("a", "2"), regular("b", "1"), regular("d", "1")});
    const auto changed = changed_paths(before, after);
    CHECK(texts(changed) == Texts{"a", "c", "d"});
    const BranchPlan plan{.adds = {local("b", "9"), local("d", "9")}, .deletes = {path("c")}};
    CHECK(texts(contested_paths(plan, changed)) == Texts{"c", "d"});
}

TEST_CASE("a listing that names a path twice is not believed", "[upload][plan]") {
    const auto twice = make_remote_tree(digest::sha1("x"), {regular("a", "1"), regular("a", "2")});
    REQUIRE_FALSE(twice.has_value());
    CHECK(twice.error().code == ErrorCode::corrupt);
}

TEST_CASE("planning is pure: order of the remote listing does not matter", "[upload][plan]") {
    std::vector<hub::TreeEntry> entries;
    BranchContent content{.folders = {path("build/v")}};
    for (int i = 0; i < 40; ++i) {
        const std::string name = "build/v/f" + std::to_string(i);
        entries.push_back(regular(name, std::to_string(i % 3)));
        content.files.push_back(local(name, std::to_string(i % 2)));
    }
    const auto plan = plan_branch(content, tree(entries), BranchState::existing);
    for (int round = 0; round < 10; ++round) {
        std::ranges::rotate(entries, entries.begin() + 7);
        const auto again = plan_branch(content, tree(entries), BranchState::existing);
        CHECK(again.adds == plan.adds);
        CHECK(again.deletes == plan.deletes);
        CHECK(again.unchanged == plan.unchanged);
    }
}

TEST_CASE("what an import left is not published, and what is there of it stays", "[upload][plan]") {
    const UploadInput input{
        .branch = "v1",
        .packages = {{.variant = "v",
                      .files = {{.path = path("__pycache__/a.cpython-311.pyc"), .size = 1},
                                {.path = path("a.py"), .size = 1, .sha256 = digest::sha256("x")}},
                      .directory = "/p/build/v"}}};
    BranchContent content = make_contents(input).front();
    REQUIRE(content.files.size() == 1);
    CHECK(content.files[0].path.text() == "build/v/a.py");
    content.files[0].git_oid = hub::git_id(hub::GitKind::blob, "x");
    const std::string old = "build/v/__pycache__/a.cpython-311.pyc";
    // An unchanged variant needs no --replace because of it.
    CHECK(plan_branch(content,
                      tree({regular(old, "code"), regular("build/v/a.py", "x")}),
                      BranchState::existing)
              .empty());
    // A changed one takes it along: it was made of other sources.
    const auto plan = plan_branch(
        content, tree({regular(old, "code"), regular("build/v/a.py", "y")}), BranchState::existing);
    CHECK(texts(plan.deletes) == Texts{old});
}

TEST_CASE("what is said of a variant goes up with it, and goes when it is untrue",
          "[upload][plan]") {
    const auto told = [](std::string_view ending, std::string_view content) {
        return local(fmt::format("provenance/v.{}", ending), content);
    };
    UploadInput input{.branch = "v1",
                      .packages = {{.variant = "v", .directory = "/p/build/v"}},
                      .provenance = {told("slsa.json", "statement"), told("cdx.json", "bill")}};
    BranchContent content = make_contents(input).front();
    content.files.push_back(local("build/v/a.py", "x"));
    const RemoteTree remote = tree({regular("build/v/a.py", "x"),
                                    regular("provenance/v.slsa.json", "statement"),
                                    regular("provenance/v.cdx.json", "bill"),
                                    regular("provenance/v.dsse.json", "signature"),
                                    regular("provenance/other.slsa.json", "theirs"),
                                    regular("provenance/abc.sources.tar", "archive")});
    // The signature of somebody else stays while the statement is the same one.
    CHECK(plan_branch(content, remote, BranchState::existing).empty());
    content.files[0] = told("cdx.json", "bill");
    content.files[1] = told("slsa.json", "another");
    const auto plan = plan_branch(content, remote, BranchState::existing);
    CHECK(adds(plan) == Texts{"provenance/v.slsa.json"});
    CHECK(texts(plan.deletes) == Texts{"provenance/v.dsse.json"});
    // Said of other bytes, and not replaced by us: all of it goes.
    content.files = {local("build/v/a.py", "y")};
    CHECK(texts(plan_branch(content, remote, BranchState::existing).deletes) ==
          Texts{"provenance/v.cdx.json", "provenance/v.dsse.json", "provenance/v.slsa.json"});
    // It needs no --replace: no byte of the variant changes.
    CHECK(changed_variants(plan, remote).empty());
}
