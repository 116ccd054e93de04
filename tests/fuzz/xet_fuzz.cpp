// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"
#include "hub/xet_chunk.hpp"
#include "hub/xet_shard.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

using namespace kb;

/// "s..." is a shard, everything else the chunks of a xorb.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes = std::as_bytes(std::span{data, size});
    if (!bytes.empty() && bytes[0] == std::byte{'s'}) {
        if (const auto files = hub::parse_shard(bytes.subspan(1))) {
            for (const hub::XetFile& file : *files) {
                KB_ASSERT(!file.terms.empty(), "a file has terms");
            }
        }
        return 0;
    }
    std::string raw;
    while (bytes.size() >= hub::kXetChunkHeader) {
        const auto header = hub::parse_xet_chunk_header(bytes.first(hub::kXetChunkHeader));
        bytes = bytes.subspan(hub::kXetChunkHeader);
        if (!header || header->packed > bytes.size()) {
            break;
        }
        if (hub::unpack_xet_chunk(*header, bytes.first(header->packed), raw)) {
            KB_ASSERT(raw.size() == header->raw, "a chunk unpacks to what it says");
        }
        bytes = bytes.subspan(header->packed);
    }
    return 0;
}
