// SPDX-License-Identifier: Apache-2.0
#include "binfmt/elf.hpp"

#include "binfmt/device_code.hpp"
#include "binfmt/elf_detail.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::binfmt {

namespace elf {

namespace {

constexpr std::size_t kHeaderSize = 64;
constexpr std::size_t kProgramHeaderSize = 56;
constexpr std::size_t kSectionHeaderSize = 64;
constexpr std::size_t kMaxSegments = 4096;
constexpr std::size_t kMaxSections = 65536;
constexpr std::uint64_t kMaxDynamic = 1UL << 20U;
constexpr std::uint64_t kMaxNotes = 1UL << 20U;
constexpr std::uint64_t kMaxSectionNames = 4UL << 20U;

constexpr std::uint16_t kTypeShared = 3;
constexpr std::uint16_t kMachineX86 = 62;
constexpr std::uint16_t kMachineArm = 183;
constexpr std::uint32_t kLoad = 1;
constexpr std::uint32_t kDynamic = 2;
constexpr std::uint32_t kNote = 4;
constexpr std::uint32_t kGnuStack = 0x6474e551;
constexpr std::uint32_t kGnuRelro = 0x6474e552;
constexpr std::uint32_t kExecutable = 1;
constexpr std::uint64_t kFlagTextRel = 4; // DF_TEXTREL
constexpr std::uint32_t kNoBits = 8;      // SHT_NOBITS

Error corrupt(std::string message) {
    return Error{.code = ErrorCode::corrupt, .message = std::move(message)};
}

std::string machine_name(std::uint16_t machine) {
    switch (machine) {
    case 3:
        return "i686";
    case 8:
        return "mips";
    case 20:
        return "ppc";
    case 21:
        return "ppc64";
    case 22:
        return "s390x";
    case 40:
        return "arm";
    case kMachineX86:
        return "x86_64";
    case kMachineArm:
        return "aarch64";
    case 190:
        return "cuda";
    case 224:
        return "amdgpu";
    case 243:
        return "riscv";
    case 258:
        return "loongarch";
    default:
        return fmt::format("machine-{}", machine);
    }
}

Result<std::vector<Segment>> read_segments(const ByteSource& source, Bytes header) {
    const auto offset = load_le<std::uint64_t>(header, 32);
    const auto entry_size = load_le<std::uint16_t>(header, 54);
    const auto count = load_le<std::uint16_t>(header, 56);
    if (count == 0) {
        return corrupt("the file has no program headers");
    }
    if (entry_size != kProgramHeaderSize || count > kMaxSegments) {
        return corrupt(fmt::format("{} program headers of {} bytes; at most {} of {} are read",
                                   count,
                                   entry_size,
                                   kMaxSegments,
                                   kProgramHeaderSize));
    }
    KB_TRY(const std::vector<std::byte> table,
           read_range(source,
                      {offset, std::uint64_t{count} * kProgramHeaderSize},
                      kMaxSegments * kProgramHeaderSize,
                      "the program header table"));
    std::vector<Segment> out;
    for (std::size_t i = 0; i < count; ++i) {
        const Bytes record = Bytes{table}.subspan(i * kProgramHeaderSize, kProgramHeaderSize);
        out.push_back({.type = load_le<std::uint32_t>(record, 0),
                       .flags = load_le<std::uint32_t>(record, 4),
                       .offset = load_le<std::uint64_t>(record, 8),
                       .address = load_le<std::uint64_t>(record, 16),
                       .file_size = load_le<std::uint64_t>(record, 32)});
    }
    return out;
}

Result<std::vector<Section>> read_sections(const ByteSource& source, Bytes header) {
    const auto offset = load_le<std::uint64_t>(header, 40);
    const auto entry_size = load_le<std::uint16_t>(header, 58);
    const auto count = load_le<std::uint16_t>(header, 60);
    const auto names_index = load_le<std::uint16_t>(header, 62);
    if (offset == 0 || count == 0) {
        return corrupt("the file has no section headers");
    }
    if (entry_size != kSectionHeaderSize || names_index >= count) {
        return corrupt("the section header table has an unknown form");
    }
    KB_TRY(const std::vector<std::byte> table,
           read_range(source,
                      {offset, std::uint64_t{count} * kSectionHeaderSize},
                      kMaxSections * kSectionHeaderSize,
                      "the section header table"));
    const auto range_of = [&](std::size_t i) {
        const std::size_t at = i * kSectionHeaderSize;
        return Range{.offset = load_le<std::uint64_t>(table, at + 24),
                     .size = load_le<std::uint64_t>(table, at + 32)};
    };
    KB_TRY(const std::vector<std::byte> names,
           read_range(source, range_of(names_index), kMaxSectionNames, "the section name table"));
    std::vector<Section> out;
    for (std::size_t i = 1; i < count; ++i) {
        const std::size_t at = i * kSectionHeaderSize;
        const auto name = c_string(names, load_le<std::uint32_t>(table, at));
        if (!name) {
            return corrupt(fmt::format("section {} has no name", i));
        }
        out.push_back({.name = std::string{*name},
                       .type = load_le<std::uint32_t>(table, at + 4),
                       .address = load_le<std::uint64_t>(table, at + 16),
                       .range = range_of(i)});
    }
    return out;
}

/// Nothing when the file has no dynamic segment.
Result<std::optional<Dynamic>> read_dynamic(const Layout& layout) {
    const auto segment = std::ranges::find(layout.segments, kDynamic, &Segment::type);
    if (segment == layout.segments.end()) {
        return std::optional<Dynamic>{};
    }
    KB_TRY(const std::vector<std::byte> table,
           read_range(*layout.source,
                      {segment->offset, segment->file_size},
                      kMaxDynamic,
                      "the dynamic segment"));
    Dynamic out;
    for (std::size_t at = 0; at + 16 <= table.size(); at += 16) {
        const auto tag = load_le<std::uint64_t>(table, at);
        const auto value = load_le<std::uint64_t>(table, at + 8);
        if (tag == 0) {
            return std::optional<Dynamic>{std::move(out)};
        }
        if (tag == 1) {
            out.needed.push_back(value);
        } else {
            out.values[tag] = value;
        }
    }
    return corrupt("the dynamic segment has no end mark");
}

Result<std::string_view> text_at(Bytes strings, std::uint64_t offset, std::string_view what) {
    const auto text = c_string(strings, offset);
    if (!text) {
        return corrupt(
            fmt::format("{} lies outside the dynamic string table (offset {})", what, offset));
    }
    return *text;
}

Result<void> read_names(const Dynamic& dynamic, Bytes strings, SharedObject& out) {
    for (const std::uint64_t offset : dynamic.needed) {
        KB_TRY(const std::string_view name,
               text_at(strings, offset, "the name of a needed library"));
        out.needed.push_back(name);
    }
    if (const auto offset = dynamic.value(kDtSoname)) {
        KB_TRY(out.soname, text_at(strings, *offset, "the soname"));
    }
    constexpr std::pair<std::uint64_t, SearchPathKind> kKinds[] = {
        {kDtRpath, SearchPathKind::rpath}, {kDtRunpath, SearchPathKind::runpath}};
    for (const auto& [tag, kind] : kKinds) {
        if (const auto offset = dynamic.value(tag)) {
            KB_TRY(const std::string_view text, text_at(strings, *offset, "a search path"));
            out.search_paths.push_back({.kind = kind, .text = text});
        }
    }
    return {};
}

void read_flags(const Layout& layout, const Dynamic& dynamic, SharedObject& out) {
    const auto stack = std::ranges::find(layout.segments, kGnuStack, &Segment::type);
    // Without the mark glibc asks for an executable stack on x86-64, and not on aarch64.
    out.exec_stack = stack == layout.segments.end() ? layout.machine == kMachineX86
                                                    : (stack->flags & kExecutable) != 0;
    out.relro =
        std::ranges::find(layout.segments, kGnuRelro, &Segment::type) != layout.segments.end();
    out.text_relocations = dynamic.value(kDtTextRel).has_value() ||
                           (dynamic.value(kDtFlags).value_or(0) & kFlagTextRel) != 0;
}

// A note: u32 name size, u32 content size, u32 type, name padded to 4, content padded to 4.
std::string find_build_id(Bytes notes) {
    std::uint64_t at = 0;
    while (fits({at, 12}, notes.size())) {
        const std::uint64_t name_size = load_le<std::uint32_t>(notes, at);
        const std::uint64_t content_size = load_le<std::uint32_t>(notes, at + 4);
        const auto type = load_le<std::uint32_t>(notes, at + 8);
        const std::uint64_t content = at + 12 + (name_size + 3) / 4 * 4;
        if (!fits({at + 12, name_size}, notes.size()) ||
            !fits({content, content_size}, notes.size())) {
            return {};
        }
        const std::string_view name = as_text(notes.subspan(at + 12, name_size));
        if (type == 3 && name == std::string_view{"GNU\0", 4}) {
            std::string hex;
            for (const std::byte b : notes.subspan(content, content_size)) {
                hex += fmt::format("{:02x}", std::to_integer<unsigned>(b));
            }
            return hex;
        }
        at = content + (content_size + 3) / 4 * 4;
    }
    return {};
}

void read_build_id(const Layout& layout, SharedObject& out) {
    for (const Segment& segment : layout.segments) {
        if (segment.type != kNote || !out.build_id.empty()) {
            continue;
        }
        // A damaged note costs the build id, which no check relies on, and nothing else.
        const auto notes = read_range(
            *layout.source, {segment.offset, segment.file_size}, kMaxNotes, "a note segment");
        if (notes) {
            out.build_id = find_build_id(*notes);
        }
    }
}

void read_device_code(const Layout& layout, SharedObject& out) {
    if (!layout.sections_gap.empty()) {
        out.add_gap(Fact::device_code,
                    "device code is found by section names: " + layout.sections_gap);
        return;
    }
    for (const Section& section : layout.sections) {
        const bool cuda = section.name == ".nv_fatbin" || section.name == "__nv_relfatbin";
        const bool hip = section.name == ".hip_fatbin";
        if ((!cuda && !hip) || section.type == kNoBits) {
            continue;
        }
        auto images = cuda ? read_cuda_fatbins(*layout.source, section.range)
                           : read_offload_bundles(*layout.source, section.range);
        if (!images) {
            out.add_gap(Fact::device_code,
                        std::move(images).context(section.name).error().to_text());
            return;
        }
        out.device_images.insert(out.device_images.end(), images->begin(), images->end());
    }
}

/// Says why a file is not looked into; nothing for those that are.
std::optional<std::string> foreign_reason(Bytes header, const std::string& machine) {
    if (load_le<std::uint8_t>(header, 4) != 2 || load_le<std::uint8_t>(header, 5) != 1) {
        return "only 64-bit little-endian ELF files are looked into";
    }
    const auto number = load_le<std::uint16_t>(header, 18);
    if (number != kMachineX86 && number != kMachineArm) {
        return fmt::format("ELF files for {} are not looked into", machine);
    }
    if (load_le<std::uint16_t>(header, 16) != kTypeShared) {
        return "the ELF file is no shared object";
    }
    return std::nullopt;
}

} // namespace

std::optional<Range> Layout::mapped_from(std::uint64_t address) const {
    for (const Segment& segment : segments) {
        if (segment.type == kLoad && address >= segment.address &&
            address - segment.address < segment.file_size) {
            const std::uint64_t skip = address - segment.address;
            if (segment.offset > source->size() || skip > source->size() - segment.offset) {
                return std::nullopt;
            }
            const std::uint64_t offset = segment.offset + skip;
            return Range{.offset = offset,
                         .size = std::min(segment.file_size - skip, source->size() - offset)};
        }
    }
    return std::nullopt;
}

Result<Range>
Layout::mapped(std::uint64_t address, std::uint64_t size, std::string_view what) const {
    const auto range = mapped_from(address);
    if (!range || range->size < size) {
        return corrupt(fmt::format(
            "{} ({} bytes at address {:#x}) is not part of the file", what, size, address));
    }
    return Range{.offset = range->offset, .size = size};
}

std::optional<std::uint64_t> Dynamic::value(std::uint64_t tag) const {
    const auto found = values.find(tag);
    return found == values.end() ? std::nullopt : std::optional{found->second};
}

} // namespace elf

