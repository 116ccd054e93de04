// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kb::test {

struct ElfSymbol {
    std::string name{};
    /// "GLIBC_2.34" wanted from `library`; both empty for an unversioned symbol.
    std::string version{};
    std::string library{};
    /// 1 global, 2 weak, 10 unique.
    std::uint8_t bind = 1;
    bool defined = false;
};

enum class ElfHash : std::uint8_t { sysv, gnu, none };

/// A shared object to be written byte by byte: what no linker would make as well.
struct ElfSpec {
    std::uint16_t machine = 62; // x86-64
    std::uint8_t file_class = 2;
    std::uint8_t byte_order = 1;
    std::uint16_t type = 3;
    std::vector<std::string> needed{};
    std::string soname{};
    std::string rpath{};
    std::string runpath{};
    std::vector<ElfSymbol> symbols{};
    bool stack_note = true;
    bool exec_stack = false;
    bool text_relocations = false;
    ElfHash hash = ElfHash::gnu;
    /// A relocation for each undefined symbol.
    bool relocations = false;
    bool section_headers = true;
    /// Content of a section `.nv_fatbin`; empty writes none.
    std::string fatbin{};
};

[[nodiscard]] std::string build_elf(const ElfSpec& spec);

struct FatbinImage {
    /// 1 PTX, 2 cubin.
    std::uint16_t kind = 2;
    std::uint32_t sm = 90;
    std::uint64_t flags = 0x11;
    std::string payload = std::string(64, 'x');
};

/// One container as fatbinary writes it.
[[nodiscard]] std::string build_fatbin(const std::vector<FatbinImage>& images);

/// Little-endian integer of `size` bytes.
[[nodiscard]] std::string le(std::uint64_t value, std::size_t size);
/// Overwrites `size` bytes at `offset`.
void patch_le(std::string& bytes, std::size_t offset, std::uint64_t value, std::size_t size);

} // namespace kb::test
