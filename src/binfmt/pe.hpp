// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binfmt/shared_object.hpp"

namespace kb::binfmt {

[[nodiscard]] bool is_pe(Bytes head);

/// 64-bit images: needed libraries and imported names. What has no counterpart in PE (symbol
/// versions, search paths) is empty, not a gap. Other PE files come back with gaps.
[[nodiscard]] Result<SharedObject> read_pe(const ByteSource& source);

} // namespace kb::binfmt
