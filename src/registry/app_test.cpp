// SPDX-License-Identifier: Apache-2.0
#include "registry/fsck.hpp"
#include "registry/registry_fixture.hpp"

#include <fmt/format.h>

namespace kb::registry {

using test::Asked;
using test::Fixture;

namespace {

std::string tree_paths(const Asked& page) {
    std::string out;
    const document::Node json = page.json();
    for (const document::Node& entry : json.as_array()) {
        out += entry.text_or("path") + (entry.text_or("type") == "directory" ? "/ " : " ");
    }
    return out;
}

void check_sound(Fixture& fixture) {
    const auto report = fsck(sys::real_file_system(), fixture.root());
    REQUIRE(report.has_value());
    CHECK(report->problems == std::vector<std::string>{});
}

} // namespace

TEST_CASE("a repository is made once and named in the conflict", "[registry][app]") {
    Fixture f;
    const std::string body = R"({"name":"relu","organization":"acme","type":"kernel"})";
    const Asked made = f.ask("POST", "/api/repos/create", body);
    CHECK(made.status == 200);
    CHECK(made.json().text_or("url") == "http://reg/kernels/acme/relu");
    const Asked again = f.ask("POST", "/api/repos/create", body);
    CHECK(again.status == 409);
    CHECK(again.json().text_or("url") == "http://reg/kernels/acme/relu");
    const Asked twin = f.ask(
        "POST", "/api/repos/create", R"({"name":"ReLU","organization":"acme","type":"kernel"})");
    CHECK(twin.status == 409);
    CHECK(f.ask("POST", "/api/repos/create", R"({"name":"relu","organization":"acme"})")
              .json()
              .text_or("url") == "http://reg/acme/relu");
    CHECK(f.ask("POST", "/api/repos/create", body, "bob").status == 403);
    CHECK(f.ask("POST", "/api/repos/create", body, "reader").status == 403);
    CHECK(f.ask("POST", "/api/repos/create", body, "").status == 401);
    CHECK(
        f.ask("POST", "/api/repos/create", R"({"name":"x","organization":"api"})", "root").status ==
        400);
    CHECK(f.ask("POST", "/api/repos/create", R"({"name":"../x"})").status == 400);
}

TEST_CASE("a repository whose making was cut short is completed", "[registry][app]") {
    Fixture f;
    // What a kill between its two transactions leaves.
    REQUIRE(f.meta()
                .create_repo(hub::RepoId::parse(hub::RepoType::kernels, "acme/relu").value(),
                             hub::Visibility::public_,
                             {.action = "create-repo"})
                .has_value());
    CHECK(f.ask("GET", "/api/kernels/acme/relu/revision/main").status == 404);
    const std::string body = R"({"name":"relu","organization":"acme","type":"kernel"})";
    CHECK(f.ask("POST", "/api/repos/create", body).status == 409);
    CHECK(f.ask("GET", "/api/kernels/acme/relu/revision/main").status == 200);
}

TEST_CASE("private and missing repositories cannot be told apart by outsiders", "[registry][app]") {
    Fixture f;
    f.make_repo("acme/relu", "private");
    const std::string path = GENERATE("/api/kernels/acme/{}",
                                      "/api/kernels/acme/{}/refs",
                                      "/api/kernels/acme/{}/tree/main",
                                      "/api/kernels/acme/{}/revision/main",
                                      "/api/kernels/acme/{}/commits/main",
                                      "/kernels/acme/{}/resolve/main/a",
                                      "/kernels/acme/{}/raw/main/a");
    const std::string who = GENERATE("", "bob");
    const Asked hidden = f.ask("GET", fmt::format(fmt::runtime(path), "relu"), "", who);
    const Asked missing = f.ask("GET", fmt::format(fmt::runtime(path), "nope"), "", who);
    CHECK(hidden.status == (who.empty() ? 401 : 404));
    CHECK(hidden.status == missing.status);
    CHECK(hidden.body == missing.body);
    CHECK(hidden.header("X-Error-Code") == "RepoNotFound");
    CHECK(missing.header("X-Error-Code") == "RepoNotFound");
    CHECK(hidden.headers.fields().size() == missing.headers.fields().size());
    CHECK(f.ask("GET", fmt::format(fmt::runtime(path), "relu"), "", "reader").status !=
          hidden.status + (who.empty() ? 0 : 1000));
    CHECK(f.ask("GET", fmt::format(fmt::runtime(path), "relu"), "", "Bearer hf_wrong").status ==
          401);
}

TEST_CASE("the status of every kind of caller is one table", "[registry][app]") {
    Fixture f;
    f.make_repo("acme/relu", "public");
    f.make_repo("acme/secret", "private");

    struct Row {
        const char* who;
        int read_public;
        int read_private;
        int write_public;
        int write_private;
    };

    const Row row = GENERATE(values<Row>({{"", 200, 401, 401, 401},
                                          {"Bearer hf_bad", 401, 401, 401, 401},
                                          {"Digest x", 401, 401, 401, 401},
                                          {"bob", 200, 404, 403, 404},
                                          {"reader", 200, 200, 403, 403},
                                          {"alice", 200, 200, 200, 200},
                                          {"root", 200, 200, 200, 200}}));
    INFO(row.who);
    const std::string empty_commit = hub::write_line(hub::CommitHeader{.summary = "s"});
    CHECK(f.ask("GET", "/api/kernels/acme/relu/refs", "", row.who).status == row.read_public);
    CHECK(f.ask("GET", "/api/kernels/acme/secret/refs", "", row.who).status == row.read_private);
    CHECK(f.ask("POST", "/api/kernels/acme/relu/commit/main", empty_commit, row.who).status ==
          row.write_public);
    CHECK(f.ask("POST", "/api/kernels/acme/secret/commit/main", empty_commit, row.who).status ==
          row.write_private);
}

TEST_CASE("expired and unknown tokens are refused even for public things", "[registry][app]") {
    Fixture f;
    f.make_repo();
    f.token("short", {.user = "alice", .days = 1});
    CHECK(f.ask("GET", "/api/whoami-v2", "", "short").json().text_or("name") == "alice");
    f.clock.seconds += 86'400;
    const Asked late = f.ask("GET", "/api/kernels/acme/relu/refs", "", "short");
    CHECK(late.status == 401);
    CHECK(late.header("X-Error-Message") == "Invalid credentials in Authorization header");
    CHECK(f.ask("GET", "/api/whoami-v2", "", "").status == 401);
}

TEST_CASE("files of a commit are read back with the headers that clients need", "[registry][app]") {
    Fixture f;
    f.make_repo();
    const std::string large(100'000, 'x');
    const Asked commit =
        f.commit(Fixture::file("build/v/__init__.py", "hello\n") +
                 Fixture::file("build/v/large.bin", large) + Fixture::file("README.md", ""));
    REQUIRE(commit.status == 200);
    const std::string oid = commit.json().text_or("commitOid");
    CHECK(commit.json().text_or("commitUrl") == "http://reg/kernels/acme/relu/commit/" + oid);
    CHECK(f.head() == oid);

    const std::string method = GENERATE("GET", "HEAD");
    const Asked small =
        f.ask(method, fmt::format("/kernels/acme/relu/resolve/{}/build/v/__init__.py", oid));
    CHECK(small.status == 200);
    CHECK(small.body == "hello\n");
    CHECK(small.header("ETag") == "\"ce013625030ba8dba906f756967f9e9ca394464a\"");
    CHECK(small.header("X-Repo-Commit") == oid);
    CHECK(small.header("X-Linked-Etag").empty());
    CHECK(small.header("Cache-Control") == "public, max-age=31536000, immutable");
    CHECK(small.header("X-Content-Type-Options") == "nosniff");
    CHECK(small.header("Content-Disposition").starts_with("attachment"));
    CHECK(f.ask(method, "/kernels/acme/relu/resolve/main/README.md").body.empty());
    CHECK(f.ask(method, "/kernels/acme/relu/resolve/main/README.md").header("Cache-Control") ==
          "no-cache");
    CHECK(f.ask(method, "/kernels/acme/relu/resolve/main/build%2Fv%2Flarge.bin").body == large);

    const Asked part = f.ask("GET",
                             "/kernels/acme/relu/resolve/main/build/v/large.bin",
                             "",
                             "",
                             {{"Range", "bytes=5-9"}});
    CHECK(part.status == 206);
    CHECK(part.body == "xxxxx");
    CHECK(
        f.ask("GET", "/kernels/acme/relu/resolve/main/README.md", "", "", {{"Range", "bytes=0-0"}})
            .status == 416);
    CHECK(f.ask("GET",
                fmt::format("/kernels/acme/relu/resolve/{}/README.md", oid),
                "",
                "",
                {{"If-None-Match", "\"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\""}})
              .status == 304);

    const Asked none = f.ask(method, "/kernels/acme/relu/resolve/main/nope");
    CHECK(none.status == 404);
    CHECK(none.header("X-Error-Code") == "EntryNotFound");
    CHECK(none.header("X-Repo-Commit") == oid);
    CHECK(f.ask(method, "/kernels/acme/relu/resolve/main/build").header("X-Error-Code") ==
          "EntryNotFound");
    CHECK(f.ask(method, "/kernels/acme/relu/resolve/v9/nope").header("X-Error-Code") ==
          "RevisionNotFound");
    check_sound(f);
}

TEST_CASE("trees are listed by level, whole and in pages", "[registry][app]") {
    Fixture f;
    f.make_repo();
    std::string lines;
    for (const char* path : {"a.txt", "a/x", "a/y/z", "a0", "build/v1/f", "build/v2/f"}) {
        lines += Fixture::file(path, path);
    }
    REQUIRE(f.commit(lines).status == 200);
    CHECK(tree_paths(f.ask("GET", "/api/kernels/acme/relu/tree/main")) == "a.txt a/ a0 build/ ");
    CHECK(tree_paths(f.ask("GET", "/api/kernels/acme/relu/tree/main/build?recursive=false")) ==
          "build/v1/ build/v2/ ");
    CHECK(tree_paths(f.ask("GET", "/api/kernels/acme/relu/tree/refs%2Fheads%2Fmain/build%2Fv1")) ==
          "build/v1/f ");
    const std::string all =
        "a.txt a/ a/x a/y/ a/y/z a0 build/ build/v1/ build/v1/f build/v2/ build/v2/f ";
    CHECK(tree_paths(f.ask("GET", "/api/kernels/acme/relu/tree/main?recursive=True")) == all);

    for (const int limit : {1, 2, 3, 5, 100}) {
        std::string paged;
        std::string url =
            fmt::format("/api/kernels/acme/relu/tree/main?recursive=true&limit={}", limit);
        while (!url.empty()) {
            const Asked page = f.ask("GET", url);
            REQUIRE(page.status == 200);
            paged += tree_paths(page);
            url = hub::next_link(page.header("Link")).value_or("");
            url.erase(0, std::string_view{"http://reg"}.size());
        }
        INFO(limit);
        CHECK(paged == all);
    }
    const Asked missing = f.ask("GET", "/api/kernels/acme/relu/tree/main/nope");
    CHECK(missing.status == 404);
    CHECK(missing.header("X-Error-Code") == "EntryNotFound");
    const Asked entry = f.ask("GET", "/api/kernels/acme/relu/tree/main/build/v1");
    CHECK(entry.json().as_array()[0].find("size")->as_unsigned() == 10);
}

TEST_CASE("paths are looked up from a form and from JSON", "[registry][app]") {
    Fixture f;
    f.make_repo();
    REQUIRE(f.commit(Fixture::file("a b", "1") + Fixture::file("d/c", "2")).status == 200);
    const std::string url = "/api/kernels/acme/relu/paths-info/main";
    CHECK(tree_paths(f.ask("POST",
                           url,
                           "paths=a+b&paths=d&paths=nope&expand=False",
                           "",
                           {{"Content-Type", "application/x-www-form-urlencoded"}})) == "a b d/ ");
    CHECK(tree_paths(f.ask("POST",
                           url,
                           R"({"paths":["d/c","../x"]})",
                           "",
                           {{"Content-Type", "application/json"}})) == "d/c ");
    std::string many;
    for (int i = 0; i <= 1000; ++i) {
        many += "paths=a&";
    }
    CHECK(f.ask("POST", url, many).status == 413);
}

TEST_CASE("branches and tags come and go", "[registry][app]") {
    Fixture f;
    f.make_repo();
    const std::string head = f.head();
    CHECK(f.ask("POST", "/api/kernels/acme/relu/branch/v1").status == 200);
    CHECK(f.ask("POST", "/api/kernels/acme/relu/branch/v1", "{}").status == 409);
    // Git has no place for both.
    CHECK(f.ask("POST", "/api/kernels/acme/relu/branch/v1%2Fx", "{}").status == 409);
    CHECK(f.ask("POST", "/api/kernels/acme/relu/branch/x", R"({"startingPoint":"nope"})")
              .header("X-Error-Code") == "RevisionNotFound");
    CHECK(f.ask("POST", fmt::format("/api/kernels/acme/relu/branch/{}", std::string(40, 'a')))
              .status == 400);
    CHECK(f.ask("POST",
                "/api/kernels/acme/relu/branch/a%2Fb",
                fmt::format(R"({{"startingPoint":"{}"}})", head))
              .status == 200);
    CHECK(
        f.ask("POST", "/api/kernels/acme/relu/tag/main", R"({"tag":"r1","message":"m"})").status ==
        200);
    CHECK(f.ask("POST", "/api/kernels/acme/relu/tag/main", R"({"tag":"r1"})").status == 409);
    const hub::Refs refs =
        *hub::parse_refs(f.ask("GET", "/api/kernels/acme/relu/refs", "", "").json());
    CHECK(refs.branches.size() == 3);
    CHECK(refs.branch("v1")->target.hex() == head);
    CHECK(refs.tags.at(0).ref == "refs/tags/r1");
    CHECK_FALSE(refs.pull_requests.has_value());
    CHECK(f.head("r1") == head);
    CHECK(f.head("refs%2Fheads%2Fa%2Fb") == head);
    CHECK(f.ask("DELETE", "/api/kernels/acme/relu/branch/main").status == 403);
    CHECK(f.ask("DELETE", "/api/kernels/acme/relu/branch/v1", "", "root").status == 200);
    CHECK(f.ask("DELETE", "/api/kernels/acme/relu/branch/v1").status == 404);
    CHECK(f.ask("DELETE", "/api/kernels/acme/relu/tag/r1").status == 200);
    CHECK(f.ask("GET", "/api/kernels/acme/relu/refs?include_prs=1").json().find("pullRequests") !=
          nullptr);
}

TEST_CASE("operations apply in order and vanish together when one fails", "[registry][app]") {
    Fixture f;
    f.make_repo();
    REQUIRE(
        f.commit(Fixture::file("a/b", "1") + Fixture::file("a/c", "2") + Fixture::file("d", "3"))
            .status == 200);
    const std::string before = f.head();
    const auto remove = [](std::string_view path) {
        return hub::write_line(hub::DeletedFileOp{.path = RelPath::literal(path)});
    };
    const Asked missing = f.commit(Fixture::file("new", "x") + remove("nope"));
    CHECK(missing.status == 404);
    CHECK(missing.header("X-Error-Code") == "EntryNotFound");
    CHECK(missing.header("X-Error-Message").find("A file with this name doesn't exist") !=
          std::string::npos);
    CHECK(f.commit(Fixture::file("d/x", "1")).status == 409);
    CHECK(f.commit(Fixture::file("a", "1")).status == 409);
    CHECK(f.commit(Fixture::file("e", "1") + Fixture::file("E", "2")).status == 400);
    CHECK(f.head() == before);

    CHECK(f.commit(hub::write_line(hub::DeletedFolderOp{.path = RelPath::literal("a")}) +
                   Fixture::file("a", "now a file") + remove("d") + Fixture::file("twice", "1") +
                   Fixture::file("twice", "2") +
                   hub::write_line(hub::CopyFileOp{.path = RelPath::literal("copy"),
                                                   .source = RelPath::literal("twice")}))
              .status == 200);
    CHECK(tree_paths(f.ask("GET", "/api/kernels/acme/relu/tree/main?recursive=true")) ==
          "a copy twice ");
    CHECK(f.ask("GET", "/kernels/acme/relu/resolve/main/copy").body == "2");
    CHECK(f.ask("GET", fmt::format("/kernels/acme/relu/resolve/{}/a/b", before)).body == "1");
    check_sound(f);
}

TEST_CASE("a commit on an old parent is refused, a repeated one is answered again",
          "[registry][app]") {
    Fixture f;
    f.make_repo();
    const std::string start = f.head();
    const std::string remove = hub::write_line(hub::DeletedFileOp{.path = RelPath::literal("a")});
    const Asked first = f.commit(Fixture::file("a", "1"), "main", "alice", start);
    REQUIRE(first.status == 200);
    const std::string one = f.head();
    CHECK(f.commit(Fixture::file("b", "1"), "main", "alice", start).status == 412);
    CHECK(f.commit(Fixture::file("b", "1"), "main", "alice", start.substr(0, 7)).status == 412);
    CHECK(f.head() == one);
    // The answer was lost, the client sends the same again.
    CHECK(f.commit(Fixture::file("a", "1"), "main", "alice", start).json().text_or("commitOid") ==
          one);
    CHECK(f.commit(Fixture::file("a", "1")).json().text_or("commitOid") == one);
    REQUIRE(f.commit(remove).status == 200);
    const std::string two = f.head();
    CHECK(f.commit(remove).json().text_or("commitOid") == two);
    CHECK(f.commit(remove, "main", "root").status == 404);
    CHECK(f.commit("", "main", "alice", two).json().text_or("commitOid") == two);
    const document::Node history = f.ask("GET", "/api/kernels/acme/relu/commits/main").json();
    CHECK(history.as_array().size() == 3);
    CHECK(history.as_array()[0].text_or("title") == "change");
}

TEST_CASE("ids are those of git", "[registry][app]") {
    Fixture f;
    f.make_repo();
    REQUIRE(f.commit(Fixture::file("d/hello", "hello\n")).status == 200);
    // git mktree of the same content.
    const document::Node root = f.ask("GET", "/api/kernels/acme/relu/tree/main").json();
    const std::string sub = hub::write_tree({{.mode = hub::GitMode::file,
                                              .name = "hello",
                                              .oid = hub::git_id(hub::GitKind::blob, "hello\n")}});
    CHECK(root.as_array()[0].text_or("oid") == hub::git_id(hub::GitKind::tree, sub).hex());
    const auto commit = f.meta().find_commit(1, *hub::GitOid::from_hex(f.head()));
    REQUIRE((commit.has_value() && commit->has_value()));
    CHECK(hub::git_id(hub::GitKind::commit, hub::write_commit(**commit)).hex() == f.head());
    CHECK((*commit)->parents.size() == 1);
    CHECK((*commit)->author.name == "alice");
}

TEST_CASE("large objects go up once and are read as the file they are", "[registry][app]") {
    Fixture f;
    f.make_repo();
    const std::string content(50'000, 'k');
    const digest::Digest oid = digest::sha256(content);
    const std::string line = hub::write_line(
        hub::LfsFileOp{.path = RelPath::literal("k.so"), .oid = oid, .size = content.size()});
    CHECK(f.commit(line).status == 422);
    CHECK(f.put_object(content) == 200);
    const std::string ask_batch = fmt::format(
        R"({{"operation":"upload","objects":[{{"oid":"{}","size":{}}}],"hash_algo":"sha_256"}})",
        oid.hex(),
        content.size());
    const Asked batch = f.ask("POST", "/kernels/acme/relu.git/info/lfs/objects/batch", ask_batch);
    CHECK(batch.header("Content-Type") == "application/vnd.git-lfs+json");
    CHECK(batch.json().find("objects")->as_array()[0].find("actions") == nullptr);
    CHECK(f.ask("POST",
                "/kernels/acme/relu.git/info/lfs/objects/verify",
                fmt::format(R"({{"oid":"{}","size":{}}})", oid.hex(), content.size()))
              .status == 200);
    CHECK(f.ask("POST",
                "/kernels/acme/relu.git/info/lfs/objects/verify",
                fmt::format(R"({{"oid":"{}","size":1}})", oid.hex()))
              .status == 404);
    CHECK(f.commit(hub::write_line(
                       hub::LfsFileOp{.path = RelPath::literal("k.so"), .oid = oid, .size = 7}))
              .status == 422);
    REQUIRE(f.commit(line).status == 200);
    const Asked file = f.ask("GET", "/kernels/acme/relu/resolve/main/k.so", "", "");
    CHECK(file.body == content);
    CHECK(file.header("X-Linked-Etag") == "\"" + oid.hex() + "\"");
    CHECK(file.header("X-Linked-Size") == "50000");
    const hub::LfsPointer pointer{.oid = oid, .size = content.size()};
    CHECK(f.ask("GET", "/kernels/acme/relu/raw/main/k.so", "", "").body == hub::to_text(pointer));
    const auto entry =
        hub::parse_tree_page(f.ask("GET", "/api/kernels/acme/relu/tree/main").json());
    REQUIRE(entry.has_value());
    CHECK(entry->at(0).lfs == pointer);
    CHECK(entry->at(0).oid == hub::pointer_id(pointer));
    const Asked download =
        f.ask("POST",
              "/kernels/acme/relu.git/info/lfs/objects/batch",
              fmt::format(R"({{"operation":"download","objects":[{{"oid":"{}","size":{}}}]}})",
                          oid.hex(),
                          content.size()),
              "");
    const document::Node answer = download.json();
    const std::string href =
        answer.find("objects")->as_array()[0].find("actions")->find("download")->text_or("href");
    CHECK(f.ask("GET", href.substr(10), "", "").body == content);
    check_sound(f);
}

TEST_CASE("an upload that is not what it says leaves nothing", "[registry][app]") {
    Fixture f;
    f.make_repo();
    CHECK(f.put_object("content A", "content B") == 422);
    CHECK(f.blobs().list()->empty());
    CHECK(sys::real_file_system().list(RootPaths{f.root()}.temporary())->empty());
    CHECK(f.put_object("content A") == 200);
    CHECK(f.blobs().list()->size() == 1);
}

TEST_CASE("an upload address is good for one object, one repository and one hour",
          "[registry][app]") {
    Fixture f;
    f.make_repo();
    const digest::Digest oid = digest::sha256("data");
    const UploadGrant grant{.repo = 1,
                            .object = {.oid = oid, .size = 4},
                            .user = "alice",
                            .expires = f.clock.seconds + 10};
    const auto url = [&](const UploadGrant& g, std::string_view signature) {
        return fmt::format("/api/lfs/{}/{}?size={}&user={}&expires={}&signature={}",
                           g.repo,
                           g.object.oid.hex(),
                           g.object.size,
                           g.user,
                           g.expires,
                           signature);
    };
    const std::string signature = f.service().sign(grant, "put");
    UploadGrant other = grant;
    const int change = GENERATE(0, 1, 2, 3, 4);
    switch (change) {
    case 0:
        other.repo = 2;
        break;
    case 1:
        other.object.oid = digest::sha256("x");
        break;
    case 2:
        other.object.size = 5;
        break;
    case 3:
        other.user = "bob";
        break;
    default:
        other.expires += 1;
        break;
    }
    CHECK(f.ask("PUT", url(other, signature), "data", "").status == 403);
    CHECK(f.ask("GET", url(grant, signature), "", "").status == 403);
    CHECK(f.ask("PUT", url(grant, ""), "data", "").status == 403);
    CHECK(f.ask("PUT", "/api/lfs/1/abc?size=-1", "data", "").status == 403);
    CHECK(f.ask("PUT", url(grant, signature), "too long", "").status == 422);
    CHECK(f.ask("PUT", url(grant, signature), "data", "").status == 200);
    f.clock.seconds += 11;
    CHECK(f.ask("PUT", url(grant, signature), "data", "").status == 403);
}

TEST_CASE("knowing a digest gives no right to its content", "[registry][app]") {
    Fixture f;
    f.make_repo("acme/relu", "private");
    const std::string secret(20'000, 's');
    REQUIRE(f.put_object(secret) == 200);
    const digest::Digest oid = digest::sha256(secret);
    REQUIRE(
        f.ask("POST", "/api/repos/create", R"({"name":"mine","type":"kernel"})", "bob").status ==
        200);
    const auto batch = [&](std::string_view operation) {
        return f
            .ask("POST",
                 "/kernels/bob/mine.git/info/lfs/objects/batch",
                 fmt::format(R"({{"operation":"{}","objects":[{{"oid":"{}","size":{}}}]}})",
                             operation,
                             oid.hex(),
                             secret.size()),
                 "bob")
            .json();
    };
    CHECK(batch("upload").find("objects")->as_array()[0].find("actions") != nullptr);
    CHECK(batch("download").find("objects")->as_array()[0].find("error") != nullptr);
    const std::string header = hub::write_line(hub::CommitHeader{.summary = "s"});
    const hub::LfsPointer pointer{.oid = oid, .size = secret.size()};
    const std::string lfs = hub::write_line(
        hub::LfsFileOp{.path = RelPath::literal("x"), .oid = oid, .size = secret.size()});
    CHECK(f.ask("POST", "/api/kernels/bob/mine/commit/main", header + lfs, "bob").status == 422);
    CHECK(f.ask("POST",
                "/api/kernels/bob/mine/commit/main",
                header + Fixture::file("x", hub::to_text(pointer)),
                "bob")
              .status == 400);
}

TEST_CASE("paths that leave the repository or cannot be held everywhere are refused",
          "[registry][app]") {
    Fixture f;
    f.make_repo();
    const std::string before = f.head();
    const std::string path = GENERATE("../x",
                                      "a/../../x",
                                      "/x",
                                      "a//b",
                                      "a/",
                                      "./a",
                                      "a\\\\b",
                                      "a\\u0000b",
                                      "a\\nb",
                                      ".git/config",
                                      "a/.GIT/x",
                                      ".git",
                                      "GIT~1/x",
                                      ".g\\u200cit/x",
                                      "con",
                                      "a/NUL.txt",
                                      "a:b",
                                      "a.",
                                      "a ",
                                      "a?b");
    INFO(path);
    const std::string line = fmt::format(
        R"({{"key":"file","value":{{"content":"","path":"{}","encoding":"base64"}}}})", path);
    CHECK(f.commit(line).status == 400);
    CHECK(f.head() == before);
}

TEST_CASE("commit streams that cannot be meant change nothing", "[registry][app]") {
    Fixture f;
    f.make_repo();
    const std::string before = f.head();
    const std::string body =
        GENERATE(as<std::string>{},
                 "",
                 "x",
                 R"({"key":"header"})",
                 R"({"key":"file","value":{"path":"a","content":""}})",
                 R"({"key":"header","value":{"summary":"s"}})"
                 "\n{\"key\":\"file\"",
                 R"({"key":"header","value":{"summary":"s","parentCommit":"zzz"}})");
    CHECK(f.ask("POST", "/api/kernels/acme/relu/commit/main", body).status == 400);
    CHECK(f.head() == before);
    CHECK(f.commit(Fixture::file("a", "1"), "nope").header("X-Error-Code") == "RevisionNotFound");
    CHECK(f.commit(Fixture::file("a", "1"), before).status == 404);
    REQUIRE(f.ask("POST", "/api/kernels/acme/relu/tag/main", R"({"tag":"t"})").status == 200);
    CHECK(f.commit(Fixture::file("a", "1"), "t").status == 404);
}

TEST_CASE("a pull request is a commit beside its branch", "[registry][app]") {
    Fixture f;
    f.make_repo();
    const std::string main = f.head();
    const Asked pull = f.commit(Fixture::file("a", "1"), "main?create_pr=1");
    REQUIRE(pull.status == 200);
    CHECK(pull.json().text_or("pullRequestUrl") == "http://reg/kernels/acme/relu/discussions/1");
    CHECK(f.head() == main);
    CHECK(f.head("refs%2Fpr%2F1") == pull.json().text_or("commitOid"));
    CHECK(f.commit(Fixture::file("b", "1"), "refs%2Fpr%2F1").status == 200);
    const hub::Refs refs =
        *hub::parse_refs(f.ask("GET", "/api/kernels/acme/relu/refs?include_prs=1").json());
    CHECK(refs.pull_requests->at(0).name == "refs/pr/1");
    CHECK(f.commit(Fixture::file("c", "1"), "main?create_pr=1")
              .json()
              .text_or("pullRequestUrl")
              .ends_with("/2"));
}

TEST_CASE("preupload chooses by size and knows what is there", "[registry][app]") {
    Fixture f{{.regular_bytes = 100}};
    f.make_repo();
    REQUIRE(f.commit(Fixture::file("a", "hello\n")).status == 200);
    const Asked answer = f.ask(
        "POST",
        "/api/kernels/acme/relu/preupload/main",
        R"({"files":[{"path":"a","size":6,"sample":""},{"path":"b","size":101,"sample":""},{"path":"c","size":100}],"gitIgnore":""})");
    const auto verdicts = hub::parse_preupload_answer(answer.json());
    REQUIRE(verdicts.has_value());
    CHECK(verdicts->files.at(0).remote_oid == "ce013625030ba8dba906f756967f9e9ca394464a");
    CHECK(verdicts->files.at(1).mode == hub::UploadMode::lfs);
    CHECK(verdicts->files.at(2).mode == hub::UploadMode::regular);
    CHECK(f.ask("POST", "/api/kernels/acme/relu/preupload/nope", R"({"files":[]})")
              .header("X-Error-Code") == "RevisionNotFound");
}

TEST_CASE("a deleted repository is gone and its name starts anew", "[registry][app]") {
    Fixture f;
    f.make_repo();
    REQUIRE(f.commit(Fixture::file("a", "1")).status == 200);
    const std::string old = f.head();
    const std::string body = R"({"name":"relu","organization":"acme","type":"kernel"})";
    CHECK(f.ask("DELETE", "/api/repos/delete", body, "bob").status == 403);
    CHECK(f.ask("DELETE", "/api/repos/delete", body, "alice").status == 403);
    CHECK(f.ask("DELETE", "/api/repos/delete", body, "root").status == 200);
    CHECK(f.ask("GET", "/api/kernels/acme/relu/refs").header("X-Error-Code") == "RepoNotFound");
    f.make_repo();
    CHECK(f.ask("GET", fmt::format("/api/kernels/acme/relu/revision/{}", old))
              .header("X-Error-Code") == "RevisionNotFound");
    REQUIRE(f.ask("POST", "/api/repos/create", R"({"name":"own","type":"kernel"})", "bob").status ==
            200);
    CHECK(f.ask("DELETE", "/api/repos/delete", R"({"name":"own","type":"kernel"})", "bob").status ==
          200);
}

TEST_CASE("visibility is changed by owners only", "[registry][app]") {
    Fixture f;
    f.make_repo();
    CHECK(f.ask("PUT", "/api/kernels/acme/relu/settings", R"({"private":true})", "alice").status ==
          403);
    CHECK(f.ask("PUT", "/api/kernels/acme/relu/settings", R"({"visibility":"private"})", "root")
              .status == 200);
    CHECK(f.ask("GET", "/api/kernels/acme/relu", "", "").status == 401);
    CHECK(f.ask("GET", "/api/kernels", "", "").body == "[]");
    CHECK(f.ask("GET", "/api/kernels?author=acme", "", "reader").json().as_array().size() == 1);
}

TEST_CASE("addresses that are none say so in JSON", "[registry][app]") {
    Fixture f;
    f.make_repo();
    const Asked nothing = f.ask("GET", "/nothing/here/at/all");
    CHECK(nothing.status == 404);
    CHECK(nothing.header("Content-Type").starts_with("application/json"));
    const Asked wrong = f.ask("PUT", "/api/kernels/acme/relu/refs");
    CHECK(wrong.status == 405);
    CHECK(wrong.header("Allow") == "GET, HEAD");
    CHECK(f.ask("GET", "/api/kernels/acme/relu/xet-read-token/main").status == 404);
    CHECK(f.ask("GET", "/health", "", "").status == 200);
    CHECK(f.ask("POST", "/api/validate-yaml", R"({"content":"","repoType":"kernel"})")
              .json()
              .find("errors")
              ->is_array());
    CHECK(f.ask("GET", "/api/organizations/acme/overview", "", "")
              .json()
              .find("trustedKernelPublisher")
              ->as_bool());
}

TEST_CASE("trust is what the settings say", "[registry][app]") {
    Fixture f{{.trusted_publishers = std::vector<std::string>{"acme"}}};
    const auto trusts = [&](std::string_view owner) {
        return f.ask("GET", fmt::format("/api/organizations/{}/overview", owner), "", "")
            .json()
            .find("trustedKernelPublisher")
            ->as_bool();
    };
    CHECK(trusts("acme"));
    CHECK_FALSE(trusts("bob"));
}

TEST_CASE("without anonymous reading everything needs a token", "[registry][app]") {
    Fixture f{{.anonymous_read = AnonymousRead::no}};
    f.make_repo();
    CHECK(f.ask("GET", "/api/kernels/acme/relu/refs", "", "").status == 401);
    CHECK(f.ask("GET", "/api/kernels/acme/relu/refs", "", "bob").status == 200);
}

TEST_CASE("our own failures are logged and not explained to clients", "[registry][app]") {
    Fixture f;
    f.make_repo();
    REQUIRE(f.commit(Fixture::file("large", std::string(50'000, 'x'))).status == 200);
    REQUIRE(sys::real_file_system().remove_tree(RootPaths{f.root()}.blobs()).has_value());
    const Asked broken = f.ask("GET", "/kernels/acme/relu/resolve/main/large");
    CHECK(broken.status == 500);
    CHECK(broken.body.find(f.root().string()) == std::string::npos);
    REQUIRE(f.failures.size() == 1);
    CHECK(f.failures[0].find("/kernels/acme/relu/resolve/main/large") != std::string::npos);
    const auto report = fsck(sys::real_file_system(), f.root());
    REQUIRE(report.has_value());
    CHECK(report->problems.size() == 1);
}

TEST_CASE("everything is there after the server was opened again", "[registry][app]") {
    Fixture f;
    f.make_repo();
    REQUIRE(f.commit(Fixture::file("a", "1")).status == 200);
    const std::string head = f.head();
    REQUIRE(sys::real_file_system()
                .write_scratch(RootPaths{f.root()}.temporary() / "left", "x", FileMode::regular)
                .has_value());
    f.open();
    CHECK(f.head() == head);
    CHECK(f.ask("GET", "/kernels/acme/relu/resolve/main/a").body == "1");
    CHECK(sys::real_file_system().list(RootPaths{f.root()}.temporary())->empty());
    const std::vector<AuditRow> audit = *f.meta().audit(100);
    CHECK(audit.front().action == "commit");
    CHECK(audit.front().actor == "alice");
    CHECK(audit.front().repo == "kernels/acme/relu");
}

TEST_CASE("fsck names what was altered", "[registry][fsck]") {
    Fixture f;
    f.make_repo();
    const std::string content(50'000, 'x');
    REQUIRE(f.commit(Fixture::file("large", content) + Fixture::file("small", "s")).status == 200);
    check_sound(f);
    const sys::Path blob = f.blobs().path_of(digest::sha256(content));
    REQUIRE(sys::real_file_system().set_mode(blob, 0644).has_value());
    kb::test::write_text(blob, std::string(50'000, 'y'));
    const auto report = fsck(sys::real_file_system(), f.root());
    REQUIRE(report.has_value());
    REQUIRE(report->problems.size() == 1);
    CHECK(report->problems[0].find(digest::sha256(content).hex()) != std::string::npos);
    CHECK_FALSE(fsck(sys::real_file_system(), f.root() / "nope").has_value());
}

TEST_CASE("a pull request is opened empty, and commits go to its ref", "[registry][app]") {
    Fixture f;
    f.make_repo();
    const std::string base = "/api/kernels/acme/relu/discussions";
    CHECK(f.ask("POST", base, R"({"title":"talk","pullRequest":false})").status == 400);
    CHECK(f.ask("POST", base, R"({"title":" ","pullRequest":true})").status == 400);
    CHECK(f.ask("POST", base, R"({"title":"t","pullRequest":true})", "reader").status == 403);
    CHECK(f.ask("GET", base + "/1").status == 404);
    const Asked opened =
        f.ask("POST", base, R"({"title":" faster ","description":"","pullRequest":true})");
    REQUIRE(opened.status == 200);
    CHECK(opened.json().find("num")->as_int() == 1);
    CHECK(f.head("refs%2Fpr%2F1") == f.head());
    REQUIRE(f.commit(Fixture::file("a.txt", "a"), "refs%2Fpr%2F1").status == 200);
    CHECK(f.head("refs%2Fpr%2F1") != f.head());
    const document::Node told = f.ask("GET", base + "/1?diff=1", {}, "reader").json();
    CHECK(told.text_or("title") == "faster");
    CHECK(told.text_or("status") == "open");
    CHECK(told.find("author")->text_or("name") == "alice");
    CHECK(told.find("changes")->text_or("base") == "refs/heads/main");
    CHECK(told.find("repo")->text_or("type") == "kernel");
    const document::Node all = f.ask("GET", base + "?p=0").json();
    CHECK(all.find("count")->as_int() == 1);
    CHECK(all.find("discussions")->as_array()[0].text_or("title") == "faster");
}

} // namespace kb::registry
