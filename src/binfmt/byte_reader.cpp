// SPDX-License-Identifier: Apache-2.0
#include "binfmt/byte_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::binfmt {

Result<void> MemorySource::read(std::uint64_t offset, std::span<std::byte> into) const {
    if (!fits({offset, into.size()}, bytes_.size())) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format(
                         "{} bytes at offset {} lie beyond the end", into.size(), offset)};
    }
    std::ranges::copy(bytes_.subspan(offset, into.size()), into.begin());
    return {};
}

Result<std::vector<std::byte>>
read_range(const ByteSource& source, Range range, std::uint64_t limit, std::string_view what) {
    if (!fits(range, source.size())) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("{} ({} bytes at offset {}) lies beyond the end of "
                                            "the file ({} bytes)",
                                            what,
                                            range.size,
                                            range.offset,
                                            source.size())};
    }
    if (range.size > limit) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format(
                         "{} has {} bytes, more than the limit of {}", what, range.size, limit)};
    }
    std::vector<std::byte> out(range.size);
    KB_TRY(source.read(range.offset, out).context(fmt::format("reading {}", what)));
    return out;
}

std::uint32_t load_be32(Bytes record, std::size_t offset) {
    return std::byteswap(load_le<std::uint32_t>(record, offset));
}

std::optional<std::string_view> c_string(Bytes table, std::uint64_t offset) {
    if (offset >= table.size()) {
        return std::nullopt;
    }
    const std::string_view rest = as_text(table.subspan(offset)).substr(0, kMaxName);
    const std::size_t end = rest.find('\0');
    if (end == std::string_view::npos) {
        return std::nullopt;
    }
    return rest.substr(0, end);
}

} // namespace kb::binfmt
