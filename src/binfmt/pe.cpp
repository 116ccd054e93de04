// SPDX-License-Identifier: Apache-2.0
#include "binfmt/pe.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::binfmt {

namespace {

constexpr std::size_t kMaxSections = 1024;
constexpr std::uint64_t kMaxSectionBytes = 64UL << 20U;
constexpr std::size_t kMaxThunks = 1UL << 20U;
constexpr std::size_t kMaxLibraries = 4096;
constexpr std::size_t kDescriptorSize = 20;

Error corrupt(std::string message) {
    return Error{.code = ErrorCode::corrupt, .message = std::move(message)};
}

struct Section {
    std::uint64_t address = 0;
    Range range{};
    /// Read when first asked for.
    std::optional<Bytes> bytes{};
};

/// The image as the loader maps it: addresses to bytes of sections.
class Image {
public:
    Image(const ByteSource& source, std::vector<Section> sections, SharedObject& owner)
        : source_{&source}, sections_{std::move(sections)}, owner_{&owner} {}

    /// From `address` to the end of its section.
    [[nodiscard]] Result<Bytes> from(std::uint64_t address) {
        for (Section& section : sections_) {
            if (address < section.address || address - section.address >= section.range.size) {
                continue;
            }
            if (!section.bytes) {
                KB_TRY(std::vector<std::byte> bytes,
                       read_range(*source_, section.range, kMaxSectionBytes, "a section"));
                section.bytes = owner_->keep(std::move(bytes));
            }
            return section.bytes->subspan(address - section.address);
        }
        return corrupt(fmt::format("address {:#x} is not part of the file", address));
    }

    [[nodiscard]] Result<std::string_view> text(std::uint64_t address) {
        KB_TRY(const Bytes bytes, from(address));
        const auto out = c_string(bytes, 0);
        if (!out) {
            return corrupt(fmt::format("the name at address {:#x} has no end", address));
        }
        return *out;
    }

private:
    const ByteSource* source_;
    std::vector<Section> sections_;
    SharedObject* owner_;
};

// A thunk table: u64 each, 0 at the end; the high bit marks an import by number, else it is the
// address of u16 hint, name.
struct ThunkTable {
    std::uint64_t address = 0;
    std::string_view library{};
};

Result<void>
read_thunks(Image& image, const ThunkTable& where, std::size_t& budget, SharedObject& out) {
    KB_TRY(const Bytes table, image.from(where.address));
    for (std::size_t at = 0; at + 8 <= table.size(); at += 8) {
        const auto thunk = load_le<std::uint64_t>(table, at);
        if (thunk == 0) {
            return {};
        }
        if (budget-- == 0) {
            return corrupt("more imports than the limit");
        }
        if (thunk >> 63U != 0) {
            continue;
        }
        KB_TRY(const std::string_view name, image.text(thunk + 2));
        out.imports.push_back({.name = name, .library = where.library});
    }
    return corrupt("an import table has no end");
}

// A descriptor: u32 lookup table, u32 time, u32 forwarder, u32 name, u32 address table; zeros at
// the end.
Result<void> read_imports(Image& image, std::uint64_t address, SharedObject& out) {
    KB_TRY(const Bytes table, image.from(address));
    std::size_t budget = kMaxThunks;
    for (std::size_t at = 0; at + kDescriptorSize <= table.size(); at += kDescriptorSize) {
        const auto name_at = load_le<std::uint32_t>(table, at + 12);
        if (name_at == 0) {
            return {};
        }
        if (out.needed.size() == kMaxLibraries) {
            return corrupt("more needed libraries than the limit");
        }
        KB_TRY(const std::string_view library, image.text(name_at));
        out.needed.push_back(library);
        const auto lookup = load_le<std::uint32_t>(table, at);
        const ThunkTable thunks{.address =
                                    lookup != 0 ? lookup : load_le<std::uint32_t>(table, at + 16),
                                .library = library};
        KB_TRY(read_thunks(image, thunks, budget, out));
    }
    return corrupt("the import directory has no end");
}

Result<std::vector<Section>> read_sections(const ByteSource& source, Range where) {
    KB_TRY(const std::vector<std::byte> table,
           read_range(source, where, kMaxSections * 40, "the section table"));
    std::vector<Section> out;
    for (std::size_t at = 0; at + 40 <= table.size(); at += 40) {
        out.push_back({.address = load_le<std::uint32_t>(table, at + 12),
                       .range = {.offset = load_le<std::uint32_t>(table, at + 20),
                                 .size = load_le<std::uint32_t>(table, at + 16)}});
    }
    return out;
}

} // namespace

bool is_pe(Bytes head) {
    return as_text(head).starts_with("MZ");
}

Result<SharedObject> read_pe(const ByteSource& source) {
    KB_TRY(const std::vector<std::byte> dos, read_range(source, {0, 64}, 64, "the DOS header"));
    const std::uint64_t at = load_le<std::uint32_t>(dos, 60);
    KB_TRY(const std::vector<std::byte> header, read_range(source, {at, 24}, 24, "the PE header"));
    if (!as_text(header).starts_with(std::string_view{"PE\0\0", 4})) {
        return Error{.code = ErrorCode::unsupported, .message = "the file is no PE image"};
    }
    SharedObject out;
    out.format = Format::pe;
    const auto machine = load_le<std::uint16_t>(header, 4);
    out.architecture = machine == 0x8664   ? "x86_64"
                       : machine == 0xaa64 ? "aarch64"
                                           : fmt::format("machine-{}", machine);
    const std::uint64_t optional_size = load_le<std::uint16_t>(header, 20);
    KB_TRY(const std::vector<std::byte> optional,
           read_range(source, {at + 24, optional_size}, 65536, "the optional header"));
    if (optional.size() < 128 || load_le<std::uint16_t>(optional, 0) != 0x20b) {
        out.add_all_gaps("only 64-bit PE images are looked into");
        return out;
    }
    KB_TRY(std::vector<Section> sections,
           read_sections(
               source,
               {at + 24 + optional_size, std::uint64_t{load_le<std::uint16_t>(header, 6)} * 40}));
    Image image{source, std::move(sections), out};
    const auto imports_at = load_le<std::uint32_t>(optional, 120);
    if (imports_at != 0) {
        KB_TRY(read_imports(image, imports_at, out));
    }
    out.add_gap(Fact::device_code, "device code in PE files is not looked into");
    out.add_gap(Fact::minimum_os, "a PE file names no oldest system");
    return out;
}

} // namespace kb::binfmt
