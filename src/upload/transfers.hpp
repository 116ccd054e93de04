// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "upload/transfer.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace kb::upload {

/// One PUT of the whole blob to the action's address, with the action's header fields.
Result<std::vector<Piece>> basic_pieces(const LocalFile& file, const hub::LfsBatchItem& item);
Result<void> basic_finish(const HubClient& hub,
                          const hub::LfsBatchItem& item,
                          const std::map<std::uint64_t, hub::LfsPart>& parts);

/// A PUT a part, each answered with an ETag, then a POST that names them all.
Result<std::vector<Piece>> multipart_pieces(const LocalFile& file, const hub::LfsBatchItem& item);
Result<void> multipart_finish(const HubClient& hub,
                              const hub::LfsBatchItem& item,
                              const std::map<std::uint64_t, hub::LfsPart>& parts);

inline constexpr Transfer kBasicTransfer{
    .wire_name = "basic", .pieces = &basic_pieces, .finish = &basic_finish};
inline constexpr Transfer kMultipartTransfer{
    .wire_name = "multipart", .pieces = &multipart_pieces, .finish = &multipart_finish};

} // namespace kb::upload
