// SPDX-License-Identifier: Apache-2.0
#include "hub/xet_chunk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace kb::hub {

namespace {

constexpr std::string_view kFooter = "XETBLOB";
constexpr std::size_t kGroups = 4;

Error broken(std::string message) {
    return {.code = ErrorCode::corrupt, .message = std::move(message)};
}

std::uint32_t number24(Bytes bytes) {
    return std::to_integer<std::uint32_t>(bytes[0]) |
           std::to_integer<std::uint32_t>(bytes[1]) << 8U |
           std::to_integer<std::uint32_t>(bytes[2]) << 16U;
}

/// The bytes were sorted by their place modulo four: back into their order.
void interleave(const std::string& groups, std::string& out) {
    std::array<const char*, kGroups> from{};
    const char* next = groups.data();
    for (std::size_t i = 0; i < kGroups; ++i) {
        from[i] = next;
        next += groups.size() / kGroups + (i < groups.size() % kGroups ? 1 : 0);
    }
    out.resize(groups.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = from[i % kGroups][i / kGroups];
    }
}

} // namespace

bool is_xorb_footer(Bytes header) {
    return as_text(header).starts_with(kFooter);
}

Result<XetChunkHeader> parse_xet_chunk_header(Bytes header) {
    if (header.size() != kXetChunkHeader) {
        return broken("a chunk without its header");
    }
    const auto version = std::to_integer<unsigned>(header[0]);
    const auto scheme = std::to_integer<unsigned>(header[4]);
    if (version != 0 || scheme > 2) {
        return broken(fmt::format("a chunk of version {}, scheme {}", version, scheme));
    }
    const XetChunkHeader out{.scheme = static_cast<XetScheme>(scheme),
                             .packed = number24(header.subspan(1, 3)),
                             .raw = number24(header.subspan(5, 3))};
    // LZ4 grows what it cannot pack by 1/255 and a frame.
    const std::uint32_t most =
        out.scheme == XetScheme::none ? out.raw : out.raw + out.raw / 255 + 64;
    if (out.raw == 0 || out.raw > kMaxXetChunk || out.packed == 0 || out.packed > most ||
        (out.scheme == XetScheme::none && out.packed != out.raw)) {
        return broken(fmt::format("a chunk of {} bytes in {}", out.raw, out.packed));
    }
    return out;
}

Result<void> unpack_xet_chunk(const XetChunkHeader& header, Bytes packed, std::string& out) {
    switch (header.scheme) {
    case XetScheme::none:
        out = as_text(packed);
        return {};
    case XetScheme::lz4:
        return decode_lz4_frame(packed, header.raw, out);
    case XetScheme::grouped_lz4: {
        std::string groups;
        KB_TRY(decode_lz4_frame(packed, header.raw, groups));
        interleave(groups, out);
        return {};
    }
    }
    return broken("a chunk of no scheme");
}

} // namespace kb::hub
