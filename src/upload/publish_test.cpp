// SPDX-License-Identifier: Apache-2.0
#include "upload/publish.hpp"

#include "document/json.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "upload/fake_hub.hpp"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>

using namespace kb;
using namespace kb::upload;
using kb::test::TempDir;
using upload::test::FakeHub;

namespace {

class FakeClock final : public sys::Clock {
public:
    std::int64_t unix_seconds() override { return 1'000'000; }

    std::chrono::steady_clock::time_point now() override { return {}; }

    bool sleep(std::chrono::milliseconds duration) override {
        slept += duration;
        return true;
    }

    std::chrono::milliseconds slept{0};
};

const std::string kLibrary = std::string(57, 'L') + "abc"; // over FakeHub::lfs_from
const std::string kVariant = "torch-stable-abi211-cpu-x86_64-linux";

/// A project with finished packages on disk, a hub, and what connects them.
class World {
public:
    World() {
        hub.commit("main", {{RelPath::literal("README.md"), {.content = "old"}}}, "initial");
    }

    void add_package(const std::string& variant, std::map<std::string, std::string> files) {
        package::Package package{.variant = variant,
                                 .directory = (dir / "build/" / variant).string()};
        package.metadata.version = 1;
        for (const auto& [path, content] : files) {
            kb::test::write_text(std::filesystem::path{package.directory} / path, content);
            package.files.push_back({.path = RelPath::literal(path),
                                     .size = content.size(),
                                     .sha256 = digest::sha256(content)});
        }
        request.input.packages.push_back(std::move(package));
    }

    LocalFile file(const std::string& path, const std::string& content) {
        const std::string source = (dir / "extra" / path).string();
        kb::test::write_text(source, content);
        return {.path = RelPath::literal(path),
                .source = source,
                .size = content.size(),
                .sha256 = digest::sha256(content)};
    }

    void usual() {
        add_package(
            kVariant,
            {{"__init__.py", "import x\n"}, {"metadata.json", "{}"}, {"lib.abi3.so", kLibrary}});
        request.input.branch = "v1";
        request.input.card = file("README.md", "card");
    }

    Result<UploadReport> publish() {
        request.journal = dir / ".kernel-builder/upload.journal";
        const http::Retrier retrier{.client = &hub, .clock = &clock, .policy = {.attempts = 4}};
        const HubClient client{retrier,
                               http::Url::parse("http://hub.test").value(),
                               http::Secret{token},
                               hub::RepoId::parse(hub::RepoType::kernels, "acme/demo").value()};
        return upload::publish(request, {.hub = &client, .fs = &sys::real_file_system()});
    }

    [[nodiscard]] bool has_journal() const {
        return std::filesystem::exists(dir / ".kernel-builder/upload.journal");
    }

    TempDir dir;
    FakeHub hub;
    FakeClock clock;
    PublishRequest request{};
    std::string token = "hf_secret";
};

std::string content_at(const FakeHub& hub, const std::string& branch, const std::string& path) {
    const auto& files = hub.files(branch);
    const auto found = files.find(RelPath::literal(path));
    return found == files.end() ? "(absent)" : found->second.content;
}

UploadReport good(Result<UploadReport> result) {
    INFO((result ? std::string{} : result.error().to_text()));
    REQUIRE(result.has_value());
    return std::move(result).value();
}

std::string text_of(const Result<UploadReport>& result) {
    REQUIRE_FALSE(result.has_value());
    return result.error().to_text();
}

} // namespace

TEST_CASE("a first upload makes the branch, one commit each, and reads back", "[upload][publish]") {
    World w;
    w.usual();
    const UploadReport report = good(w.publish());
    CHECK(report.status == UploadStatus::uploaded);
    CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/lib.abi3.so") == kLibrary);
    CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/__init__.py") == "import x\n");
    CHECK(content_at(w.hub, "main", "README.md") == "card");
    CHECK(content_at(w.hub, "v1", "README.md") == "old");
    CHECK(w.hub.count("/commit/v1") == 1);
    CHECK(w.hub.count("/commit/main") == 1);
    CHECK(report.verified == 4);
    CHECK(report.transfer.blobs_sent == 1);
    CHECK(report.transfer.bytes_sent == kLibrary.size());
    CHECK_FALSE(w.has_journal());
    REQUIRE(report.branches.size() == 2);
    CHECK(report.branches[0].branch == "v1");
    CHECK(report.branches[0].created);
    CHECK(report.branches[0].commit == w.hub.branches["v1"]);
    CHECK(report.url == "http://hub.test/kernels/acme/demo/tree/v1");
}

