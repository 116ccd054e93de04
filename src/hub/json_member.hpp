// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rel_path.hpp"
#include "digest/digest.hpp"
#include "document/node.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kb::hub {

// Members of foreign JSON. All return `corrupt` naming the member that is missing or of a wrong
// type; null counts as absent.

[[nodiscard]] Result<void> require_table(const document::Node& json, std::string_view what);
[[nodiscard]] Result<std::string> string_member(const document::Node& json, std::string_view key);
[[nodiscard]] Result<std::uint64_t> unsigned_member(const document::Node& json,
                                                    std::string_view key);
[[nodiscard]] Result<RelPath> path_member(const document::Node& json, std::string_view key);
[[nodiscard]] Result<digest::Digest> sha256_member(const document::Node& json,
                                                   std::string_view key);
[[nodiscard]] Result<digest::Sha1Digest> sha1_member(const document::Node& json,
                                                     std::string_view key);
/// The array, or `corrupt`; also when it has more than `max_items`.
[[nodiscard]] Result<const document::Node*>
array_member(const document::Node& json, std::string_view key, std::size_t max_items);
/// Nothing when absent.
[[nodiscard]] std::optional<std::string> optional_text(const document::Node& json,
                                                       std::string_view key);

} // namespace kb::hub
