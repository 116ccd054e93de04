// SPDX-License-Identifier: Apache-2.0
#include "support/elf_builder.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace kb::test {

namespace {

constexpr std::size_t kHeader = 64;
constexpr std::size_t kProgramHeader = 56;

class Strings {
public:
    std::uint32_t add(const std::string& text) {
        const auto at = static_cast<std::uint32_t>(bytes_.size());
        bytes_ += text;
        bytes_ += '\0';
        return at;
    }

    [[nodiscard]] const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_ = std::string(1, '\0');
};

std::uint32_t gnu_hash(std::string_view name) {
    std::uint32_t h = 5381;
    for (const char c : name) {
        h = h * 33 + static_cast<unsigned char>(c);
    }
    return h;
}

/// Undefined symbols first, as the GNU hash table wants it.
std::vector<ElfSymbol> in_table_order(std::vector<ElfSymbol> symbols) {
    std::ranges::stable_partition(symbols, [](const ElfSymbol& s) { return !s.defined; });
    return symbols;
}

std::string gnu_hash_table(const std::vector<ElfSymbol>& symbols) {
    const auto first = static_cast<std::size_t>(
        std::ranges::count_if(symbols, [](const ElfSymbol& s) { return !s.defined; }));
    if (first == symbols.size()) { // what GNU ld writes for a library without exports
        return le(1, 4) + le(1, 4) + le(1, 4) + le(0, 4) + le(0, 8) + le(0, 4);
    }
    std::string out =
        le(1, 4) + le(first + 1, 4) + le(1, 4) + le(0, 4) + le(~0ULL, 8) + le(first + 1, 4);
    for (std::size_t i = first; i < symbols.size(); ++i) {
        const std::uint32_t h = gnu_hash(symbols[i].name) & ~1U;
        out += le(h | (i + 1 == symbols.size() ? 1U : 0U), 4);
    }
    return out;
}

std::string sysv_hash_table(std::size_t symbols) {
    std::string out = le(1, 4) + le(symbols + 1, 4) + le(0, 4);
    return out + std::string((symbols + 1) * 4, '\0');
}

struct Versions {
    std::string needs{};
    std::size_t libraries = 0;
    std::string indices = le(0, 2);
};

Versions version_tables(const std::vector<ElfSymbol>& symbols, Strings& strings) {
    std::map<std::string, std::map<std::string, std::uint16_t>> wanted;
    for (const ElfSymbol& s : symbols) {
        if (!s.version.empty() && !s.defined) {
            wanted[s.library][s.version] = 0;
        }
    }
    Versions out;
    std::uint16_t index = 2;
    for (auto& [library, versions] : wanted) {
        ++out.libraries;
        const bool last = out.libraries == wanted.size();
        out.needs += le(1, 2) + le(versions.size(), 2) + le(strings.add(library), 4) + le(16, 4) +
                     le(last ? 0 : 16 + 16 * versions.size(), 4);
        std::size_t written = 0;
        for (auto& [version, number] : versions) {
            number = index++;
            ++written;
            out.needs += le(0, 4) + le(0, 2) + le(number, 2) + le(strings.add(version), 4) +
                         le(written == versions.size() ? 0 : 16, 4);
        }
    }
    for (const ElfSymbol& s : symbols) {
        out.indices += le(s.version.empty() || s.defined ? 1 : wanted[s.library][s.version], 2);
    }
    return out;
}

std::string
program_header(std::uint32_t type, std::uint32_t flags, std::size_t at, std::size_t size) {
    return le(type, 4) + le(flags, 4) + le(at, 8) + le(at, 8) + le(at, 8) + le(size, 8) +
           le(size, 8) + le(8, 8);
}

std::string
section_header(std::uint32_t name, std::uint32_t type, std::size_t at, std::size_t size) {
    return le(name, 4) + le(type, 4) + le(2, 8) + le(at, 8) + le(at, 8) + le(size, 8) + le(0, 4) +
           le(0, 4) + le(8, 8) + le(0, 8);
}

/// Appends aligned to 8; returns the offset.
std::size_t place(std::string& file, const std::string& part) {
    file.resize((file.size() + 7) / 8 * 8, '\0');
    const std::size_t at = file.size();
    file += part;
    return at;
}

std::string symbol_table(const std::vector<ElfSymbol>& symbols, Strings& strings) {
    std::string out(24, '\0');
    for (const ElfSymbol& s : symbols) {
        out += le(strings.add(s.name), 4) + le(static_cast<unsigned>(s.bind << 4U) | 2U, 1) +
               le(0, 1) + le(s.defined ? 1 : 0, 2) + le(s.defined ? 64 : 0, 8) + le(0, 8);
    }
    return out;
}

std::string relocation_table(const std::vector<ElfSymbol>& symbols) {
    std::string out;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        if (!symbols[i].defined) {
            out += le(0, 8) + le((i + 1) << 32U | 6U, 8) + le(0, 8);
        }
    }
    return out;
}

