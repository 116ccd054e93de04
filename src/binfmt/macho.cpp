// SPDX-License-Identifier: Apache-2.0
#include "binfmt/macho.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::binfmt {

namespace {

constexpr std::uint32_t kMagic64 = 0xfeedfacf;
constexpr std::uint32_t kMagic32 = 0xfeedface;
constexpr std::uint32_t kMagicFat = 0xcafebabe;   // big-endian in the file
constexpr std::uint32_t kMagicFat64 = 0xcafebabf; // big-endian in the file
constexpr std::uint64_t kMaxCommands = 4UL << 20U;
constexpr std::uint64_t kMaxSymbolBytes = 256UL << 20U;
constexpr std::size_t kHeaderSize = 32;
constexpr std::size_t kSymbolSize = 16;

constexpr std::uint32_t kSymTab = 0x2;
constexpr std::uint32_t kLoadDylib = 0xc;
constexpr std::uint32_t kIdDylib = 0xd;
constexpr std::uint32_t kLoadWeakDylib = 0x80000018;
constexpr std::uint32_t kReexportDylib = 0x8000001f;
constexpr std::uint32_t kRpath = 0x8000001c;
constexpr std::uint32_t kVersionMinMacos = 0x24;
constexpr std::uint32_t kBuildVersion = 0x32;

Error corrupt(std::string message) {
    return Error{.code = ErrorCode::corrupt, .message = std::move(message)};
}

std::string_view without_underscore(std::string_view name) {
    return name.starts_with('_') ? name.substr(1) : name;
}

// Versions are packed as xxxx.yy.zz.
Version unpack_version(std::uint32_t packed) {
    return Version{{packed >> 16U, packed >> 8U & 255U, packed & 255U}};
}

struct SymbolTable {
    Range symbols{};
    Range strings{};
};

/// Text of a command whose offset to it stands at `field`.
Result<std::string_view> command_text(Bytes command, std::size_t field) {
    if (command.size() < field + 4) {
        return corrupt("a load command is too short");
    }
    const auto text = c_string(command, load_le<std::uint32_t>(command, field));
    if (!text) {
        return corrupt("the text of a load command lies outside of it");
    }
    return *text;
}

// A command starts with u32 kind, u32 size (of the whole command).
Result<void>
read_command(Bytes command, SharedObject& out, std::optional<SymbolTable>& symbol_table) {
    switch (load_le<std::uint32_t>(command, 0)) {
    case kLoadDylib:
    case kLoadWeakDylib:
    case kReexportDylib: {
        KB_TRY(const std::string_view name, command_text(command, 8));
        out.needed.push_back(name);
        return {};
    }
    case kIdDylib: {
        KB_TRY(out.soname, command_text(command, 8));
        return {};
    }
    case kRpath: {
        KB_TRY(const std::string_view text, command_text(command, 8));
        out.search_paths.push_back({.kind = SearchPathKind::rpath, .text = text});
        return {};
    }
    case kSymTab:
        if (command.size() < 24) {
            return corrupt("the symbol table command is too short");
        }
        symbol_table = SymbolTable{
            .symbols = {.offset = load_le<std::uint32_t>(command, 8),
                        .size = std::uint64_t{load_le<std::uint32_t>(command, 12)} * kSymbolSize},
            .strings = {.offset = load_le<std::uint32_t>(command, 16),
                        .size = load_le<std::uint32_t>(command, 20)}};
        return {};
    case kBuildVersion:
    case kVersionMinMacos: {
        const std::size_t field = load_le<std::uint32_t>(command, 0) == kBuildVersion ? 12 : 8;
        if (command.size() < field + 4) {
            return corrupt("a version command is too short");
        }
        if (!out.minimum_os) {
            out.minimum_os = unpack_version(load_le<std::uint32_t>(command, field));
        }
        return {};
    }
    default:
        return {};
    }
}

// Symbol: u32 name, u8 type, u8 section, u16 description, u64 value. Type: 0xe0 debugger entry,
// 0x0e kind (0 undefined), 0x01 external.
Result<void> read_symbols(const ByteSource& source, const SymbolTable& where, SharedObject& out) {
    KB_TRY(const std::vector<std::byte> table,
           read_range(source, where.symbols, kMaxSymbolBytes, "the symbol table"));
    KB_TRY(std::vector<std::byte> strings_bytes,
           read_range(source, where.strings, kMaxSymbolBytes, "the string table"));
    const Bytes strings = out.keep(std::move(strings_bytes));
    for (std::size_t at = 0; at + kSymbolSize <= table.size(); at += kSymbolSize) {
        const auto type = load_le<std::uint8_t>(table, at + 4);
        if ((type & 0xe0U) != 0 || (type & 0x01U) == 0) {
            continue;
        }
        const auto name = c_string(strings, load_le<std::uint32_t>(table, at));
        if (!name) {
            return corrupt("a symbol's name lies outside the string table");
        }
        const auto description = load_le<std::uint16_t>(table, at + 6);
        const bool weak = (description & 0xc0U) != 0; // N_WEAK_REF, N_WEAK_DEF
        const bool undefined = (type & 0x0eU) == 0;
        (undefined ? out.imports : out.exports)
            .push_back({.name = without_underscore(*name),
                        .binding = weak ? Binding::weak : Binding::global});
    }
    return {};
}

} // namespace

