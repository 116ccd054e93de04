// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binfmt/shared_object.hpp"

#include <string>
#include <vector>

namespace kb::binfmt {

[[nodiscard]] bool is_elf(Bytes head);

/// A part of the file that has a name.
struct ElfSection {
    std::string name{};
    Range range{};
};

/// Sections with bytes in the file, in the order of the header table. `corrupt` without a table or
/// when one does not lie in the file; `unsupported` for other than 64-bit little-endian files.
[[nodiscard]] Result<std::vector<ElfSection>> read_elf_sections(const ByteSource& source);

/// 64-bit little-endian x86-64 and aarch64 shared objects in full; other ELF files come back with
/// gaps. `corrupt` when the tables that the loader uses do not lie in the file.
[[nodiscard]] Result<SharedObject> read_elf(const ByteSource& source);

} // namespace kb::binfmt