TEST_CASE("an unchanged upload reads three answers and sends nothing", "[upload][publish]") {
    World w;
    w.usual();
    good(w.publish());
    w.hub.log.clear();
    const UploadReport report = good(w.publish());
    CHECK(report.status == UploadStatus::no_changes);
    CHECK(w.hub.log.size() == 3); // refs and two trees
    CHECK(w.hub.count("POST") == 0);
    CHECK(w.hub.count("PUT") == 0);
    CHECK(to_output_json(report).text_or("status") == "no_changes");
}

TEST_CASE("a missing repository is created with the visibility asked for", "[upload][publish]") {
    World w;
    w.usual();
    w.hub.branches.clear();
    w.hub.repo_exists = false;
    w.request.visibility = hub::Visibility::private_;
    std::string body;
    w.hub.before = [&](std::size_t, const http::Request& request) {
        if (request.url.path() == "/api/repos/create") {
            body = std::get<std::string>(request.body);
        }
        return std::optional<Result<http::Response>>{};
    };
    good(w.publish());
    CHECK(body.contains("private"));
    CHECK(content_at(w.hub, "v1", ".gitattributes") == "*.so\n");
    CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/lib.abi3.so") == kLibrary);
}

TEST_CASE("a dry run plans and touches nothing", "[upload][publish]") {
    World w;
    w.usual();
    w.token.clear();
    w.request.dry_run = DryRun::yes;
    const UploadReport report = good(w.publish());
    CHECK(report.status == UploadStatus::planned);
    CHECK(report.plan.branches[0].adds.size() == 3);
    CHECK(report.plan.branches[0].state == BranchState::to_create);
    CHECK(w.hub.count("GET") == w.hub.log.size());
    CHECK_FALSE(w.has_journal());
}

TEST_CASE("without a token nothing is sent", "[upload][publish]") {
    World w;
    w.usual();
    w.token.clear();
    CHECK(text_of(w.publish()).contains("HF_TOKEN"));
    CHECK(w.hub.count("POST") == 0);
}

TEST_CASE("other variants stay, stale files of ours go", "[upload][publish]") {
    World w;
    w.usual();
    w.request.replace = Replace::yes;
    w.hub.commit("v1",
                 {{RelPath::literal("build/torch-cuda/__init__.py"), {.content = "theirs"}},
                  {RelPath::literal("build/" + kVariant + "/old.py"), {.content = "stale"}}},
                 "by another");
    const UploadReport report = good(w.publish());
    CHECK(content_at(w.hub, "v1", "build/torch-cuda/__init__.py") == "theirs");
    CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/old.py") == "(absent)");
    CHECK(report.branches[0].deleted == 1);
}

TEST_CASE("a published variant is not replaced unless asked", "[upload][publish]") {
    World w;
    w.usual();
    w.hub.commit("v1",
                 {{RelPath::literal("build/" + kVariant + "/__init__.py"), {.content = "other"}}},
                 "published");
    const std::string text = text_of(w.publish());
    CHECK(text.contains("'" + kVariant + "'"));
    CHECK(text.contains("--replace"));
    CHECK(w.hub.count("POST") == 0);
    w.request.dry_run = DryRun::yes;
    CHECK(good(w.publish()).plan.refused_variants == std::vector{kVariant});
    w.request.dry_run = DryRun::no;
    w.request.replace = Replace::yes;
    good(w.publish());
    CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/__init__.py") == "import x\n");
}

TEST_CASE("identical contents travel once", "[upload][publish]") {
    World w;
    w.add_package("torch-cuda", {{"a.so", kLibrary}});
    w.add_package("torch-cpu", {{"a.so", kLibrary}, {"b.so", kLibrary}});
    w.request.input.branch = "v1";
    const UploadReport report = good(w.publish());
    CHECK(report.transfer.blobs_sent == 1);
    CHECK(w.hub.count("PUT /_lfs/") == 1);
    CHECK(content_at(w.hub, "v1", "build/torch-cpu/b.so") == kLibrary);
}

