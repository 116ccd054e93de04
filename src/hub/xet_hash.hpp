// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::hub {

/// A hash of the Xet protocol. Its text is the 32 bytes as four little-endian numbers of 16 hex
/// digits, in addresses, in JSON and where text is hashed.
struct XetHash {
    std::array<std::uint8_t, 32> bytes{};

    [[nodiscard]] std::string text() const;
    /// Exactly 64 lower-case hex digits.
    [[nodiscard]] static Result<XetHash> parse(std::string_view text);
    auto operator<=>(const XetHash&) const = default;
};

/// A piece of a tree of hashes: a chunk, or what some of them make.
struct XetNode {
    XetHash hash{};
    std::uint64_t size = 0;

    bool operator==(const XetNode&) const = default;
};

/// Of the raw bytes of a chunk.
[[nodiscard]] XetHash xet_chunk_hash(Bytes raw);
/// What chunks in this order make; for those of a xorb that is its hash. Of no nodes: zeros.
[[nodiscard]] XetHash xet_root(std::vector<XetNode> nodes);
/// Name of a file whose chunks have that root.
[[nodiscard]] XetHash xet_file_hash(const XetHash& root);
/// Shows that somebody knows the hashes of these chunks: the verification entry of a term.
[[nodiscard]] XetHash xet_range_hash(std::span<const XetNode> chunks);

} // namespace kb::hub
