// SPDX-License-Identifier: Apache-2.0
#include "hub/git_object.hpp"

#include "support/catch.hpp"

namespace kb::hub {

namespace {

GitOid oid(std::string_view hex) {
    return *GitOid::from_hex(hex);
}

} // namespace

// The ids below were printed by git 2.39: hash-object, mktree, commit-tree.
TEST_CASE("ids equal those of git", "[hub][git]") {
    CHECK(git_id(GitKind::blob, "").hex() == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    CHECK(git_id(GitKind::blob, "hello\n").hex() == "ce013625030ba8dba906f756967f9e9ca394464a");
    CHECK(git_id(GitKind::tree, "").hex() == "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    GitBlobHasher hasher{6};
    hasher.update(as_bytes("hel"));
    hasher.update(as_bytes("lo\n"));
    CHECK(hasher.finish() == git_id(GitKind::blob, "hello\n"));
}

TEST_CASE("tree items are sorted as git sorts them", "[hub][git]") {
    const GitOid hello = oid("ce013625030ba8dba906f756967f9e9ca394464a");
    const GitOid empty_tree = oid("4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    // "a.txt" < "a/" < "a0" because of '.' < '/' < '0'.
    const std::string payload =
        write_tree({{.mode = GitMode::file, .name = "a0", .oid = hello},
                    {.mode = GitMode::tree, .name = "a", .oid = empty_tree},
                    {.mode = GitMode::file, .name = "a.txt", .oid = hello}});
    const Result<std::vector<GitTreeItem>> items = parse_tree(payload);
    REQUIRE(items.has_value());
    REQUIRE(items->size() == 3);
    CHECK((*items)[0].name == "a.txt");
    CHECK((*items)[1].name == "a");
    CHECK((*items)[1].mode == GitMode::tree);
    CHECK((*items)[2].name == "a0");
    CHECK(write_tree(*items) == payload);
    CHECK(git_id(GitKind::tree, payload).hex() == "a6c431fd46a0450cb405900ff7386795b2109dfb");
}

TEST_CASE("tree objects that git would not accept are corrupt", "[hub][git]") {
    const std::string good = write_tree({{.mode = GitMode::file, .name = "b", .oid = {}}});
    const std::string earlier = write_tree({{.mode = GitMode::file, .name = "a", .oid = {}}});
    CHECK(parse_tree(good).has_value());
    CHECK_FALSE(parse_tree(good.substr(0, good.size() - 1)).has_value());
    CHECK_FALSE(parse_tree(good + earlier).has_value());
    CHECK_FALSE(parse_tree(good + good).has_value());
    CHECK_FALSE(parse_tree("100644 b").has_value());
    std::string slash = good;
    slash[slash.find('b')] = '/';
    CHECK_FALSE(parse_tree(slash).has_value());
    std::string mode = good;
    mode[0] = '7';
    CHECK_FALSE(parse_tree(mode).has_value());
}

TEST_CASE("a commit object round-trips and has git's id", "[hub][git]") {
    const GitCommit commit{
        .tree = oid("4b825dc642cb6eb9a060e54bf8d69288fbee4904"),
        .parents = {},
        .author = {.name = "alice", .email = "alice@localhost", .time = 1700000000},
        .committer = {.name = "alice", .email = "alice@localhost", .time = 1700000000},
        .message = "first\n\nbody line\n"};
    const std::string payload = write_commit(commit);
    CHECK(git_id(GitKind::commit, payload).hex() == "753d07d56d4f2931f3942d7967f7012f09c248b0");
    const Result<GitCommit> back = parse_commit(payload);
    REQUIRE(back.has_value());
    CHECK(*back == commit);
    CHECK(back->title() == "first");
    CHECK(back->body() == "body line");

    GitCommit child = commit;
    child.parents = {git_id(GitKind::commit, payload), git_id(GitKind::blob, "")};
    CHECK(*parse_commit(write_commit(child)) == child);
}

TEST_CASE("a signature cannot forge a commit line", "[hub][git]") {
    GitCommit commit{.author = {.name = "eve\nparent x", .email = "<e>\n", .time = 1}};
    commit.message = "m";
    const std::string payload = write_commit(commit);
    CHECK(payload.find("author eveparent x <e> 1 +0000\n") != std::string::npos);
    REQUIRE(parse_commit(payload).has_value());
    CHECK(parse_commit(payload)->parents.empty());
}

TEST_CASE("commit objects that are cut are corrupt", "[hub][git]") {
    GitCommit commit{.author = {.name = "a", .email = "a", .time = 1},
                     .committer = {.name = "a", .email = "a", .time = 1},
                     .message = "m"};
    const std::string payload = write_commit(commit);
    const std::size_t head = payload.find("\n\n");
    for (std::size_t n = 0; n <= head; ++n) {
        INFO(n);
        CHECK_FALSE(parse_commit(payload.substr(0, n)).has_value());
    }
}

TEST_CASE("an LFS pointer is three lines and nothing else", "[hub][git]") {
    const LfsPointer pointer{.oid = digest::sha256("abc"), .size = 3};
    const std::string text = to_text(pointer);
    CHECK(text == "version https://git-lfs.github.com/spec/v1\n"
                  "oid sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n"
                  "size 3\n");
    CHECK(parse_pointer(text) == pointer);
    CHECK(pointer_id(pointer) == git_id(GitKind::blob, text));
    CHECK_FALSE(parse_pointer("").has_value());
    CHECK_FALSE(parse_pointer("hello").has_value());
    CHECK_FALSE(parse_pointer(text.substr(0, text.size() - 1)).has_value());
    CHECK_FALSE(parse_pointer(text + "x 1\n").has_value());
    for (std::size_t n = 0; n < text.size(); ++n) {
        CHECK_FALSE(parse_pointer(text.substr(0, n)).has_value());
    }
    std::string upper = text;
    upper[upper.find(":b") + 1] = 'B';
    CHECK_FALSE(parse_pointer(upper).has_value());
}

} // namespace kb::hub