TEST_CASE("parts travel by themselves and are put together", "[upload][publish]") {
    World w;
    w.usual();
    w.hub.multipart = true;
    const UploadReport report = good(w.publish());
    CHECK(w.hub.count("PUT /_lfs/") == 6);
    CHECK(w.hub.count("/_complete/") == 1);
    CHECK(report.transfer.blobs_sent == 1);
    CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/lib.abi3.so") == kLibrary);
}

TEST_CASE("tokens go to the endpoint only, presigned addresses get their own fields",
          "[upload][publish]") {
    World w;
    w.usual();
    std::size_t with_token = 0;
    w.hub.before = [&](std::size_t, const http::Request& request) {
        const bool is_put = request.method == http::Method::put;
        CHECK(request.bearer.empty() == is_put);
        if (is_put) {
            CHECK(request.headers.find("X-Sig") == "s");
        }
        with_token += request.bearer.empty() ? 0U : 1U;
        return std::optional<Result<http::Response>>{};
    };
    good(w.publish());
    CHECK(with_token > 5);
}

TEST_CASE("a repository that was made by half is made whole", "[upload][publish]") {
    World w;
    w.usual();
    w.hub.branches.clear();
    CHECK(good(w.publish()).status == UploadStatus::uploaded);
    CHECK(w.hub.count("POST /api/repos/create") == 1);
    CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/lib.abi3.so") == kLibrary);
}

TEST_CASE("what is not confirmed is sent and not committed", "[upload][publish]") {
    World w;
    w.usual();
    std::size_t calls = 0;
    w.request.confirm = [&calls]() -> Result<void> {
        ++calls;
        return Error{.code = ErrorCode::corrupt, .message = "not what it says"};
    };
    CHECK(text_of(w.publish()).contains("not what it says"));
    CHECK(calls == 1);
    CHECK(w.hub.count("/commit/") == 0);
    CHECK(w.hub.lfs.size() == 1);
}

TEST_CASE("what is refused leaves no repository and no branch behind", "[upload][publish]") {
    const bool has_repository = GENERATE(false, true);
    World w;
    w.usual();
    if (!has_repository) {
        w.hub.branches.clear();
        w.hub.repo_exists = false;
    }
    w.request.confirm = []() -> Result<void> {
        return Error{.code = ErrorCode::corrupt, .message = "not what it says"};
    };
    CHECK(text_of(w.publish()).contains("not what it says"));
    CHECK(w.hub.repo_exists == has_repository);
    CHECK(w.hub.branches.size() == (has_repository ? 1U : 0U));
    w.request.confirm = {};
    CHECK(good(w.publish()).status == UploadStatus::uploaded);
    CHECK(w.hub.branches.size() == 2);
}

TEST_CASE("a branch that another job makes meanwhile is not overwritten",
          "[upload][publish][race]") {
    const bool same_variant = GENERATE(false, true);
    World w;
    w.usual();
    w.hub.before = [&](std::size_t, const http::Request& request) {
        if (request.url.path().ends_with("/branch/v1")) {
            const std::string folder = same_variant ? "build/" + kVariant : "build/torch-cuda";
            w.hub.commit(
                "v1", {{RelPath::literal(folder + "/__init__.py"), {.content = "o"}}}, "o");
        }
        return std::optional<Result<http::Response>>{};
    };
    if (same_variant) {
        CHECK(text_of(w.publish()).contains("--replace"));
        CHECK(w.hub.count("/commit/") == 0);
        return;
    }
    good(w.publish());
    CHECK(content_at(w.hub, "v1", "build/torch-cuda/__init__.py") == "o");
    CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/lib.abi3.so") == kLibrary);
}

TEST_CASE("what is confirmed once is committed on every branch", "[upload][publish]") {
    World w;
    w.usual();
    std::size_t calls = 0;
    w.request.confirm = [&calls]() -> Result<void> {
        ++calls;
        return {};
    };
    CHECK(good(w.publish()).status == UploadStatus::uploaded);
    CHECK(calls == 1);
    CHECK(w.hub.count("/commit/") == 2);
    // Nothing to send is confirmed too.
    CHECK(good(w.publish()).status == UploadStatus::no_changes);
    CHECK(calls == 2);
}

