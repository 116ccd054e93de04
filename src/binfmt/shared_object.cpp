// SPDX-License-Identifier: Apache-2.0
#include "binfmt/shared_object.hpp"

#include "binfmt/elf.hpp"
#include "binfmt/macho.hpp"
#include "binfmt/pe.hpp"

#include <algorithm>

namespace kb::binfmt {

std::optional<std::string_view> SharedObject::gap(Fact fact) const {
    const auto found = std::ranges::find(gaps, fact, &Gap::fact);
    return found == gaps.end() ? std::nullopt : std::optional<std::string_view>{found->reason};
}

void SharedObject::add_gap(Fact fact, std::string reason) {
    if (!gap(fact)) {
        gaps.push_back({.fact = fact, .reason = std::move(reason)});
    }
}

void SharedObject::remove_gap(Fact fact) {
    std::erase_if(gaps, [&](const Gap& gap) { return gap.fact == fact; });
}

void SharedObject::add_all_gaps(const std::string& reason) {
    for (const Fact fact : {Fact::symbols,
                            Fact::versions,
                            Fact::needed,
                            Fact::flags,
                            Fact::device_code,
                            Fact::minimum_os}) {
        add_gap(fact, reason);
    }
}

Bytes SharedObject::keep(std::vector<std::byte> bytes) {
    storage.push_back(std::make_unique<const std::vector<std::byte>>(std::move(bytes)));
    return *storage.back();
}

namespace {

Result<SharedObject> read_by_format(const ByteSource& source) {
    const std::uint64_t head_size = std::min<std::uint64_t>(source.size(), 64);
    KB_TRY(const std::vector<std::byte> head,
           read_range(source, {0, head_size}, 64, "the file header"));
    if (is_elf(head)) {
        return read_elf(source);
    }
    if (is_macho(head)) {
        return read_macho(source);
    }
    if (is_pe(head)) {
        return read_pe(source);
    }
    return Error{.code = ErrorCode::unsupported,
                 .message = head.empty() ? "the file is empty"
                                         : "the file is no ELF, Mach-O or PE object"};
}

} // namespace

Result<SharedObject> read_shared_object(const ByteSource& source) {
    KB_TRY(SharedObject out, read_by_format(source));
    out.add_gap(Fact::path_texts, "paths in the bytes of the file were not looked for");
    return out;
}

std::string_view to_text(Format format) {
    switch (format) {
    case Format::elf:
        return "ELF";
    case Format::macho:
        return "Mach-O";
    case Format::pe:
        return "PE";
    }
    KB_ASSERT(false, "the switch names every format");
}

std::string_view to_text(DeviceImageKind kind) {
    switch (kind) {
    case DeviceImageKind::cubin:
        return "cubin";
    case DeviceImageKind::ptx:
        return "ptx";
    case DeviceImageKind::code_object:
        return "code-object";
    case DeviceImageKind::other:
        return "other";
    }
    KB_ASSERT(false, "the switch names every kind");
}

} // namespace kb::binfmt
