// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binfmt/shared_object.hpp"

namespace kb::binfmt {

[[nodiscard]] bool is_elf(Bytes head);

/// 64-bit little-endian x86-64 and aarch64 shared objects in full; other ELF files come back with
/// gaps. `corrupt` when the tables that the loader uses do not lie in the file.
[[nodiscard]] Result<SharedObject> read_elf(const ByteSource& source);

} // namespace kb::binfmt