TEST_CASE("a kill after any request loses nothing and repeats no confirmed blob",
          "[upload][publish][kill]") {
    const bool multipart = GENERATE(false, true);
    std::size_t requests = 0;
    {
        World w;
        w.usual();
        w.hub.multipart = multipart;
        w.request.transfer.streams = 1;
        good(w.publish());
        requests = w.hub.log.size();
    }
    REQUIRE(requests > 10);
    for (std::size_t last = 1; last < requests; ++last) {
        INFO("killed after request " << last);
        World w;
        w.usual();
        w.hub.multipart = multipart;
        w.request.transfer.streams = 1;
        w.hub.before = [&](std::size_t n, const http::Request&) {
            return n > last ? std::optional<Result<http::Response>>{Error{
                                  .code = ErrorCode::cancelled, .message = "killed"}}
                            : std::nullopt;
        };
        REQUIRE_FALSE(w.publish().has_value());
        // What readers see is the old or the new state of a branch, never a part of it.
        if (w.hub.branches.contains("v1")) {
            const bool has_library =
                w.hub.files("v1").contains(RelPath::literal("build/" + kVariant + "/lib.abi3.so"));
            const bool has_entry =
                w.hub.files("v1").contains(RelPath::literal("build/" + kVariant + "/__init__.py"));
            CHECK(has_library == has_entry);
        }
        w.hub.before = {};
        const UploadReport report = good(w.publish());
        // After the last commit only the reading back was missing.
        const bool was_complete = last + 1 >= requests;
        CHECK(report.status == (was_complete ? UploadStatus::no_changes : UploadStatus::uploaded));
        CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/lib.abi3.so") == kLibrary);
        CHECK(content_at(w.hub, "main", "README.md") == "card");
        CHECK(w.hub.titles.size() == 3); // initial, version branch, card: no second commit
        // One PUT may have been answered by the kill itself.
        CHECK(w.hub.count("PUT /_lfs/") <= (multipart ? 7U : 2U));
        CHECK_FALSE(w.has_journal());
    }
}

TEST_CASE("a lost answer at any request makes no second commit", "[upload][publish][kill]") {
    std::size_t requests = 0;
    {
        World w;
        w.usual();
        good(w.publish());
        requests = w.hub.log.size();
    }
    const auto* kind = GENERATE("reset", "502");
    for (std::size_t lost = 1; lost <= requests; ++lost) {
        INFO(kind << " after request " << lost);
        World w;
        w.usual();
        w.hub.after = [&](std::size_t n, const http::Request&, http::Response handled) {
            if (n != lost) {
                return Result<http::Response>{std::move(handled)};
            }
            return std::string_view{kind} == "502"
                       ? Result<http::Response>{http::Response{.status = 502}}
                       : Result<http::Response>{
                             Error{.code = ErrorCode::transient, .message = "connection reset"}};
        };
        good(w.publish());
        CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/lib.abi3.so") == kLibrary);
        CHECK(content_at(w.hub, "main", "README.md") == "card");
        CHECK(w.hub.titles.size() == 3);
    }
}

TEST_CASE("another job's disjoint variants are merged on 412", "[upload][publish][race]") {
    World w;
    w.usual();
    w.hub.commit("v1", {{RelPath::literal("build/torch-cuda/a"), {.content = "a"}}}, "first");
    std::atomic<int> races = 0;
    w.hub.before = [&](std::size_t, const http::Request& request) {
        if (request.url.path().ends_with("/commit/v1") && races < 3) {
            ++races;
            w.hub.commit("v1",
                         {{RelPath::literal(fmt::format("build/torch-cpu/{}", races.load())),
                           {.content = "other job"}}},
                         "other job");
        }
        return std::optional<Result<http::Response>>{};
    };
    good(w.publish());
    CHECK(w.hub.count("/commit/v1") == 4);
    CHECK(content_at(w.hub, "v1", "build/torch-cpu/3") == "other job");
    CHECK(content_at(w.hub, "v1", "build/torch-cuda/a") == "a");
    CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/lib.abi3.so") == kLibrary);
}

