// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"

#include <array>
#include <cstdint>

namespace kb::digest {

/// 32 bytes of BLAKE3: a key or a value.
using Blake3Value = std::array<std::uint8_t, 32>;

/// BLAKE3 of the whole input, first 32 bytes. For inputs that are in memory anyway: it holds 1/32
/// of the input's size besides.
[[nodiscard]] Blake3Value blake3(Bytes input);
/// The same in keyed mode.
[[nodiscard]] Blake3Value blake3_keyed(const Blake3Value& key, Bytes input);

} // namespace kb::digest