/// Section headers for the dynamic symbols and the device code, and their offset in the file.
std::pair<std::size_t, std::size_t> append_sections(std::string& file,
                                                    std::size_t symbols_at,
                                                    std::size_t symbols_size,
                                                    Strings& names,
                                                    std::pair<std::size_t, std::size_t> fatbin) {
    std::string table(64, '\0');
    table += section_header(names.add(".dynsym"), 11, symbols_at, symbols_size);
    std::size_t count = 3;
    if (fatbin.second != 0) {
        table += section_header(names.add(".nv_fatbin"), 1, fatbin.first, fatbin.second);
        ++count;
    }
    const std::uint32_t own_name = names.add(".shstrtab");
    const std::size_t names_at = place(file, names.bytes());
    table += section_header(own_name, 3, names_at, names.bytes().size());
    return {place(file, table), count};
}

} // namespace

std::string le(std::uint64_t value, std::size_t size) {
    std::string out;
    for (std::size_t i = 0; i < size; ++i) {
        out += i < sizeof value ? static_cast<char>(value >> 8 * i & 255U) : '\0';
    }
    return out;
}

void patch_le(std::string& bytes, std::size_t offset, std::uint64_t value, std::size_t size) {
    if (offset + size > bytes.size()) {
        throw std::out_of_range{"a test patches beyond the end of its file"};
    }
    bytes.replace(offset, size, le(value, size));
}

std::string build_elf(const ElfSpec& spec) {
    const std::vector<ElfSymbol> symbols = in_table_order(spec.symbols);
    Strings strings;
    const std::string symbol_bytes = symbol_table(symbols, strings);
    const Versions versions = version_tables(symbols, strings);
    std::string dynamic;
    const auto entry = [&](std::uint64_t tag, std::uint64_t value) {
        dynamic += le(tag, 8) + le(value, 8);
    };
    for (const std::string& name : spec.needed) {
        entry(1, strings.add(name));
    }
    if (!spec.soname.empty()) {
        entry(14, strings.add(spec.soname));
    }
    if (!spec.rpath.empty()) {
        entry(15, strings.add(spec.rpath));
    }
    if (!spec.runpath.empty()) {
        entry(29, strings.add(spec.runpath));
    }
    if (spec.text_relocations) {
        entry(22, 0);
    }
    std::string file(kHeader + 3 * kProgramHeader, '\0');
    entry(5, place(file, strings.bytes()));
    entry(10, strings.bytes().size());
    const std::size_t symbols_at = place(file, symbol_bytes);
    entry(6, symbols_at);
    if (spec.hash == ElfHash::gnu) {
        entry(0x6ffffef5, place(file, gnu_hash_table(symbols)));
    } else if (spec.hash == ElfHash::sysv) {
        entry(4, place(file, sysv_hash_table(symbols.size())));
    }
    if (!versions.needs.empty()) {
        entry(0x6ffffffe, place(file, versions.needs));
        entry(0x6fffffff, versions.libraries);
        entry(0x6ffffff0, place(file, versions.indices));
    }
    if (spec.relocations) {
        const std::string table = relocation_table(symbols);
        entry(7, place(file, table));
        entry(8, table.size());
    }
    entry(0, 0);
    const std::size_t dynamic_at = place(file, dynamic);
    const std::size_t fatbin_at = place(file, spec.fatbin);
    std::pair<std::size_t, std::size_t> sections{0, 0};
    if (spec.section_headers) {
        Strings names;
        sections = append_sections(
            file, symbols_at, symbol_bytes.size(), names, {fatbin_at, spec.fatbin.size()});
    }
    const std::string head = std::string{"\x7f"
                                         "ELF"} +
                             le(spec.file_class, 1) + le(spec.byte_order, 1) + le(1, 1) +
                             std::string(9, '\0') + le(spec.type, 2) + le(spec.machine, 2) +
                             le(1, 4) + le(0, 8) + le(kHeader, 8) + le(sections.first, 8) +
                             le(0, 4) + le(64, 2) + le(kProgramHeader, 2) +
                             le(spec.stack_note ? 3 : 2, 2) + le(64, 2) + le(sections.second, 2) +
                             le(sections.second == 0 ? 0 : sections.second - 1, 2);
    file.replace(0, kHeader, head);
    file.replace(kHeader,
                 3 * kProgramHeader,
                 program_header(1, 7, 0, file.size()) +
                     program_header(2, 6, dynamic_at, dynamic.size()) +
                     program_header(0x6474e551, spec.exec_stack ? 7 : 6, 0, 0));
    return file;
}

std::string build_fatbin(const std::vector<FatbinImage>& images) {
    std::string entries;
    for (const FatbinImage& image : images) {
        entries += le(image.kind, 2) + le(0x101, 2) + le(64, 4) + le(image.payload.size(), 8) +
                   le(0, 8) + le(8, 2) + le(1, 2) + le(image.sm, 4) + le(0, 8) +
                   le(image.flags, 8) + le(0, 16) + image.payload;
    }
    return le(0xba55ed50, 4) + le(1, 2) + le(16, 2) + le(entries.size(), 8) + entries;
}

} // namespace kb::test