TEST_CASE("another job that publishes the same variant wins, and we say who",
          "[upload][publish][race]") {
    World w;
    w.usual();
    w.hub.commit("v1", {{RelPath::literal("build/torch-cuda/a"), {.content = "a"}}}, "first");
    w.hub.before = [&](std::size_t, const http::Request& request) {
        if (request.url.path().ends_with("/commit/v1")) {
            w.hub.commit(
                "v1",
                {{RelPath::literal("build/" + kVariant + "/__init__.py"), {.content = "other"}}},
                "same variant");
        }
        return std::optional<Result<http::Response>>{};
    };
    const std::string text = text_of(w.publish());
    CHECK(text.contains("'same variant' by 'bob'"));
    CHECK(text.contains("build/" + kVariant + "/__init__.py"));
    CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/__init__.py") == "other");
    CHECK(content_at(w.hub, "main", "README.md") == "old");
}

TEST_CASE("another job that published exactly this is success", "[upload][publish][race]") {
    World w;
    w.usual();
    w.hub.commit("v1", {{RelPath::literal("build/torch-cuda/a"), {.content = "a"}}}, "first");
    w.hub.before = [&](std::size_t, const http::Request& request) {
        if (request.url.path().ends_with("/commit/v1")) {
            const std::string folder = "build/" + kVariant + "/";
            w.hub.commit(
                "v1",
                {{RelPath::literal(folder + "__init__.py"), {.content = "import x\n"}},
                 {RelPath::literal(folder + "metadata.json"), {.content = "{}"}},
                 {RelPath::literal(folder + "lib.abi3.so"), {.content = kLibrary, .lfs = true}}},
                "twin");
        }
        return std::optional<Result<http::Response>>{};
    };
    const UploadReport report = good(w.publish());
    CHECK(w.hub.count("/commit/v1") == 1);
    CHECK(report.branches[0].commit == w.hub.branches["v1"]);
}

TEST_CASE("a branch that never stands still ends with 412 and its advice",
          "[upload][publish][race]") {
    World w;
    w.usual();
    w.request.replans = 3;
    w.hub.before = [&](std::size_t n, const http::Request& request) {
        if (request.url.path().ends_with("/commit/v1")) {
            w.hub.commit(
                "v1",
                {{RelPath::literal(fmt::format("build/torch-cpu/{}", n)), {.content = "x"}}},
                "busy");
        }
        return std::optional<Result<http::Response>>{};
    };
    CHECK(text_of(w.publish()).contains("status 412"));
    CHECK(w.hub.count("/commit/v1") == 4);
    CHECK(w.has_journal());
}

TEST_CASE("429 waits as long as the registry says", "[upload][publish]") {
    const auto* part = GENERATE("/refs", "/commit/v1", "/preupload", "/_lfs/", "/objects/batch");
    World w;
    w.usual();
    bool refused = false;
    w.hub.before = [&](std::size_t, const http::Request& request) {
        if (!refused && request.url.path().contains(part)) {
            refused = true;
            return std::optional<Result<http::Response>>{
                http::Response{.status = 429, .headers = {{"Retry-After", "33"}}}};
        }
        return std::optional<Result<http::Response>>{};
    };
    good(w.publish());
    CHECK(refused);
    CHECK(w.clock.slept >= std::chrono::seconds{33});
    CHECK(w.clock.slept < std::chrono::seconds{40});
    CHECK(w.hub.titles.size() == 3);
}

TEST_CASE("a registry that stays down ends with its status and a kept journal",
          "[upload][publish]") {
    World w;
    w.usual();
    w.hub.before = [&](std::size_t, const http::Request& request) {
        return request.url.path().ends_with("/commit/v1")
                   ? std::optional<Result<http::Response>>{http::Response{.status = 503}}
                   : std::nullopt;
    };
    CHECK(text_of(w.publish()).contains("status 503"));
    CHECK(w.hub.count("/commit/v1") == 4);
    CHECK(w.has_journal());
    w.hub.before = {};
    const UploadReport report = good(w.publish());
    CHECK(report.transfer.blobs_from_journal == 1);
    CHECK(w.hub.count("PUT /_lfs/") == 1);
}

