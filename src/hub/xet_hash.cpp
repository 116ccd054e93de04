// SPDX-License-Identifier: Apache-2.0
#include "hub/xet_hash.hpp"

#include "base/text.hpp"
#include "digest/blake3.hpp"
#include "digest/digest.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::hub {

namespace {

using digest::Blake3Value;

// The keys of the protocol's hashes of chunks, of inner nodes and of verification entries.
constexpr Blake3Value kChunkKey = {102, 151, 245, 119, 91,  149, 80,  222, 49,  53,  203,
                                   172, 165, 151, 24,  28,  157, 228, 33,  16,  155, 235,
                                   43,  88,  180, 208, 176, 75,  147, 173, 242, 41};
constexpr Blake3Value kNodeKey = {1,   126, 197, 199, 165, 71,  41,  150, 253, 148, 102,
                                  102, 180, 138, 2,   230, 93,  221, 83,  111, 55,  199,
                                  109, 210, 248, 99,  82,  230, 74,  83,  113, 63};
constexpr Blake3Value kRangeKey = {127, 24,  87,  214, 206, 86,  237, 102, 18,  127, 249,
                                   19,  231, 165, 195, 243, 164, 205, 38,  213, 181, 219,
                                   73,  230, 65,  36,  152, 127, 40,  251, 148, 195};
constexpr std::size_t kGroup = 8;
constexpr std::size_t kMostOfGroup = 9;

/// How many of the nodes become one parent. The content decides, so that equal runs of chunks make
/// equal nodes wherever they begin.
std::size_t group_size(std::span<const XetNode> nodes) {
    if (nodes.size() <= 2) {
        return nodes.size();
    }
    const std::size_t most = std::min(kMostOfGroup, nodes.size());
    for (std::size_t i = 2; i < most; ++i) {
        if (nodes[i].hash.bytes[24] % 4 == 0) { // of the last of the four numbers
            return i + 1;
        }
    }
    return most;
}

XetNode parent(std::span<const XetNode> nodes) {
    XetNode out;
    std::string lines;
    for (const XetNode& node : nodes) {
        lines += fmt::format("{} : {}\n", node.hash.text(), node.size);
        out.size += node.size;
    }
    out.hash.bytes = digest::blake3_keyed(kNodeKey, as_bytes(lines));
    return out;
}

} // namespace

std::string XetHash::text() const {
    std::string out;
    out.reserve(64);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        fmt::format_to(
            std::back_inserter(out), "{:02x}", bytes[i / kGroup * kGroup + 7 - i % kGroup]);
    }
    return out;
}

Result<XetHash> XetHash::parse(std::string_view text) {
    const Result<digest::Digest> plain = digest::Digest::from_hex(text);
    if (!plain) {
        return Error{.code = ErrorCode::corrupt,
                     .message =
                         fmt::format("'{}' is no hash of 64 hex digits", escape_control(text))};
    }
    XetHash out;
    for (std::size_t i = 0; i < out.bytes.size(); ++i) {
        out.bytes[i] = plain->bytes[i / kGroup * kGroup + 7 - i % kGroup];
    }
    return out;
}

XetHash xet_chunk_hash(Bytes raw) {
    return {.bytes = digest::blake3_keyed(kChunkKey, raw)};
}

XetHash xet_root(std::vector<XetNode> nodes) {
    if (nodes.empty()) {
        return {};
    }
    while (nodes.size() > 1) {
        std::vector<XetNode> parents;
        for (std::span<const XetNode> rest{nodes}; !rest.empty();) {
            const std::size_t group = group_size(rest);
            parents.push_back(parent(rest.first(group)));
            rest = rest.subspan(group);
        }
        nodes = std::move(parents);
    }
    return nodes.front().hash;
}

XetHash xet_file_hash(const XetHash& root) {
    return {.bytes = digest::blake3_keyed({}, std::as_bytes(std::span{root.bytes}))};
}

XetHash xet_range_hash(std::span<const XetNode> chunks) {
    std::string hashes;
    hashes.reserve(chunks.size() * sizeof(XetHash));
    for (const XetNode& chunk : chunks) {
        hashes += as_text(std::as_bytes(std::span{chunk.hash.bytes}));
    }
    return {.bytes = digest::blake3_keyed(kRangeKey, as_bytes(hashes))};
}

} // namespace kb::hub
