// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared by the two halves of the ELF reader; of no use elsewhere.

#include "binfmt/shared_object.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::binfmt::elf {

inline constexpr std::uint64_t kMaxStringTable = 256UL << 20U;
inline constexpr std::uint64_t kMaxSymbols = 16UL << 20U;
inline constexpr std::uint64_t kMaxVersionTable = 1UL << 20U;
inline constexpr std::size_t kSymbolSize = 24;
inline constexpr std::size_t kRelaSize = 24;

struct Segment {
    std::uint32_t type = 0;
    std::uint32_t flags = 0;
    std::uint64_t offset = 0;
    std::uint64_t address = 0;
    std::uint64_t file_size = 0;
};

struct Section {
    std::string name{};
    std::uint32_t type = 0;
    std::uint64_t address = 0;
    Range range{};
};

/// Where things lie in the file.
struct Layout {
    const ByteSource* source = nullptr;
    std::uint16_t machine = 0;
    std::vector<Segment> segments{};
    std::vector<Section> sections{};
    /// Why there are no sections; empty when they were read.
    std::string sections_gap{};

    /// The part of the file that is mapped at `address`: from there to the end of its segment.
    [[nodiscard]] std::optional<Range> mapped_from(std::uint64_t address) const;
    /// Exactly `size` bytes at `address`, or `corrupt` naming `what`.
    [[nodiscard]] Result<Range>
    mapped(std::uint64_t address, std::uint64_t size, std::string_view what) const;
};

/// The dynamic segment, the last of equal tags winning; DT_NEEDED in order.
struct Dynamic {
    std::map<std::uint64_t, std::uint64_t> values{};
    std::vector<std::uint64_t> needed{};

    [[nodiscard]] std::optional<std::uint64_t> value(std::uint64_t tag) const;
};

inline constexpr std::uint64_t kDtPltRelSize = 2;
inline constexpr std::uint64_t kDtHash = 4;
inline constexpr std::uint64_t kDtStrTab = 5;
inline constexpr std::uint64_t kDtSymTab = 6;
inline constexpr std::uint64_t kDtRela = 7;
inline constexpr std::uint64_t kDtRelaSize = 8;
inline constexpr std::uint64_t kDtStrSize = 10;
inline constexpr std::uint64_t kDtSoname = 14;
inline constexpr std::uint64_t kDtRpath = 15;
inline constexpr std::uint64_t kDtTextRel = 22;
inline constexpr std::uint64_t kDtJmpRel = 23;
inline constexpr std::uint64_t kDtRunpath = 29;
inline constexpr std::uint64_t kDtFlags = 30;
inline constexpr std::uint64_t kDtGnuHash = 0x6ffffef5;
inline constexpr std::uint64_t kDtVerSym = 0x6ffffff0;
inline constexpr std::uint64_t kDtVerDef = 0x6ffffffc;
inline constexpr std::uint64_t kDtVerNeed = 0x6ffffffe;

/// Fills imports, exports and version_needs. `strings` is the dynamic string table, kept by `out`.
[[nodiscard]] Result<void>
read_symbols(const Layout& layout, const Dynamic& dynamic, Bytes strings, SharedObject& out);

} // namespace kb::binfmt::elf
