// SPDX-License-Identifier: Apache-2.0
#include "digest/digest.hpp"
#include "document/json.hpp"
#include "hub/xet_chunk.hpp"
#include "hub/xet_hash.hpp"
#include "hub/xet_shard.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <fmt/format.h>

#include <cstring>

namespace kb::hub {
namespace {

using document::Node;

/// What the vectors call "lcg(4000000,seed=6)", "zeros(..)", "text(..)" and "f32(..)".
std::string make_input(const std::string& name, std::size_t size) {
    std::string out;
    if (name.starts_with("lcg")) {
        std::uint64_t x = std::stoul(name.substr(name.find('=') + 1));
        for (std::size_t i = 0; i < size; ++i) {
            x = x * 6364136223846793005U + 1442695040888963407U;
            out += static_cast<char>((x >> 33U) & 255U);
        }
    } else if (name.starts_with("zeros")) {
        out.resize(size);
    } else if (name.starts_with("text")) {
        for (std::size_t i = 0; out.size() < size; ++i) {
            out += fmt::format("line {} of a kernel source file\n", i);
        }
        out.resize(size);
    } else {
        for (std::size_t i = 0; i < size / 4; ++i) {
            const float value = static_cast<float>(i) / 1024.0F;
            std::string bytes(4, '\0');
            std::memcpy(bytes.data(), &value, 4);
            out += bytes;
        }
    }
    return out;
}

std::uint64_t number(const Node& node) {
    return static_cast<std::uint64_t>(node.as_int());
}

/// The chunks of the one xorb of a case, and a check of each hash on the way.
std::vector<XetNode> check_chunks(const Node& xorb, const std::string& input) {
    std::vector<XetNode> nodes;
    std::size_t at = 0;
    for (const Node& chunk : xorb.find("chunks")->as_array()) {
        const std::uint64_t size = number(chunk.as_array()[1]);
        const XetHash hash = xet_chunk_hash(as_bytes(std::string_view{input}.substr(at, size)));
        CHECK(hash.text() == chunk.as_array()[0].as_string());
        nodes.push_back({.hash = hash, .size = size});
        at += size;
    }
    CHECK(xet_root(nodes).text() == xorb.find("hash")->as_string());
    return nodes;
}

TEST_CASE("hashes of chunks, xorbs, files and terms are those of other clients", "[hub][xet]") {
    const auto vectors = document::parse_json(
        test::read_text(test::source_dir() / "tests/golden/hub/xet-vectors.json"), {});
    REQUIRE(vectors);
    for (const Node& item : vectors->find("cases")->as_array()) {
        const std::string name = item.text_or("input");
        CAPTURE(name);
        const std::string input = make_input(name, number(*item.find("size")));
        CHECK(digest::sha256(input).hex() == item.text_or("sha256"));
        REQUIRE(item.find("xorbs")->as_array().size() == 1);
        const auto nodes = check_chunks(item.find("xorbs")->as_array()[0], input);
        std::vector<XetNode> file;
        for (const Node& term : item.find("terms")->as_array()) {
            const auto first = static_cast<std::ptrdiff_t>(number(*term.find("start")));
            const auto end = static_cast<std::ptrdiff_t>(number(*term.find("end")));
            const std::vector<XetNode> range{nodes.begin() + first, nodes.begin() + end};
            CHECK(xet_range_hash(range).text() == term.text_or("verification"));
            file.insert(file.end(), range.begin(), range.end());
        }
        CHECK(xet_file_hash(xet_root(file)).text() == item.text_or("file"));
    }
}

TEST_CASE("the text of a hash is four little-endian numbers", "[hub][xet]") {
    XetHash hash;
    for (std::size_t i = 0; i < hash.bytes.size(); ++i) {
        hash.bytes[i] = static_cast<std::uint8_t>(i);
    }
    CHECK(hash.text() == "07060504030201000f0e0d0c0b0a09081716151413121110"
                         "1f1e1d1c1b1a1918");
    CHECK(XetHash::parse(hash.text()).value() == hash);
    CHECK_FALSE(XetHash::parse(std::string(64, 'G')));
    CHECK_FALSE(XetHash::parse(std::string(63, 'a')));
}

std::string bytes_of(std::initializer_list<unsigned> values) {
    std::string out;
    for (const unsigned value : values) {
        out += static_cast<char>(value);
    }
    return out;
}

/// magic, version 1 with independent blocks, 64 KiB blocks, a checksum nobody reads.
const std::string kFrame = bytes_of({0x04, 0x22, 0x4D, 0x18, 0x60, 0x40, 0x82});
const std::string kEnd = bytes_of({0, 0, 0, 0});

std::string block(const std::string& content, unsigned high_bit = 0) {
    return bytes_of({static_cast<unsigned>(content.size()), 0, 0, high_bit}) + content;
}

TEST_CASE("an LZ4 frame unpacks to what was packed", "[hub][xet]") {
    std::string out;
    // Literals "abcd", a match of 8 at distance 4, literals "xyz".
    const std::string packed = block(bytes_of({0x44}) + "abcd" + bytes_of({4, 0, 0x30}) + "xyz");
    REQUIRE(decode_lz4_frame(as_bytes(kFrame + packed + kEnd), 15, out));
    CHECK(out == "abcdabcdabcdxyz");
    // A run, packed as a match that reads what it writes; 15 + 255 + 6 + 4 of them.
    const std::string run = block(bytes_of({0x1F}) + "z" + bytes_of({1, 0, 255, 6, 0x00}));
    REQUIRE(decode_lz4_frame(as_bytes(kFrame + run + kEnd), 281, out));
    CHECK(out == std::string(281, 'z'));
    // Stored blocks, and a match that reaches into the block before.
    const std::string two = block("hello ", 0x80) + block(bytes_of({0x02, 6, 0, 0x10}) + "!");
    REQUIRE(decode_lz4_frame(as_bytes(kFrame + two + kEnd), 13, out));
    CHECK(out == "hello hello !");
    // With checksums of blocks and content, and the size of the content.
    const std::string rich = bytes_of({0x04, 0x22, 0x4D, 0x18, 0x7C, 0x40}) + std::string(8, 'n') +
                             "c" + block("data", 0x80) + "sums" + kEnd + "sums";
    REQUIRE(decode_lz4_frame(as_bytes(rich), 4, out));
    CHECK(out == "data");
}

TEST_CASE("an LZ4 frame that lies is refused", "[hub][xet]") {
    const auto [name, frame, size] = GENERATE(table<const char*, std::string, std::size_t>({
        {"nothing", "", 1},
        {"another magic", "PK34" + kFrame.substr(4) + block("a", 0x80) + kEnd, 1},
        {"a dictionary", bytes_of({0x04, 0x22, 0x4D, 0x18, 0x61, 0x40, 0x82}) + kEnd, 1},
        {"no end", kFrame + block("a", 0x80), 1},
        {"bytes behind its end", kFrame + block("a", 0x80) + kEnd + "x", 1},
        {"more than was said", kFrame + block("abc", 0x80) + kEnd, 2},
        {"less than was said", kFrame + block("abc", 0x80) + kEnd, 4},
        {"a bomb",
         kFrame + block(bytes_of({0x1F}) + "z" + bytes_of({1, 0, 255, 255, 255, 0, 0})),
         9},
        {"a match before the begin", kFrame + block(bytes_of({0x10}) + "z" + bytes_of({2, 0})), 9},
        {"a match at distance 0", kFrame + block(bytes_of({0x10}) + "z" + bytes_of({0, 0})), 9},
        {"literals past the block", kFrame + block(bytes_of({0xF0, 200}) + "z") + kEnd, 9},
        {"a block past the frame", kFrame + bytes_of({255, 255, 255, 0x7F}) + "z", 9},
    }));
    CAPTURE(name);
    std::string out;
    const auto decoded = decode_lz4_frame(as_bytes(frame), size, out);
    REQUIRE_FALSE(decoded);
    CHECK(decoded.error().code == ErrorCode::corrupt);
    CHECK(out.size() <= size);
}

std::string chunk_header(unsigned scheme, std::uint32_t packed, std::uint32_t raw) {
    return bytes_of({0,
                     packed & 255U,
                     packed >> 8U & 255U,
                     packed >> 16U,
                     scheme,
                     raw & 255U,
                     raw >> 8U & 255U,
                     raw >> 16U});
}

TEST_CASE("a chunk is as it was packed", "[hub][xet]") {
    std::string out;
    const auto unpack = [&](unsigned scheme, const std::string& packed, std::uint32_t raw) {
        const auto header = parse_xet_chunk_header(
            as_bytes(chunk_header(scheme, static_cast<std::uint32_t>(packed.size()), raw)));
        REQUIRE(header);
        return unpack_xet_chunk(*header, as_bytes(packed), out).has_value();
    };
    CHECK(unpack(0, "plain", 5));
    CHECK(out == "plain");
    CHECK(unpack(1, kFrame + block("plain", 0x80) + kEnd, 5));
    CHECK(out == "plain");
    // Seven bytes, sorted by their place modulo four.
    CHECK(unpack(2, kFrame + block("aebfcgd", 0x80) + kEnd, 7));
    CHECK(out == "abcdefg");
    CHECK_FALSE(unpack(1, kFrame + block("plain", 0x80) + kEnd, 6));
    CHECK(is_xorb_footer(as_bytes("XETBLOB\1")));
    CHECK_FALSE(is_xorb_footer(as_bytes(chunk_header(0, 1, 1))));
}

TEST_CASE("a header of a chunk that no client writes is refused", "[hub][xet]") {
    const auto header = GENERATE(values<std::string>({chunk_header(3, 1, 1),
                                                      "\1" + chunk_header(0, 1, 1).substr(1),
                                                      chunk_header(0, 1, 2),
                                                      chunk_header(0, 0, 0),
                                                      chunk_header(1, 0, 9),
                                                      chunk_header(1, 9, 0),
                                                      chunk_header(1, 9, 131073),
                                                      chunk_header(1, 1000, 9),
                                                      "short"}));
    CHECK_FALSE(parse_xet_chunk_header(as_bytes(header)));
}

std::string record(std::string_view hash, std::initializer_list<std::uint32_t> numbers) {
    std::string out{hash};
    out.resize(32, '\0');
    for (const std::uint32_t n : numbers) {
        out += bytes_of({n & 255U, n >> 8U & 255U, n >> 16U & 255U, n >> 24U});
    }
    out.resize(48, '\0');
    return out;
}

const std::string kTag = record(std::string_view{"HFRepoMetaData\0 17 fixed bytes..", 32}, {2});
const std::string kBookend = std::string(32, '\xFF') + std::string(16, '\0');

TEST_CASE("a shard names files by runs of chunks", "[hub][xet]") {
    const digest::Digest sha = digest::sha256("content");
    XetHash stored = XetHash::parse(sha.hex()).value();
    const std::string shard =
        kTag + record("file", {0xC0000000U, 2}) + record("xorb", {0, 100, 3, 5}) +
        record("xorb", {0, 50, 0, 1}) + record("check 1", {}) + record("check 2", {}) +
        record({reinterpret_cast<const char*>(stored.bytes.data()), 32}, {}) +
        record("plain", {0, 1}) + record("other", {0, 7, 0, 1}) + kBookend +
        record("xorb", {0, 1, 9, 9}) + record("chunk", {0, 9}) + kBookend + "a footer";
    const auto files = parse_shard(as_bytes(shard));
    REQUIRE(files);
    REQUIRE(files->size() == 2);
    const XetFile& file = files->front();
    REQUIRE(file.terms.size() == 2);
    CHECK(file.terms[0].first == 3);
    CHECK(file.terms[0].end == 5);
    CHECK(file.terms[1].verification->bytes[6] == '2');
    CHECK(file.size() == 150);
    CHECK(file.sha256 == sha);
    CHECK_FALSE(files->back().sha256);
    CHECK_FALSE(files->back().terms[0].verification);
    // Every shorter one is refused.
    const std::string whole = shard.substr(0, shard.size() - 8);
    for (std::size_t size = 0; size < whole.size(); size += 16) {
        CHECK_FALSE(parse_shard(as_bytes(std::string_view{whole}.substr(0, size))));
    }
}

TEST_CASE("a shard that lies about its lengths is refused", "[hub][xet]") {
    const auto [name, shard] = GENERATE(table<const char*, std::string>({
        {"another tag", record("PK", {2}) + kBookend + kBookend},
        {"another version", kTag.substr(0, 32) + record("", {3}).substr(32) + kBookend + kBookend},
        {"too many terms", kTag + record("f", {0, 0xFFFFFFFFU}) + kBookend + kBookend},
        {"no terms", kTag + record("f", {0, 0}) + kBookend + kBookend},
        {"a term of nothing",
         kTag + record("f", {0, 1}) + record("x", {0, 1, 3, 3}) + kBookend + kBookend},
        {"a term that ends before it begins",
         kTag + record("f", {0, 1}) + record("x", {0, 1, 3, 2}) + kBookend + kBookend},
        {"too many chunks", kTag + kBookend + record("x", {0, 0xFFFFFFFFU}) + kBookend},
    }));
    CAPTURE(name);
    CHECK_FALSE(parse_shard(as_bytes(shard)));
}

} // namespace
} // namespace kb::hub
