// SPDX-License-Identifier: Apache-2.0
#include "binfmt/device_code.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::binfmt {

namespace {

constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
constexpr std::size_t kContainerHeader = 16;
constexpr std::size_t kEntryHeader = 64;
constexpr std::size_t kMaxImages = 1UL << 20U;
constexpr std::string_view kBundleMagic = "__CLANG_OFFLOAD_BUNDLE__";

Error corrupt(std::string message) {
    return Error{.code = ErrorCode::corrupt, .message = std::move(message)};
}

/// Reads forward through a section in blocks, so that thousands of small headers do not cost a
/// system call each.
class Window {
public:
    Window(const ByteSource& source, Range section) : source_{&source}, section_{section} {}

    /// `size` bytes (at most a block) at an offset within the section.
    [[nodiscard]] Result<Bytes> at(std::uint64_t offset, std::uint64_t size) {
        if (!fits({offset, size}, section_.size)) {
            return corrupt(fmt::format("a header at offset {:#x} lies beyond the section", offset));
        }
        if (offset < start_ || offset + size > start_ + block_.size()) {
            const std::uint64_t want = std::max<std::uint64_t>(kBlock, size);
            KB_TRY(block_,
                   read_range(*source_,
                              {section_.offset + offset, std::min(want, section_.size - offset)},
                              want,
                              "a device code section"));
            start_ = offset;
        }
        return Bytes{block_}.subspan(offset - start_, size);
    }

private:
    // Headers of neighbours are near each other only when images are small: 4 KiB serve both.
    static constexpr std::uint64_t kBlock = 4096;
    const ByteSource* source_;
    Range section_;
    std::uint64_t start_ = 0;
    std::vector<std::byte> block_;
};

// An entry: u16 kind (1 PTX, 2 cubin), u16 version, u32 header size, u64 payload size (padded),
// u32 compressed size, u32 options offset, u16 minor, u16 major, u32 arch (90 = sm_90),
// u32 name offset, u32 name size, u64 flags, u64 0, u64 uncompressed size.
// Flags seen with nvcc 13.0: 0x2000 LZ4, 0x8000 zstd, 0x100000 'a', 0x200000 'f'.
constexpr std::uint64_t kFlagCompressed = 0x2000 | 0x8000;
constexpr std::uint64_t kFlagArchSpecific = 0x100000;
constexpr std::uint64_t kFlagFamilySpecific = 0x200000;

/// The 'a' of a cubin made by a toolkit that did not set the entry's flag: bit 11 of e_flags in the
/// ELF of ABI 7 (12.x), bit 3 of the next ABI.
bool cubin_is_arch_specific(Bytes elf_header) {
    if (!as_text(elf_header)
             .starts_with("\x7f"
                          "ELF")) {
        return false;
    }
    const auto abi = load_le<std::uint8_t>(elf_header, 8);
    const auto flags = load_le<std::uint32_t>(elf_header, 48);
    return abi == 7 && (flags & 0x800U) != 0;
}

Result<DeviceImage> read_entry(Window& window, std::uint64_t at, Bytes entry) {
    const auto kind = load_le<std::uint16_t>(entry, 0);
    const auto header_size = load_le<std::uint32_t>(entry, 4);
    const auto size = load_le<std::uint64_t>(entry, 8);
    const auto sm = load_le<std::uint32_t>(entry, 28);
    const auto flags = load_le<std::uint64_t>(entry, 40);
    DeviceImage image{.kind = kind == 1   ? DeviceImageKind::ptx
                              : kind == 2 ? DeviceImageKind::cubin
                                          : DeviceImageKind::other,
                      .compressed = (flags & kFlagCompressed) != 0,
                      .size = size};
    if (image.kind == DeviceImageKind::other) {
        return image;
    }
    image.arch = fmt::format("{}.{}", sm / 10, sm % 10);
    bool arch_specific = (flags & kFlagArchSpecific) != 0;
    if (kind == 2 && !image.compressed && !arch_specific && size >= 64) {
        KB_TRY(const Bytes elf_header, window.at(at + header_size, 64));
        arch_specific = cubin_is_arch_specific(elf_header);
    }
    if (arch_specific) {
        image.arch += 'a';
    } else if ((flags & kFlagFamilySpecific) != 0) {
        image.arch += 'f';
    }
    return image;
}

/// Entries of one container of `size` bytes that starts at `at`.
Result<void> read_container(Window& window,
                            std::uint64_t at,
                            std::uint64_t size,
                            std::vector<DeviceImage>& out) {
    const std::uint64_t end = at + size;
    while (at < end) {
        KB_TRY(const Bytes entry, window.at(at, kEntryHeader));
        const std::uint64_t header_size = load_le<std::uint32_t>(entry, 4);
        const auto payload = load_le<std::uint64_t>(entry, 8);
        if (header_size < kEntryHeader || header_size > end - at ||
            payload > end - at - header_size) {
            return corrupt(fmt::format("a fat binary entry at offset {:#x} does not fit", at));
        }
        if (out.size() == kMaxImages) {
            return corrupt("more device images than the limit");
        }
        KB_TRY(DeviceImage image, read_entry(window, at, entry));
        out.push_back(std::move(image));
        at += header_size + payload;
    }
    return {};
}

/// "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-" -> "gfx90a:xnack-"; nothing for the host entry.
std::optional<std::string> offload_arch(std::string_view id) {
    if (id.starts_with("host")) {
        return std::nullopt;
    }
    const std::size_t at = id.find("--");
    return std::string{at == std::string_view::npos ? id : id.substr(at + 2)};
}

} // namespace