bool is_macho(Bytes head) {
    if (head.size() < 4) {
        return false;
    }
    const auto little = load_le<std::uint32_t>(head, 0);
    const std::uint32_t big = load_be32(head, 0);
    return little == kMagic64 || little == kMagic32 || big == kMagic64 || big == kMagic32 ||
           big == kMagicFat || big == kMagicFat64;
}

Result<SharedObject> read_macho(const ByteSource& source) {
    KB_TRY(const std::vector<std::byte> magic, read_range(source, {0, 4}, 4, "the file header"));
    SharedObject out;
    out.format = Format::macho;
    if (load_le<std::uint32_t>(magic, 0) != kMagic64) {
        const std::uint32_t big = load_be32(magic, 0);
        out.architecture = "unknown";
        out.add_all_gaps(big == kMagicFat || big == kMagicFat64
                             ? "universal Mach-O files are not looked into"
                             : "only 64-bit little-endian Mach-O files are looked into");
        return out;
    }
    KB_TRY(const std::vector<std::byte> header,
           read_range(source, {0, kHeaderSize}, kHeaderSize, "the Mach-O header"));
    const auto cpu = load_le<std::uint32_t>(header, 4);
    out.architecture = cpu == 0x01000007   ? "x86_64"
                       : cpu == 0x0100000c ? "aarch64"
                                           : fmt::format("machine-{}", cpu);
    const auto count = load_le<std::uint32_t>(header, 16);
    KB_TRY(std::vector<std::byte> commands_bytes,
           read_range(source,
                      {kHeaderSize, load_le<std::uint32_t>(header, 20)},
                      kMaxCommands,
                      "the load commands"));
    const Bytes commands = out.keep(std::move(commands_bytes));
    std::optional<SymbolTable> symbol_table;
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (!fits({at, 8}, commands.size())) {
            return corrupt("the load commands end early");
        }
        const std::uint64_t size = load_le<std::uint32_t>(commands, at + 4);
        if (size < 8 || !fits({at, size}, commands.size())) {
            return corrupt(fmt::format("load command {} does not fit", i));
        }
        KB_TRY(read_command(commands.subspan(at, size), out, symbol_table));
        at += size;
    }
    if (symbol_table) {
        KB_TRY(read_symbols(source, *symbol_table, out));
    } else {
        out.add_gap(Fact::symbols, "the file has no symbol table");
    }
    out.add_gap(Fact::device_code, "device code in Mach-O files is not looked into");
    return out;
}

} // namespace kb::binfmt