TEST_CASE("each refusal of a registry has its own words", "[upload][publish]") {
    const auto [status, words] = GENERATE(table<int, const char*>({
        {401, "does not accept the token"},
        {403, "the right to write"},
        {404, "--repo-id"},
        {409, "busy with another change"},
        {413, "too large for this registry"},
        {507, "no space left"},
    }));
    World w;
    w.usual();
    const int code = status;
    w.hub.before = [&](std::size_t, const http::Request& request) {
        return request.url.path().ends_with("/commit/v1")
                   ? std::optional<Result<http::Response>>{http::Response{
                         .status = code, .headers = {{"X-Error-Message", "no hf_secret here"}}}}
                   : std::nullopt;
    };
    const std::string text = text_of(w.publish());
    CHECK(text.contains(words));
    CHECK(text.contains("no *** here"));
    CHECK_FALSE(text.contains("hf_secret"));
    CHECK(w.hub.count("/commit/v1") == 1);
    CHECK(w.clock.slept.count() == 0);
}

TEST_CASE("an error while reading is never an empty tree", "[upload][publish]") {
    const auto [part, status] = GENERATE(table<const char*, int>(
        {{"/tree/", 404}, {"/tree/", 500}, {"/tree/", 403}, {"/refs", 401}, {"/refs", 500}}));
    World w;
    w.usual();
    const std::string_view where = part;
    const int code = status;
    w.hub.before = [&](std::size_t, const http::Request& request) {
        return request.url.path().contains(where)
                   ? std::optional<Result<http::Response>>{http::Response{.status = code}}
                   : std::nullopt;
    };
    CHECK_FALSE(w.publish().has_value());
    CHECK(w.hub.count("POST") == 0);
}

TEST_CASE("a listing in pages is read to its end", "[upload][publish]") {
    World w;
    w.usual();
    FakeHub::Files many;
    for (int i = 0; i < 25; ++i) {
        many[RelPath::literal(fmt::format("build/{}/f{:02}", kVariant, i))] = {.content = "stale"};
    }
    w.hub.commit("v1", many, "many");
    w.hub.page_size = 10;
    w.request.replace = Replace::yes;
    const UploadReport report = good(w.publish());
    CHECK(report.branches[0].deleted == 25);
    CHECK(content_at(w.hub, "v1", fmt::format("build/{}/f24", kVariant)) == "(absent)");
}

TEST_CASE("pages that do not end are an error", "[upload][publish]") {
    World w;
    w.usual();
    w.hub.after = [](std::size_t, const http::Request& request, http::Response handled) {
        if (request.url.path().contains("/tree/")) {
            handled.headers.set("Link", "<" + request.url.to_wire() + ">; rel=\"next\"");
        }
        return Result<http::Response>{std::move(handled)};
    };
    CHECK(text_of(w.publish()).contains("pages do not end"));
}

TEST_CASE("a registry that lies about what it stored is found out", "[upload][publish]") {
    World w;
    w.usual();
    w.hub.after = [&](std::size_t, const http::Request& request, http::Response handled) {
        if (request.url.path().ends_with("/commit/v1")) {
            w.hub.commits[w.hub.branches["v1"].hex()].erase(
                RelPath::literal("build/" + kVariant + "/__init__.py"));
        }
        return Result<http::Response>{std::move(handled)};
    };
    const std::string text = text_of(w.publish());
    CHECK(text.contains("is not what was sent"));
    CHECK(text.contains("__init__.py"));
}

TEST_CASE("a registry that lost confirmed blobs gets them again", "[upload][publish]") {
    World w;
    w.usual();
    w.hub.before = [&](std::size_t, const http::Request& request) {
        return request.url.path().ends_with("/commit/v1")
                   ? std::optional<Result<http::Response>>{Error{.code = ErrorCode::cancelled,
                                                                 .message = "killed"}}
                   : std::nullopt;
    };
    REQUIRE_FALSE(w.publish().has_value());
    w.hub.before = {};
    w.hub.lfs.clear();
    good(w.publish());
    CHECK(w.hub.count("PUT /_lfs/") == 2);
    CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/lib.abi3.so") == kLibrary);
}

