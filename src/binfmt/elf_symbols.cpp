// SPDX-License-Identifier: Apache-2.0
#include "binfmt/elf_detail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace kb::binfmt::elf {

namespace {

constexpr std::uint32_t kDynSymSection = 11; // SHT_DYNSYM
constexpr std::uint64_t kChunk = 64UL << 10U;

Error corrupt(std::string message) {
    return Error{.code = ErrorCode::corrupt, .message = std::move(message)};
}

struct GnuHashCount {
    /// Symbols before the first hashed one.
    std::uint64_t unhashed = 0;
    /// One past the last hashed symbol; nothing when none is hashed.
    std::optional<std::uint64_t> total{};
};

/// Highest first symbol of all hash buckets.
Result<std::uint32_t> highest_bucket(const ByteSource& source, Range buckets) {
    std::uint32_t highest = 0;
    for (std::uint64_t at = 0; at < buckets.size; at += kChunk) {
        const Range part{.offset = buckets.offset + at,
                         .size = std::min(kChunk, buckets.size - at)};
        KB_TRY(const std::vector<std::byte> block,
               read_range(source, part, kChunk, "the GNU hash buckets"));
        for (std::size_t i = 0; i + 4 <= block.size(); i += 4) {
            highest = std::max(highest, load_le<std::uint32_t>(block, i));
        }
    }
    return highest;
}

// DT_GNU_HASH: u32 buckets, u32 first hashed symbol, u32 bloom words (of 8 bytes), u32 shift; bloom
// words; buckets (first symbol of each chain); a u32 for each hashed symbol, odd at the end of a
// chain. The table does not say how many symbols there are: the chain of the last one does.
Result<GnuHashCount> count_by_gnu_hash(const Layout& layout, std::uint64_t address) {
    KB_TRY(const Range head, layout.mapped(address, 16, "the GNU hash table"));
    KB_TRY(const std::vector<std::byte> header,
           read_range(*layout.source, head, 16, "the GNU hash table"));
    const std::uint64_t buckets = load_le<std::uint32_t>(header, 0);
    const std::uint64_t first = load_le<std::uint32_t>(header, 4);
    const std::uint64_t bloom = load_le<std::uint32_t>(header, 8);
    const std::uint64_t rest = layout.mapped_from(address)->size - 16;
    const std::uint64_t tables = bloom * 8 + buckets * 4; // both factors have 32 bits
    if (tables > rest) {
        return corrupt("the GNU hash table does not fit into its segment");
    }
    const std::uint64_t buckets_at = head.offset + 16 + bloom * 8;
    KB_TRY(const std::uint64_t highest, highest_bucket(*layout.source, {buckets_at, buckets * 4}));
    if (highest < first || highest == 0) {
        return GnuHashCount{.unhashed = first, .total = std::nullopt};
    }
    std::uint64_t at = buckets_at + buckets * 4 + (highest - first) * 4;
    const std::uint64_t end = head.offset + 16 + rest;
    for (std::uint64_t symbol = highest; symbol < kMaxSymbols && at < end;) {
        const Range part{.offset = at, .size = std::min(kChunk, (end - at) / 4 * 4)};
        if (part.size == 0) {
            break;
        }
        KB_TRY(const std::vector<std::byte> block,
               read_range(*layout.source, part, kChunk, "the GNU hash chains"));
        for (std::size_t i = 0; i < block.size(); i += 4, ++symbol) {
            if ((load_le<std::uint32_t>(block, i) & 1U) != 0) {
                return GnuHashCount{.unhashed = first, .total = symbol + 1};
            }
        }
        at += part.size;
    }
    return corrupt("a chain of the GNU hash table has no end");
}

/// One past the highest symbol that a relocation names. A symbol that none names is never looked
/// up, so it cannot matter.
Result<std::uint64_t> count_by_relocations(const Layout& layout, const Dynamic& dynamic) {
    constexpr std::pair<std::uint64_t, std::uint64_t> kTables[] = {{kDtRela, kDtRelaSize},
                                                                   {kDtJmpRel, kDtPltRelSize}};
    std::uint64_t count = 0;
    for (const auto& [table_tag, size_tag] : kTables) {
        const auto address = dynamic.value(table_tag);
        const auto size = dynamic.value(size_tag);
        if (!address || !size || *size == 0) {
            continue;
        }
        KB_TRY(const Range table, layout.mapped(*address, *size, "a relocation table"));
        constexpr std::uint64_t kStep = kChunk / kRelaSize * kRelaSize;
        for (std::uint64_t at = 0; at + kRelaSize <= table.size; at += kStep) {
            const Range part{.offset = table.offset + at, .size = std::min(kStep, table.size - at)};
            KB_TRY(const std::vector<std::byte> block,
                   read_range(*layout.source, part, kStep, "a relocation table"));
            for (std::size_t i = 0; i + kRelaSize <= block.size(); i += kRelaSize) {
                const auto symbol = load_le<std::uint32_t>(block, i + 12); // high half of r_info
                count = std::max<std::uint64_t>(count, std::uint64_t{symbol} + 1);
            }
        }
    }
    return count;
}

/// No table says how many dynamic symbols there are. In order of trust: the hash tables, the
/// section of the symbol table, what relocations name. GNU ld writes a GNU hash table that hashes
/// nothing for a library without exports, hence the fallbacks.
Result<std::uint64_t>
count_symbols(const Layout& layout, const Dynamic& dynamic, std::uint64_t table_address) {
    if (const auto address = dynamic.value(kDtHash)) {
        KB_TRY(const Range head, layout.mapped(*address, 8, "the hash table"));
        KB_TRY(const std::vector<std::byte> header,
               read_range(*layout.source, head, 8, "the hash table"));
        return std::uint64_t{load_le<std::uint32_t>(header, 4)};
    }
    std::uint64_t at_least = 0;
    if (const auto address = dynamic.value(kDtGnuHash)) {
        KB_TRY(const GnuHashCount hash, count_by_gnu_hash(layout, *address));
        if (hash.total) {
            return *hash.total;
        }
        at_least = hash.unhashed;
    }
    for (const Section& section : layout.sections) {
        if (section.type == kDynSymSection && section.address == table_address) {
            return section.range.size / kSymbolSize;
        }
    }
    KB_TRY(const std::uint64_t named, count_by_relocations(layout, dynamic));
    return std::max(at_least, named);
}

struct NamedVersion {
    std::string_view library{};
    std::string_view version{};
};

/// Version index of a symbol -> what it means.
using VersionTable = std::unordered_map<std::uint16_t, NamedVersion>;

/// Both version tables are linked lists of unknown length: what is mapped from their start on, up
/// to the limit.
Result<std::vector<std::byte>>
read_version_table(const Layout& layout, std::uint64_t address, std::string_view what) {
    const auto range = layout.mapped_from(address);
    if (!range) {
        return corrupt(fmt::format("{} (address {:#x}) is not part of the file", what, address));
    }
    return read_range(*layout.source,
                      {range->offset, std::min(range->size, kMaxVersionTable)},
                      kMaxVersionTable,
                      what);
}

Result<std::string_view> text_at(Bytes strings, std::uint64_t offset, std::string_view what) {
    const auto text = c_string(strings, offset);
    if (!text) {
        return corrupt(fmt::format("{} lies outside the dynamic string table", what));
    }
    return *text;
}

// Verneed: u16 version (1), u16 count, u32 file, u32 first aux, u32 next.
// Vernaux: u32 hash, u16 flags, u16 index, u32 name, u32 next. Offsets are from the own record.
Result<void>
read_version_needs(Bytes table, Bytes strings, VersionTable& names, SharedObject& out) {
    constexpr std::string_view kWhat = "the version need table";
    std::uint64_t at = 0;
    std::size_t budget = kMaxVersionTable / 16; // ends lists that point at themselves
    for (;;) {
        if (!fits({at, 16}, table.size()) || budget-- == 0) {
            return corrupt(fmt::format("{} runs out of its segment", kWhat));
        }
        KB_TRY(const std::string_view library,
               text_at(strings, load_le<std::uint32_t>(table, at + 4), kWhat));
        std::uint64_t aux = at + load_le<std::uint32_t>(table, at + 8);
        const std::size_t count = load_le<std::uint16_t>(table, at + 2);
        for (std::size_t i = 0; i < count; ++i) {
            if (!fits({aux, 16}, table.size()) || budget-- == 0) {
                return corrupt(fmt::format("{} runs out of its segment", kWhat));
            }
            KB_TRY(const std::string_view version,
                   text_at(strings, load_le<std::uint32_t>(table, aux + 8), kWhat));
            const bool weak = (load_le<std::uint16_t>(table, aux + 4) & 2U) != 0; // VER_FLG_WEAK
            out.version_needs.push_back({.library = library, .version = version, .weak = weak});
            const auto index =
                static_cast<std::uint16_t>(load_le<std::uint16_t>(table, aux + 6) & 0x7fffU);
            names[index] = {.library = library, .version = version};
            const auto next = load_le<std::uint32_t>(table, aux + 12);
            if (next == 0) {
                break;
            }
            aux += next;
        }
        const auto next = load_le<std::uint32_t>(table, at + 12);
        if (next == 0) {
            return {};
        }
        at += next;
    }
}

// Verdef: u16 version, u16 flags, u16 index, u16 count, u32 hash, u32 first aux, u32 next.
// Verdaux: u32 name, u32 next; the first one names the version.
Result<void> read_version_definitions(Bytes table, Bytes strings, VersionTable& names) {
    constexpr std::string_view kWhat = "the version definition table";
    std::uint64_t at = 0;
    for (std::size_t budget = kMaxVersionTable / 20; budget > 0; --budget) {
        if (!fits({at, 20}, table.size())) {
            break;
        }
        const std::uint64_t aux = at + load_le<std::uint32_t>(table, at + 12);
        if (!fits({aux, 8}, table.size())) {
            break;
        }
        KB_TRY(const std::string_view version,
               text_at(strings, load_le<std::uint32_t>(table, aux), kWhat));
        const auto index =
            static_cast<std::uint16_t>(load_le<std::uint16_t>(table, at + 4) & 0x7fffU);
        names[index] = {.library = {}, .version = version};
        const auto next = load_le<std::uint32_t>(table, at + 16);
        if (next == 0) {
            return {};
        }
        at += next;
    }
    return corrupt(fmt::format("{} runs out of its segment", kWhat));
}

Binding binding_of(std::uint8_t info) {
    constexpr std::uint8_t kWeak = 2;
    constexpr std::uint8_t kUnique = 10; // STB_GNU_UNIQUE
    const auto bind = static_cast<std::uint8_t>(info >> 4U);
    return bind == kWeak ? Binding::weak : (bind == kUnique ? Binding::unique : Binding::global);
}

/// What symbols point to.
struct Texts {
    Bytes strings{};
    const VersionTable* versions = nullptr;
};

/// A block of the symbol table, and of the versions beside it (none without that table).
struct SymbolBlock {
    /// Number of the first symbol.
    std::size_t first = 0;
    Bytes symbols{};
    Bytes versions{};
};

// Symbol: u32 name, u8 info, u8 other, u16 section (0 = undefined), u64 value, u64 size.
Result<void> collect(const SymbolBlock& block, const Texts& texts, SharedObject& out) {
    const std::size_t count = block.symbols.size() / kSymbolSize;
    for (std::size_t i = 0; i < count; ++i) {
        const Bytes record = block.symbols.subspan(i * kSymbolSize, kSymbolSize);
        const auto info = load_le<std::uint8_t>(record, 4);
        const auto kind = static_cast<std::uint8_t>(info & 15U);
        if (info >> 4U == 0 || kind == 3 || kind == 4) { // local, section, file
            continue;
        }
        const auto name = c_string(texts.strings, load_le<std::uint32_t>(record, 0));
        if (!name) {
            return corrupt(fmt::format("the name of dynamic symbol {} lies outside the dynamic "
                                       "string table",
                                       block.first + i));
        }
        if (name->empty()) {
            continue;
        }
        Symbol symbol{.name = *name, .binding = binding_of(info)};
        if (!block.versions.empty()) {
            const auto index =
                static_cast<std::uint16_t>(load_le<std::uint16_t>(block.versions, i * 2) & 0x7fffU);
            const auto found = index > 1 ? texts.versions->find(index) : texts.versions->end();
            if (found != texts.versions->end()) {
                symbol.version = found->second.version;
                symbol.library = found->second.library;
            }
        }
        const bool undefined = load_le<std::uint16_t>(record, 6) == 0;
        (undefined ? out.imports : out.exports).push_back(symbol);
    }
    return {};
}

/// The table block by block: only what the symbols say stays in memory.
Result<void> collect_all(const ByteSource& source,
                         Range symbols,
                         std::optional<Range> versions,
                         const Texts& texts,
                         SharedObject& out) {
    constexpr std::uint64_t kStep = kChunk / kSymbolSize;
    const std::uint64_t count = symbols.size / kSymbolSize;
    for (std::uint64_t at = 0; at < count; at += kStep) {
        const std::uint64_t length = std::min(kStep, count - at);
        KB_TRY(const std::vector<std::byte> block,
               read_range(source,
                          {symbols.offset + at * kSymbolSize, length * kSymbolSize},
                          kChunk,
                          "the dynamic symbol table"));
        std::vector<std::byte> indices;
        if (versions) {
            KB_TRY(indices,
                   read_range(source,
                              {versions->offset + at * 2, length * 2},
                              kChunk,
                              "the symbol versions"));
        }
        KB_TRY(collect({.first = at, .symbols = block, .versions = indices}, texts, out));
    }
    return {};
}

} // namespace

