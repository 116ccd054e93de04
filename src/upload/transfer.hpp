// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hub/lfs.hpp"
#include "upload/hub_client.hpp"
#include "upload/journal.hpp"
#include "upload/local_file.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::upload {

/// Told while blobs travel; called from one thread at a time.
struct TransferProgress {
    std::uint64_t bytes_done = 0;
    std::uint64_t bytes_total = 0;
    std::size_t blobs_done = 0;
    std::size_t blobs_total = 0;
};

struct TransferOptions {
    unsigned streams = 4;
    std::function<void(const TransferProgress&)> progress{};
};

struct TransferCounts {
    std::uint64_t bytes_sent = 0;
    std::size_t blobs_sent = 0;
    /// The server, or the journal, had them.
    std::size_t blobs_present = 0;
    std::size_t blobs_from_journal = 0;
    std::size_t parts_resumed = 0;
};

/// One piece of a blob that is sent by one PUT.
struct Piece {
    std::string url{};
    http::Headers headers{};
    http::FileSlice slice{};
    /// 1 is the first; 0: the blob is one piece.
    std::uint64_t part = 0;
};

/// How a blob travels: a row of the table in transfer.cpp. `pieces` says what to PUT, `finish` ends
/// a blob whose pieces are all there.
struct Transfer {
    std::string_view wire_name{};
    Result<std::vector<Piece>> (*pieces)(const LocalFile& file,
                                         const hub::LfsBatchItem& item) = nullptr;
    Result<void> (*finish)(const HubClient& hub,
                           const hub::LfsBatchItem& item,
                           const std::map<std::uint64_t, hub::LfsPart>& parts) = nullptr;
};

/// Best first; the names go into the batch request.
[[nodiscard]] std::span<const Transfer> transfer_table();

/// Sends what the server lacks of `blobs` (distinct contents), largest first, pieces of one blob
/// and of several side by side; each confirmation is in the journal before it counts. Stops at the
/// first error.
[[nodiscard]] Result<TransferCounts> send_blobs(const HubClient& hub,
                                                Journal& journal,
                                                std::span<const LocalFile> blobs,
                                                const std::optional<std::string>& ref,
                                                const TransferOptions& options);

} // namespace kb::upload