TEST_CASE("a registry that lost confirmed parts gets them again", "[upload][publish]") {
    World w;
    w.usual();
    w.hub.multipart = true;
    w.request.transfer.streams = 1;
    w.hub.before = [&](std::size_t, const http::Request& request) {
        return request.url.path().ends_with("/4")
                   ? std::optional<Result<http::Response>>{Error{.code = ErrorCode::cancelled,
                                                                 .message = "killed"}}
                   : std::nullopt;
    };
    REQUIRE_FALSE(w.publish().has_value());
    w.hub.before = {};
    w.hub.parts.clear();
    good(w.publish());
    CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/lib.abi3.so") == kLibrary);
}

TEST_CASE("a killed multipart upload sends only the parts that are missing",
          "[upload][publish][kill]") {
    World w;
    w.usual();
    w.hub.multipart = true;
    w.request.transfer.streams = 1;
    w.hub.before = [&](std::size_t, const http::Request& request) {
        return request.url.path().ends_with("/4")
                   ? std::optional<Result<http::Response>>{Error{.code = ErrorCode::cancelled,
                                                                 .message = "killed"}}
                   : std::nullopt;
    };
    REQUIRE_FALSE(w.publish().has_value());
    w.hub.before = {};
    w.hub.log.clear();
    const UploadReport report = good(w.publish());
    CHECK(report.transfer.parts_resumed == 3);
    CHECK(w.hub.count("PUT /_lfs/") == 3);
}

TEST_CASE("a file that changed after it was read is not published", "[upload][publish]") {
    World w;
    w.usual();
    kb::test::write_text(w.dir / "build" / kVariant / "__init__.py", "import y\n");
    CHECK(text_of(w.publish()).contains("changed while it was published"));
    CHECK(w.hub.count("/commit/v1") == 0);
}

TEST_CASE("a file that the repository ignores is an error", "[upload][publish]") {
    World w;
    w.usual();
    w.hub.ignored_path = "build/" + kVariant + "/__init__.py";
    CHECK(text_of(w.publish()).contains(".gitignore"));
    CHECK(w.hub.count("/commit/") == 0);
}

TEST_CASE("a pull request leaves the branches alone", "[upload][publish][pr]") {
    const bool lose_answer = GENERATE(false, true);
    World w;
    w.usual();
    w.hub.commit("v1", {{RelPath::literal("build/torch-cuda/a"), {.content = "a"}}}, "first");
    w.request.mode = Mode::pull_request;
    w.hub.after = [&](std::size_t, const http::Request& request, http::Response handled) {
        const bool lost = lose_answer && request.url.path().ends_with("/commit/v1") &&
                          w.hub.pull_requests.size() == 1;
        return lost
                   ? Result<http::Response>{Error{.code = ErrorCode::transient, .message = "reset"}}
                   : Result<http::Response>{std::move(handled)};
    };
    const UploadReport report = good(w.publish());
    CHECK(report.status == UploadStatus::pull_request_created);
    CHECK(w.hub.pull_requests.size() == 2); // version branch and card
    CHECK(content_at(w.hub, "v1", "build/" + kVariant + "/lib.abi3.so") == "(absent)");
    CHECK(report.branches[0].pull_request_url == "http://hub.test/kernels/acme/demo/discussions/1");
    CHECK(document::Node{to_output_json(report)}.find("pull_requests")->as_array().size() == 2);
}

TEST_CASE("the summary file has upstream's keys in its order", "[upload][publish]") {
    UploadReport report{.status = UploadStatus::uploaded,
                        .repo_id = "a/b",
                        .branch = "v1",
                        .url = "http://h/kernels/a/b/tree/v1"};
    CHECK(document::write_json(to_output_json(report)) ==
          "{\n"
          "  \"status\": \"uploaded\",\n"
          "  \"repo_id\": \"a/b\",\n"
          "  \"branch\": \"v1\",\n"
          "  \"url\": \"http://h/kernels/a/b/tree/v1\",\n"
          "  \"pull_requests\": []\n"
          "}\n");
    report.status = UploadStatus::no_changes;
    CHECK(to_output_json(report).find("url")->is(document::Node::Kind::null));
    CHECK(to_json(report).text_or("schema") == "kernel-builder/upload/1");
}