Result<void>
read_symbols(const Layout& layout, const Dynamic& dynamic, Bytes strings, SharedObject& out) {
    VersionTable names;
    if (const auto address = dynamic.value(kDtVerNeed)) {
        KB_TRY(const std::vector<std::byte> table,
               read_version_table(layout, *address, "the version need table"));
        KB_TRY(read_version_needs(table, strings, names, out));
    }
    if (const auto address = dynamic.value(kDtVerDef)) {
        KB_TRY(const std::vector<std::byte> table,
               read_version_table(layout, *address, "the version definition table"));
        KB_TRY(read_version_definitions(table, strings, names));
    }
    const auto address = dynamic.value(kDtSymTab);
    if (!address) {
        return corrupt("the dynamic segment names no symbol table");
    }
    KB_TRY(const std::uint64_t count, count_symbols(layout, dynamic, *address));
    if (count > kMaxSymbols) {
        return corrupt(
            fmt::format("{} dynamic symbols, more than the limit of {}", count, kMaxSymbols));
    }
    KB_TRY(const Range table_range,
           layout.mapped(*address, count * kSymbolSize, "the dynamic symbol table"));
    std::optional<Range> versions_range;
    if (const auto versions = dynamic.value(kDtVerSym)) {
        KB_TRY(versions_range, layout.mapped(*versions, count * 2, "the symbol versions"));
    }
    // Address space only, until they are filled: growing would hold the symbols twice.
    out.imports.reserve(count);
    out.exports.reserve(count);
    return collect_all(
        *layout.source, table_range, versions_range, {.strings = strings, .versions = &names}, out);
}

} // namespace kb::binfmt::elf
