// SPDX-License-Identifier: Apache-2.0
#include "registry/tree_edit.hpp"

#include "registry/path_policy.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

#include <random>
#include <set>

namespace kb::registry {

namespace {

/// Trees in memory.
class Trees {
public:
    TreeSource source() {
        return [this](const hub::GitOid& oid) -> Result<std::vector<hub::GitTreeItem>> {
            ++reads;
            const auto found = payloads_.find(oid);
            if (found == payloads_.end()) {
                return Error{.code = ErrorCode::corrupt, .message = "missing"};
            }
            return hub::parse_tree(found->second);
        };
    }

    hub::GitOid store(TreeEdit& edit) {
        auto written = edit.write();
        REQUIRE(static_cast<bool>(written));
        for (const GitPayload& tree : written->trees) {
            payloads_[tree.oid] = tree.payload;
        }
        return written->root;
    }

    std::vector<std::string> list(const hub::GitOid& root, TreeWalk walk = {.recursive = true}) {
        std::vector<std::string> paths;
        const auto done =
            walk_tree(source(),
                      root,
                      walk,
                      [&](const std::string& path, const hub::GitTreeItem&) -> Result<bool> {
                          paths.push_back(path);
                          return true;
                      });
        CHECK(done.has_value());
        return paths;
    }

    int reads = 0;

private:
    std::map<hub::GitOid, std::string> payloads_;
};

hub::GitOid blob(std::string_view text) {
    return hub::git_id(hub::GitKind::blob, text);
}

void put(TreeEdit& edit, std::string_view path) {
    CHECK(static_cast<bool>(edit.put(RelPath::literal(path), blob(path))));
}

} // namespace

TEST_CASE("the same files give the same tree whatever the way there", "[registry][tree]") {
    std::mt19937 random{Catch::rngSeed()};
    Trees trees;
    std::set<std::string> names;
    TreeEdit one{trees.source(), std::nullopt};
    hub::GitOid root = trees.store(one);
    for (int round = 0; round < 200; ++round) {
        TreeEdit edit{trees.source(), root};
        const std::string name =
            fmt::format("d{}/e{}/f{}", random() % 4, random() % 4, random() % 4);
        if (random() % 3 == 0) {
            auto removed = edit.remove_file(RelPath::literal(name));
            CHECK(*removed == (names.erase(name) == 1));
        } else {
            put(edit, name);
            names.insert(name);
        }
        root = trees.store(edit);
    }
    TreeEdit fresh{trees.source(), std::nullopt};
    for (const std::string& name : names) {
        put(fresh, name);
    }
    CHECK(trees.store(fresh) == root);
}

TEST_CASE("only touched directories are read and written", "[registry][tree]") {
    Trees trees;
    TreeEdit base{trees.source(), std::nullopt};
    for (int i = 0; i < 50; ++i) {
        put(base, fmt::format("d{}/f", i));
    }
    const hub::GitOid root = trees.store(base);
    trees.reads = 0;
    TreeEdit edit{trees.source(), root};
    put(edit, "d7/new");
    auto written = edit.write();
    REQUIRE(static_cast<bool>(written));
    CHECK(trees.reads == 2);
    CHECK(written->trees.size() == 2);
}

TEST_CASE("an empty directory is gone", "[registry][tree]") {
    Trees trees;
    TreeEdit edit{trees.source(), std::nullopt};
    put(edit, "a/b/c");
    CHECK(*edit.remove_file(RelPath::literal("a/b/c")));
    CHECK_FALSE(*edit.remove_file(RelPath::literal("a/b/c")));
    put(edit, "a"); // nothing is left of the directory
    CHECK(trees.list(trees.store(edit)) == std::vector<std::string>{"a"});
    CHECK(*edit.remove_file(RelPath::literal("a")));
    CHECK(trees.store(edit).hex() == "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
}

TEST_CASE("a walk goes on after any path", "[registry][tree]") {
    Trees trees;
    TreeEdit edit{trees.source(), std::nullopt};
    for (const char* path : {"a-b/x", "a.txt", "a/b/c", "a/z", "a0", "z"}) {
        put(edit, path);
    }
    const hub::GitOid root = trees.store(edit);
    const std::vector<std::string> all = trees.list(root);
    REQUIRE(all.size() == 9);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::vector<std::string> rest(all.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                            all.end());
        CHECK(trees.list(root, {.recursive = true, .after = all[i]}) == rest);
    }
}

TEST_CASE("paths that some system cannot hold have a reason", "[registry][paths]") {
    CHECK_FALSE(path_objection(RelPath::literal("build/torch-cpu/.gitignore")).has_value());
    CHECK_FALSE(path_objection(RelPath::literal("console/nullable.txt")).has_value());
    CHECK(path_objection(RelPath::literal("a/.gIt")).has_value());
    CHECK(path_objection(RelPath::literal("a/lpt1.txt")).has_value());
    CHECK(path_objection(RelPath::literal("a/.Cache/x")).has_value());
    CHECK_FALSE(path_objection(RelPath::literal("a/.cached")).has_value());
    CHECK(path_objection(RelPath::literal("a\xE2\x80\xAEgpj.so")).has_value());
    CHECK(path_objection(RelPath::literal("a\xE2\x80\x8D"
                                          "b"))
              .has_value());
    CHECK(path_objection(RelPath::literal("\xEF\xBB\xBFx")).has_value());
    CHECK_FALSE(path_objection(RelPath::literal("a\xE2\x80\x93z")).has_value()); // a dash
    CHECK(path_objection(RelPath::literal("e\xCC\x81")).has_value());
    CHECK_FALSE(path_objection(RelPath::literal("\xC3\xA9")).has_value());
    std::string deep = "a";
    for (int i = 0; i < 64; ++i) {
        deep += "/a";
    }
    CHECK(path_objection(RelPath::literal(deep)).has_value());
    CHECK_FALSE(case_twins({"a", "b"}).has_value());
    CHECK(case_twins({"A.so", "b", "a.so"}) == std::pair<std::string, std::string>{"A.so", "a.so"});
}

} // namespace kb::registry