bool is_elf(Bytes head) {
    return as_text(head).starts_with("\x7f"
                                     "ELF");
}

Result<std::vector<ElfSection>> read_elf_sections(const ByteSource& source) {
    KB_TRY(const std::vector<std::byte> header,
           read_range(source, {0, elf::kHeaderSize}, elf::kHeaderSize, "the ELF header"));
    if (load_le<std::uint8_t>(header, 4) != 2 || load_le<std::uint8_t>(header, 5) != 1) {
        return Error{.code = ErrorCode::unsupported,
                     .message = "only 64-bit little-endian ELF files are looked into"};
    }
    KB_TRY(std::vector<elf::Section> sections, elf::read_sections(source, header));
    std::vector<ElfSection> out;
    for (elf::Section& section : sections) {
        if (section.type == elf::kNoBits) {
            continue;
        }
        if (!fits(section.range, source.size())) {
            return elf::corrupt(fmt::format("section '{}' does not lie in the file", section.name));
        }
        out.push_back({.name = std::move(section.name), .range = section.range});
    }
    return out;
}

Result<SharedObject> read_elf(const ByteSource& source) {
    KB_TRY(const std::vector<std::byte> header,
           read_range(source, {0, elf::kHeaderSize}, elf::kHeaderSize, "the ELF header"));
    SharedObject out;
    out.format = Format::elf;
    // Big-endian files carry the machine number the other way round.
    const auto raw_machine = load_le<std::uint16_t>(header, 18);
    const bool big = load_le<std::uint8_t>(header, 5) == 2;
    out.architecture = elf::machine_name(big ? std::byteswap(raw_machine) : raw_machine);
    out.add_gap(Fact::minimum_os, "an ELF file names no oldest system");
    if (const auto reason = elf::foreign_reason(header, out.architecture)) {
        out.add_all_gaps(*reason);
        return out;
    }
    elf::Layout layout{.source = &source, .machine = raw_machine};
    KB_TRY(layout.segments, elf::read_segments(source, header));
    if (auto sections = elf::read_sections(source, header)) {
        layout.sections = std::move(*sections);
    } else {
        layout.sections_gap = sections.error().message;
    }
    KB_TRY(const std::optional<elf::Dynamic> dynamic, elf::read_dynamic(layout));
    if (!dynamic) {
        out.add_all_gaps("the file has no dynamic segment");
        return out;
    }
    const auto strings_at = dynamic->value(elf::kDtStrTab);
    const auto strings_size = dynamic->value(elf::kDtStrSize);
    if (!strings_at || !strings_size) {
        return elf::corrupt("the dynamic segment names no string table");
    }
    KB_TRY(const Range strings_range,
           layout.mapped(*strings_at, *strings_size, "the dynamic string table"));
    KB_TRY(std::vector<std::byte> strings,
           read_range(source, strings_range, elf::kMaxStringTable, "the dynamic string table"));
    const Bytes kept = out.keep(std::move(strings));
    KB_TRY(elf::read_names(*dynamic, kept, out));
    elf::read_flags(layout, *dynamic, out);
    KB_TRY(elf::read_symbols(layout, *dynamic, kept, out));
    elf::read_build_id(layout, out);
    elf::read_device_code(layout, out);
    return out;
}

} // namespace kb::binfmt
