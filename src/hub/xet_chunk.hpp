// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>

namespace kb::hub {

/// Limits of the Xet protocol.
inline constexpr std::uint64_t kMaxXorbBytes = 64UL << 20U;
inline constexpr std::size_t kMaxXorbChunks = 8192;
inline constexpr std::uint32_t kMaxXetChunk = 128U << 10U;
inline constexpr std::size_t kXetChunkHeader = 8;

enum class XetScheme : std::uint8_t { none = 0, lz4 = 1, grouped_lz4 = 2 };

/// What stands before each chunk of a xorb.
struct XetChunkHeader {
    XetScheme scheme = XetScheme::none;
    std::uint32_t packed = 0;
    std::uint32_t raw = 0;

    bool operator==(const XetChunkHeader&) const = default;
};

/// `corrupt` for another version or scheme, an empty chunk, one over kMaxXetChunk bytes, or one
/// that is packed into more bytes than any packing of it can need.
[[nodiscard]] Result<XetChunkHeader> parse_xet_chunk_header(Bytes header);

/// Older clients end a xorb with a footer; it begins like this.
[[nodiscard]] bool is_xorb_footer(Bytes header);

/// The raw bytes into `out`, never more than the header says; `corrupt` when they are fewer, more,
/// or were never packed.
[[nodiscard]] Result<void>
unpack_xet_chunk(const XetChunkHeader& header, Bytes packed, std::string& out);

/// One LZ4 frame that unpacks to exactly `size` bytes. Its own checksums are not looked at: callers
/// know a better digest of the content.
[[nodiscard]] Result<void> decode_lz4_frame(Bytes frame, std::size_t size, std::string& out);

} // namespace kb::hub