// A section holds containers: u32 magic, u16 version (1), u16 header size (16), u64 size of the
// entries that follow. The linker pads between those of different objects with zeros, by 8.
Result<std::vector<DeviceImage>> read_cuda_fatbins(const ByteSource& source, Range section) {
    std::vector<DeviceImage> out;
    if (!fits(section, source.size())) {
        return corrupt("the section lies beyond the end of the file");
    }
    Window window{source, section};
    std::uint64_t at = 0;
    while (section.size - at >= kContainerHeader) {
        KB_TRY(const Bytes header, window.at(at, kContainerHeader));
        const auto magic = load_le<std::uint32_t>(header, 0);
        if (magic == 0) {
            at += 8;
            continue;
        }
        const std::uint64_t header_size = load_le<std::uint16_t>(header, 6);
        const auto size = load_le<std::uint64_t>(header, 8);
        if (magic != kFatbinMagic || header_size < kContainerHeader) {
            return corrupt(fmt::format("offset {:#x} holds no fat binary", at));
        }
        if (header_size > section.size - at || size > section.size - at - header_size) {
            return corrupt(fmt::format("the fat binary at offset {:#x} does not fit", at));
        }
        KB_TRY(read_container(window, at + header_size, size, out));
        at += header_size + size;
        at = std::min(section.size, (at + 7) / 8 * 8);
    }
    return out;
}

// A bundle: magic (24 bytes), u64 count; per entry u64 offset, u64 size, u64 id size, id. Bundles
// of several objects follow each other, aligned to 4096.
Result<std::vector<DeviceImage>> read_offload_bundles(const ByteSource& source, Range section) {
    std::vector<DeviceImage> out;
    if (!fits(section, source.size())) {
        return corrupt("the section lies beyond the end of the file");
    }
    Window window{source, section};
    std::uint64_t start = 0;
    while (section.size - start >= kBundleMagic.size() + 8) {
        KB_TRY(const Bytes head, window.at(start, kBundleMagic.size() + 8));
        if (as_text(head).starts_with("CCOB")) {
            return Error{.code = ErrorCode::unsupported,
                         .message = "the offload bundle is compressed"};
        }
        if (!as_text(head).starts_with(kBundleMagic)) {
            return corrupt(fmt::format("offset {:#x} holds no offload bundle", start));
        }
        const auto count = load_le<std::uint64_t>(head, kBundleMagic.size());
        std::uint64_t at = start + kBundleMagic.size() + 8;
        std::uint64_t end = at;
        for (std::uint64_t i = 0; i < count; ++i) {
            KB_TRY(const Bytes entry, window.at(at, 24));
            const Range code{.offset = load_le<std::uint64_t>(entry, 0),
                             .size = load_le<std::uint64_t>(entry, 8)};
            const auto id_size = load_le<std::uint64_t>(entry, 16);
            if (id_size > 1024 || !fits(code, section.size - start) || out.size() == kMaxImages) {
                return corrupt(fmt::format("entry {} of the offload bundle does not fit", i));
            }
            KB_TRY(const Bytes id, window.at(at + 24, id_size));
            if (auto arch = offload_arch(as_text(id))) {
                out.push_back({.kind = DeviceImageKind::code_object,
                               .arch = std::move(*arch),
                               .size = code.size});
            }
            at += 24 + id_size;
            end = std::max({end, at, start + code.offset + code.size});
        }
        start = std::min(section.size, (end + 4095) / 4096 * 4096);
    }
    return out;
}

} // namespace kb::binfmt
