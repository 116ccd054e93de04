// SPDX-License-Identifier: Apache-2.0
#include "registry/parts.hpp"

#include "registry/fsck.hpp"
#include "registry/registry_fixture.hpp"

namespace kb::registry::test {

namespace {

constexpr std::uint64_t kPart = 1000;

/// 4,500 bytes that differ from part to part.
std::string make_content() {
    std::string content;
    for (int i = 0; content.size() < 4500; ++i) {
        content += fmt::format("{} ", i);
    }
    content.resize(4500);
    return content;
}

/// What a client gets to send an object in parts.
struct Plan {
    hub::LfsMultipart parts{};
    std::string complete{};
    std::string oid{};
};

Plan plan_upload(Fixture& f, std::string_view content, std::string_view who = "alice") {
    const std::string oid = digest::sha256(content).hex();
    const Asked batch =
        f.ask("POST",
              "/kernels/acme/relu.git/info/lfs/objects/batch",
              fmt::format(R"({{"operation":"upload","transfers":["basic","multipart"],)"
                          R"("objects":[{{"oid":"{}","size":{}}}]}})",
                          oid,
                          content.size()),
              who);
    REQUIRE(batch.status == 200);
    const auto answer = hub::parse_batch_answer(batch.json());
    REQUIRE(answer.has_value());
    CHECK(answer->transfer == "multipart");
    REQUIRE(answer->objects.at(0).upload.has_value());
    const auto parts = hub::parse_multipart(*answer->objects.at(0).upload, content.size());
    REQUIRE(parts.has_value());
    return {.parts = *parts, .complete = answer->objects.at(0).upload->href.substr(10), .oid = oid};
}

std::string part_of(std::string_view content, std::uint64_t number) {
    return std::string{content.substr((number - 1) * kPart, kPart)};
}

Asked put(Fixture& f, const Plan& plan, std::uint64_t number, std::string body) {
    return f.ask("PUT", plan.parts.part_urls.at(number - 1).substr(10), std::move(body), "");
}

Asked complete(Fixture& f, const Plan& plan, const std::vector<hub::LfsPart>& parts) {
    const hub::LfsCompletion body{.oid = *digest::Digest::from_hex(plan.oid), .parts = parts};
    return f.ask("POST", plan.complete, document::write_json(hub::to_json(body)), "");
}

std::vector<hub::LfsPart> put_all(Fixture& f, const Plan& plan, std::string_view content) {
    std::vector<hub::LfsPart> parts;
    for (std::uint64_t i = plan.parts.part_urls.size(); i >= 1; --i) {
        const Asked sent = put(f, plan, i, part_of(content, i));
        REQUIRE(sent.status == 200);
        parts.push_back({.number = i, .etag = sent.header("ETag")});
    }
    return parts;
}

std::size_t uploads_under_way(const Fixture& f) {
    return sys::real_file_system().list(RootPaths{f.root()}.parts())->size();
}

} // namespace

TEST_CASE("an object comes in parts, in any order, and is the file it was", "[registry][parts]") {
    Fixture f{{.part_bytes = kPart}};
    f.make_repo();
    const std::string content = make_content();
    const Plan plan = plan_upload(f, content);
    REQUIRE(plan.parts.part_urls.size() == 5);
    CHECK(plan.parts.chunk_size == kPart);
    const std::vector<hub::LfsPart> parts = put_all(f, plan, content);
    CHECK(complete(f, plan, parts).status == 200);
    CHECK(complete(f, plan, parts).status == 200); // the first answer may have been lost
    CHECK(uploads_under_way(f) == 0);
    CHECK(f.commit(hub::write_line(hub::LfsFileOp{.path = RelPath::literal("k.so"),
                                                  .oid = *digest::Digest::from_hex(plan.oid),
                                                  .size = content.size()}))
              .status == 200);
    CHECK(f.ask("GET", "/kernels/acme/relu/resolve/main/k.so").body == content);
    CHECK(fsck(sys::real_file_system(), f.root())->problems.empty());
}

TEST_CASE("parts survive the server and are found by a client that asks again",
          "[registry][parts]") {
    Fixture f{{.part_bytes = kPart}};
    f.make_repo();
    const std::string content = make_content();
    const Plan first = plan_upload(f, content);
    std::vector<hub::LfsPart> parts;
    for (const std::uint64_t i : {1U, 2U, 3U}) {
        parts.push_back(
            {.number = i, .etag = put(f, first, i, part_of(content, i)).header("ETag")});
    }
    f.open(); // as after a kill
    const Plan second = plan_upload(f, content);
    for (const std::uint64_t i : {4U, 5U}) {
        parts.push_back(
            {.number = i, .etag = put(f, second, i, part_of(content, i)).header("ETag")});
    }
    CHECK(complete(f, second, parts).status == 200);
}

TEST_CASE("a list of parts that does not fit completes nothing", "[registry][parts]") {
    Fixture f{{.part_bytes = kPart}};
    f.make_repo();
    const std::string content = make_content();
    const Plan plan = plan_upload(f, content);
    const std::vector<hub::LfsPart> good = put_all(f, plan, content);
    std::vector<hub::LfsPart> twice = good;
    twice[1] = twice[0];
    std::vector<hub::LfsPart> zero = good;
    zero[0].number = 0;
    std::vector<hub::LfsPart> beyond = good;
    beyond.push_back({.number = 6, .etag = "\"x\""});
    std::vector<hub::LfsPart> wrong = good;
    wrong[2].etag = "\"0123\"";
    const std::vector<hub::LfsPart> missing{good.begin(), good.end() - 1};
    for (const auto& list : {twice, zero, beyond, wrong, missing, std::vector<hub::LfsPart>{}}) {
        CHECK(complete(f, plan, list).status == 422);
    }
    // A part that comes again is another part; the old confirmation is worth nothing.
    const Asked again = put(f, plan, 1, part_of(content, 1));
    CHECK(complete(f, plan, good).status == 422);
    std::vector<hub::LfsPart> renewed = good;
    renewed.back().etag = again.header("ETag");
    CHECK(complete(f, plan, renewed).status == 200);
}

TEST_CASE("parts that are not the object leave nothing", "[registry][parts]") {
    Fixture f{{.part_bytes = kPart}};
    f.make_repo();
    const std::string content = make_content();
    const Plan plan = plan_upload(f, content);
    std::string other = content;
    other[2500] = '!';
    const std::vector<hub::LfsPart> parts = put_all(f, plan, other);
    CHECK(complete(f, plan, parts).status == 422);
    CHECK(f.blobs().list()->empty());
    CHECK(uploads_under_way(f) == 0);
    CHECK(put(f, plan, 1, "short").status == 422);
    CHECK(put(f, plan, 1, std::string(kPart + 1, 'x')).status == 422);
    CHECK(put(f, plan, 5, std::string(kPart, 'x')).status == 422); // the last one has 500
}

TEST_CASE("an address of a part is good for that part, user and object only", "[registry][parts]") {
    Fixture f{{.part_bytes = kPart}};
    f.make_repo();
    const std::string content = make_content();
    const Plan plan = plan_upload(f, content);
    const std::string url = plan.parts.part_urls[0].substr(10);
    const auto changed = [&](std::string_view from, std::string_view to) {
        std::string text = url;
        text.replace(text.find(from), from.size(), to);
        return f.ask("PUT", text, part_of(content, 1), "").status;
    };
    CHECK(changed("/parts/1", "/parts/2") == 403);
    CHECK(changed("part-bytes=1000", "part-bytes=2000") == 403);
    CHECK(changed("size=4500", "size=4501") == 403);
    CHECK(changed("user=alice", "user=bob") == 403);
    CHECK(changed("/parts/1", "") == 403);
    // Another user has another upload: these parts are not his.
    std::vector<hub::LfsPart> parts = put_all(f, plan, content);
    const Plan other = plan_upload(f, content, "root");
    CHECK(complete(f, other, parts).status == 422);
    const hub::LfsCompletion wrong{.oid = digest::sha256("x"), .parts = parts};
    CHECK(f.ask("POST", plan.complete, document::write_json(hub::to_json(wrong)), "").status ==
          403);
    f.clock.seconds += 3 * 3600;
    CHECK(put(f, plan, 1, part_of(content, 1)).status == 403);
}

TEST_CASE("clients without parts, and small objects, send one piece", "[registry][parts]") {
    Fixture f{{.part_bytes = kPart}};
    f.make_repo();
    CHECK(f.put_object(make_content()) == 200); // asks for "basic" only
    const std::string oid = digest::sha256("small").hex();
    const Asked batch =
        f.ask("POST",
              "/kernels/acme/relu.git/info/lfs/objects/batch",
              fmt::format(R"({{"operation":"upload","transfers":["multipart","basic"],)"
                          R"("objects":[{{"oid":"{}","size":5}}]}})",
                          oid));
    CHECK(hub::parse_batch_answer(batch.json())->transfer == "basic");
}

TEST_CASE("the size of parts grows with the object", "[registry][parts]") {
    constexpr std::uint64_t kMiB = 1UL << 20U;
    CHECK(choose_part_bytes(100 * kMiB, 32 * kMiB) == 32 * kMiB);
    CHECK(choose_part_bytes(50'000 * kMiB, 32 * kMiB) == 51 * kMiB);
    for (const std::uint64_t size : {kMiB, 999 * kMiB, 1001 * kMiB, 123'456'789'012UL}) {
        CHECK(hub::part_count(size, choose_part_bytes(size, kMiB)) <= 1000);
    }
}

TEST_CASE("uploads that nobody goes on with are swept", "[registry][parts]") {
    const kb::test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    CHECK(sweep_parts(fs, dir / "none", 0).value() == 0);
    kb::test::write_text(dir / "parts/old/data", "x");
    kb::test::write_text(dir / "parts/new/data", "x");
    REQUIRE(fs.set_mtime(dir / "parts/old", 1000).has_value());
    CHECK(sweep_parts(fs, dir / "parts", 2000).value() == 1);
    CHECK_FALSE(sys::exists(fs, dir / "parts/old"));
    CHECK(sys::exists(fs, dir / "parts/new/data"));
}

} // namespace kb::registry::test
