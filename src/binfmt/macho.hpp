// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binfmt/shared_object.hpp"

namespace kb::binfmt {

[[nodiscard]] bool is_macho(Bytes head);

/// Thin 64-bit little-endian files: imports, exports (without the leading '_'), needed libraries,
/// search paths, oldest macOS. Universal and 32-bit files come back with gaps.
[[nodiscard]] Result<SharedObject> read_macho(const ByteSource& source);

} // namespace kb::binfmt
