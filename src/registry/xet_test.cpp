// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "hub/xet_chunk.hpp"
#include "hub/xet_hash.hpp"
#include "registry/collect.hpp"
#include "registry/registry_fixture.hpp"
#include "registry/xorb_store.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

namespace kb::registry {
namespace {

using Chunks = std::vector<std::string>;

std::string number(std::uint64_t value, std::size_t width) {
    std::string out;
    for (std::size_t i = 0; i < width; ++i) {
        out += static_cast<char>(value >> (8 * i) & 255U);
    }
    return out;
}

std::string packed_chunk(unsigned scheme, const std::string& packed, std::size_t raw) {
    return number(0, 1) + number(packed.size(), 3) + number(scheme, 1) + number(raw, 3) + packed;
}

std::string xorb_of(const Chunks& chunks) {
    std::string out;
    for (const std::string& chunk : chunks) {
        out += packed_chunk(0, chunk, chunk.size());
    }
    return out;
}

std::vector<hub::XetNode> nodes_of(const Chunks& chunks) {
    std::vector<hub::XetNode> out;
    for (const std::string& chunk : chunks) {
        out.push_back({.hash = hub::xet_chunk_hash(as_bytes(chunk)), .size = chunk.size()});
    }
    return out;
}

hub::XetHash hash_of(const Chunks& chunks) {
    return hub::xet_root(nodes_of(chunks));
}

std::string raw_of(const Chunks& chunks) {
    std::string out;
    for (const std::string& chunk : chunks) {
        out += chunk;
    }
    return out;
}

std::string record(const hub::XetHash& hash, std::initializer_list<std::uint32_t> numbers) {
    std::string out{as_text(std::as_bytes(std::span{hash.bytes}))};
    for (const std::uint32_t n : numbers) {
        out += number(n, 4);
    }
    out.resize(48, '\0');
    return out;
}

/// What a shard says of one file of one xorb; a test changes what it likes.
struct Said {
    explicit Said(const Chunks& chunks)
        : file{hub::xet_file_hash(hash_of(chunks))},
          xorb{hash_of(chunks)},
          verification{hub::xet_range_hash(nodes_of(chunks))},
          sha256{digest::sha256(raw_of(chunks))},
          bytes{static_cast<std::uint32_t>(raw_of(chunks).size())},
          end{static_cast<std::uint32_t>(chunks.size())} {}

    [[nodiscard]] std::string text() const {
        const hub::XetHash bookend{.bytes = [] {
            std::array<std::uint8_t, 32> all{};
            all.fill(255);
            return all;
        }()};
        std::string tag{"HFRepoMetaData\0", 15};
        tag.resize(32, 'x');
        std::string named;
        std::string verified;
        for (std::uint32_t i = 0; i < terms; ++i) {
            named += record(xorb, {0, bytes, first, end});
            verified += record(verification, {});
        }
        return tag + number(2, 8) + number(0, 8) + record(file, {0xC0000000U, terms}) + named +
               verified + record(hub::XetHash::parse(sha256.hex()).value(), {}) +
               record(bookend, {}) + record(bookend, {});
    }

    hub::XetHash file;
    hub::XetHash xorb;
    hub::XetHash verification;
    digest::Digest sha256;
    std::uint32_t bytes;
    std::uint32_t first = 0;
    std::uint32_t end;
    /// How often the file has these chunks, one after the other.
    std::uint32_t terms = 1;
};

class XetFixture : public test::Fixture {
public:
    XetFixture() { make_repo(); }

    std::string token(std::string_view who = "alice", std::string_view repo = "acme/relu") {
        const test::Asked told =
            ask("GET", fmt::format("/api/kernels/{}/xet-write-token/main", repo), {}, who);
        REQUIRE(told.status == 200);
        CHECK(told.json().text_or("casUrl") == "http://reg/api/xet");
        CHECK(told.header("X-Xet-Access-Token") == told.json().text_or("accessToken"));
        return "Bearer " + told.json().text_or("accessToken");
    }

    test::Asked
    put_xorb(const hub::XetHash& hash, const std::string& body, const std::string& bearer) {
        return ask("POST", "/api/xet/v1/xorbs/default/" + hash.text(), body, bearer);
    }

