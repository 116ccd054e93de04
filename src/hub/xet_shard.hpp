// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "digest/digest.hpp"
#include "hub/xet_hash.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kb::hub {

inline constexpr std::uint64_t kMaxShardBytes = 64UL << 20U;

/// A run of chunks of one xorb.
struct XetTerm {
    XetHash xorb{};
    std::uint32_t bytes = 0;
    std::uint32_t first = 0;
    /// One past the last.
    std::uint32_t end = 0;
    std::optional<XetHash> verification{};

    bool operator==(const XetTerm&) const = default;
};

struct XetFile {
    XetHash hash{};
    std::vector<XetTerm> terms{};
    std::optional<digest::Digest> sha256{};

    [[nodiscard]] std::uint64_t size() const;

    bool operator==(const XetFile&) const = default;
};

/// The files of a shard as clients upload it. The records of xorbs are read to their end and
/// dropped: the server has the xorbs themselves. `corrupt` for another tag or version, a list that
/// is longer than the shard, an empty term or file, a shard without an end.
[[nodiscard]] Result<std::vector<XetFile>> parse_shard(Bytes shard);

} // namespace kb::hub
