// SPDX-License-Identifier: Apache-2.0
#include "upload/transfers.hpp"

namespace kb::upload {

Result<std::vector<Piece>> basic_pieces(const LocalFile& file, const hub::LfsBatchItem& item) {
    Piece piece{.url = item.upload->href,
                .slice = {.path = file.source, .offset = 0, .length = file.size}};
    for (const auto& [name, value] : item.upload->header) {
        piece.headers.set(name, value);
    }
    return std::vector{std::move(piece)};
}

Result<void> basic_finish(const HubClient& /*hub*/,
                          const hub::LfsBatchItem& /*item*/,
                          const std::map<std::uint64_t, hub::LfsPart>& /*parts*/) {
    return {};
}

} // namespace kb::upload