    test::Asked put_shard(const Said& said, const std::string& bearer) {
        return ask("POST", "/api/xet/v1/shards", said.text(), bearer);
    }

    /// Files below xet/ with that ending.
    [[nodiscard]] std::size_t count(std::string_view ending) const {
        std::size_t n = 0;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(root() / "xet")) {
            n += entry.path().string().ends_with(ending) ? 1U : 0U;
        }
        return n;
    }

    test::Asked commit_object(std::string_view path, const std::string& content) {
        return commit(hub::write_line(hub::LfsFileOp{.path = RelPath::literal(path),
                                                     .oid = digest::sha256(content),
                                                     .size = content.size()}));
    }
};

const Chunks kChunks = {std::string(9000, 'a'), "the second chunk", std::string(70'000, 'c')};

TEST_CASE("a file that comes as chunks becomes an object like any other", "[registry][xet]") {
    XetFixture f;
    const std::string bearer = f.token();
    const test::Asked sent = f.put_xorb(hash_of(kChunks), xorb_of(kChunks), bearer);
    REQUIRE(sent.status == 200);
    CHECK(sent.json().find("was_inserted")->as_bool());
    CHECK_FALSE(f.put_xorb(hash_of(kChunks), xorb_of(kChunks), bearer)
                    .json()
                    .find("was_inserted")
                    ->as_bool());
    CHECK(f.count(".data") == 1);
    REQUIRE(f.put_shard(Said{kChunks}, bearer).status == 200);
    const std::string content = raw_of(kChunks);
    REQUIRE(f.commit_object("build/a.so", content).status == 200);
    const test::Asked got = f.ask("GET", "/kernels/acme/relu/resolve/main/build/a.so");
    CHECK(got.body == content);
    CHECK(got.header("X-Linked-Etag") == "\"" + digest::sha256(content).hex() + "\"");
    CHECK(got.header("X-Xet-Hash").empty());
    // The packed bytes are no longer needed; the same shard again is success.
    CHECK(f.count(".data") == 0);
    CHECK(f.put_shard(Said{kChunks}, bearer).status == 200);
    CHECK(f.failures.empty());
}

TEST_CASE("chunks that were sent once make other files later, in all repositories of the user",
          "[registry][xet]") {
    XetFixture f;
    REQUIRE(f.put_xorb(hash_of(kChunks), xorb_of(kChunks), f.token()).status == 200);
    REQUIRE(f.put_shard(Said{kChunks}, f.token()).status == 200);
    f.make_repo("acme/other");
    const Chunks tail = {kChunks[1], kChunks[2]};
    Said said{tail};
    said.xorb = hash_of(kChunks);
    said.first = 1;
    said.end = 3;
    REQUIRE(f.put_shard(said, f.token("alice", "acme/other")).status == 200);
    CHECK(f.service().has_object(2, {.oid = said.sha256, .size = said.bytes}, Pin::no).value());
    // Another user did not send it: knowing the hash gives nothing.
    f.ask(
        "POST", "/api/repos/create", R"({"type":"kernel","organization":"bob","name":"x"})", "bob");
    const test::Asked stolen = f.put_shard(Said{kChunks}, f.token("bob", "bob/x"));
    CHECK(stolen.status == 400);
    CHECK(stolen.body.contains("HF_HUB_DISABLE_XET=1"));
}

TEST_CASE("what is said of chunks and is not so makes nothing", "[registry][xet]") {
    struct Row {
        std::string name{};
        std::function<void(Said&)> change{};
    };

    const Row row = GENERATE(values<Row>({
        {"another file hash",
         [](Said& s) {
             s.file.bytes[0] ^= 1U;
         }},
        {"a xorb that is not here",
         [](Said& s) {
             s.xorb.bytes[0] ^= 1U;
         }},
        {"another verification",
         [](Said& s) {
             s.verification.bytes[0] ^= 1U;
         }},
        {"another sha256",
         [](Said& s) {
             s.sha256.bytes[0] ^= 1U;
         }},
        {"another length",
         [](Said& s) {
             ++s.bytes;
         }},
        {"chunks past the end",
         [](Said& s) {
             s.end = 4;
         }},
        {"chunks far past the end",
         [](Said& s) {
             s.end = 0xFFFFFFFFU;
         }},
        {"fewer chunks",
         [](Said& s) {
             s.first = 1;
         }},
        {"no chunks",
         [](Said& s) {
             s.first = s.end;
         }},
    }));
    CAPTURE(row.name);
    XetFixture f;
    const std::string bearer = f.token();
    REQUIRE(f.put_xorb(hash_of(kChunks), xorb_of(kChunks), bearer).status == 200);
    Said said{kChunks};
    row.change(said);
    CHECK(f.put_shard(said, bearer).status == 400);
    CHECK(f.blobs().list().value().empty());
    CHECK(f.commit_object("a.so", raw_of(kChunks)).status >= 400);
    CHECK(f.failures.empty());
    CHECK(std::filesystem::is_empty(f.root() / "tmp"));
}

TEST_CASE("a short shard that names very many chunks costs little", "[registry][xet]") {
    XetFixture f;
    const std::string bearer = f.token();
    const Chunks crumbs(5000, "x");
    REQUIRE(f.put_xorb(hash_of(crumbs), xorb_of(crumbs), bearer).status == 200);
    Said many{crumbs};
    many.terms = 3;
    const test::Asked refused = f.put_shard(many, bearer);
    CHECK(refused.status == 400);
    CHECK(refused.body.contains("has too many small chunks"));
    // A chunk that a file has often: its place is written down once.
    const Chunks often(100, kChunks[1]);
    REQUIRE(f.put_xorb(hash_of({kChunks[1]}), xorb_of({kChunks[1]}), bearer).status == 200);
    Said said{often};
    said.xorb = hash_of({kChunks[1]});
    said.verification = hub::xet_range_hash(nodes_of({kChunks[1]}));
    said.bytes = static_cast<std::uint32_t>(kChunks[1].size());
    said.end = 1;
    said.terms = 100;
    REQUIRE(f.put_shard(said, bearer).status == 200);
    CHECK(f.commit_object("a.so", raw_of(often)).status == 200);
    std::uintmax_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(f.root() / "xet")) {
        bytes += entry.path().string().ends_with(".places") ? entry.file_size() : 0U;
    }
    CHECK(bytes == 48);
    CHECK(f.failures.empty());
}

TEST_CASE("what is no xorb is refused and not kept", "[registry][xet]") {
    // A frame of LZ4 that goes on after the bytes it was said to hold.
    const std::string bomb = number(0x184D2204, 4) + number(0x824060, 3) + number(7, 4) +
                             number(0x1F, 1) + "z" + number(1, 2) + number(0x00FFFF, 3);
    Chunks many(hub::kMaxXorbChunks + 1, "x");
    const auto [name, body, status] = GENERATE_REF(table<const char*, std::string, int>({
        {"nothing", "", 400},
        {"other chunks", xorb_of({"other"}), 400},
        {"chunks in another order", xorb_of({kChunks[1], kChunks[0], kChunks[2]}), 400},
        {"a cut chunk", xorb_of(kChunks).substr(0, 5000), 400},
        {"a cut header", xorb_of(kChunks) + "abc", 400},
        {"an unknown scheme", packed_chunk(7, "abc", 3), 400},
        {"a chunk over the limit", packed_chunk(1, "abc", 131'073), 400},
        {"a bomb", packed_chunk(1, bomb, 9), 400},
        {"no frame", packed_chunk(2, "no frame of any kind", 20), 400},
        {"too many chunks", xorb_of(many), 413},
        {"a footer without end",
         xorb_of(kChunks) + "XETBLOB\1" + std::string((1UL << 20U) + 1, 'f'),
         413},
    }));
    CAPTURE(name);
    XetFixture f;
    CHECK(f.put_xorb(hash_of(kChunks), body, f.token()).status == status);
    CHECK(f.count("") == 0);
    CHECK(std::filesystem::is_empty(f.root() / "tmp"));
    CHECK(f.failures.empty());
}

TEST_CASE("a footer of older clients is passed over", "[registry][xet]") {
    XetFixture f;
    const std::string body = xorb_of(kChunks) + "XETBLOB\1" + std::string(500, 'f');
    CHECK(f.put_xorb(hash_of(kChunks), body, f.token()).status == 200);
    CHECK(f.put_shard(Said{kChunks}, f.token()).status == 200);
}

TEST_CASE("a Xet token is for its purpose, its user and an hour", "[registry][xet]") {
    XetFixture f;
    CHECK(f.ask("GET", "/api/kernels/acme/relu/xet-write-token/main", {}, "reader").status == 403);
    CHECK(f.ask("GET", "/api/kernels/acme/relu/xet-write-token/main", {}, "").status == 401);
    const std::string good = f.token();
    const std::string longer = replace_all(good, ".18000", ".19000");
    REQUIRE(longer != good);
    for (const std::string& bearer : {std::string{"alice"},
                                      std::string{},
                                      std::string{"Bearer x"},
                                      std::string{"Bearer 1.2"},
                                      replace_all(good, "alice", "carol"),
                                      replace_all(good, "Bearer 1.", "Bearer 2."),
                                      longer,
                                      good + "0"}) {
        CAPTURE(bearer);
        CHECK(f.put_xorb(hash_of(kChunks), xorb_of(kChunks), bearer).status == 401);
        CHECK(f.put_shard(Said{kChunks}, bearer).status == 401);
    }
    // Nor is it a token for anything else.
    CHECK(f.ask("GET", "/api/whoami-v2", {}, good).status == 401);
    f.clock.seconds += 3601;
    CHECK(f.put_shard(Said{kChunks}, good).status == 401);
    CHECK(f.count("") == 0);
}

TEST_CASE("a client whose other way is the commit itself is told to use Xet", "[registry][xet]") {
    const auto [agent, transfers, answer] = GENERATE(table<const char*, const char*, const char*>({
        {"hf-hub/1.1.0", R"("basic","multipart","xet")", "xet"},
        {"hf-hub/1.1.0", R"("basic","multipart")", "basic"},
        {"@huggingface/hub", R"("basic","multipart","xet")", "basic"},
    }));
    XetFixture f;
    const test::Asked batch = f.ask("POST",
                                    "/kernels/acme/relu.git/info/lfs/objects/batch",
                                    fmt::format(R"({{"operation":"upload","transfers":[{}],)"
                                                R"("objects":[{{"oid":"{}","size":1}}]}})",
                                                transfers,
                                                digest::sha256("x").hex()),
                                    "alice",
                                    {{"User-Agent", agent}});
    REQUIRE(batch.status == 200);
    CHECK(batch.json().text_or("transfer") == answer);
}

TEST_CASE("a xorb is known for as long as clients remember it, and so are its bytes",
          "[registry][xet][gc]") {
    XetFixture f;
    sys::FileSystem& fs = sys::real_file_system();
    REQUIRE(f.put_xorb(hash_of(kChunks), xorb_of(kChunks), f.token()).status == 200);
    REQUIRE(f.put_shard(Said{kChunks}, f.token()).status == 200);
    f.close();
    // No commit names the object: it goes, its bytes stay.
    const std::int64_t later = f.clock.seconds + 10 * 86'400;
    REQUIRE(collect(fs, f.root(), {.before = later}).has_value());
    f.open();
    CHECK(f.commit_object("a.so", raw_of(kChunks)).status >= 400);
    REQUIRE(f.put_shard(Said{kChunks}, f.token()).status == 200);
    CHECK(f.commit_object("a.so", raw_of(kChunks)).status == 200);
    f.close();
    const std::int64_t much_later = f.clock.seconds + kXorbLifetime + 1;
    CHECK(sweep_xorbs(fs, f.root() / "xet", much_later - kXorbLifetime).value() == 1);
    CHECK(f.count("a") + f.count("s") == 0);
    f.open();
    CHECK(f.put_shard(Said{{"another file"}}, f.token()).status == 400);
}

} // namespace
} // namespace kb::registry
