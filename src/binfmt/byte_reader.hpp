// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::binfmt {

/// A file that is read by offset. Implementations must be usable from the thread that made them
/// only.
class ByteSource {
public:
    virtual ~ByteSource() = default;

    [[nodiscard]] virtual std::uint64_t size() const = 0;
    /// Fills `into` from `offset`. A range beyond the end is `corrupt`.
    [[nodiscard]] virtual Result<void> read(std::uint64_t offset,
                                            std::span<std::byte> into) const = 0;
};

/// Bytes in memory, borrowed.
class MemorySource final : public ByteSource {
public:
    explicit MemorySource(Bytes bytes) : bytes_{bytes} {}

    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }

    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> into) const override;

private:
    Bytes bytes_;
};

/// A range of a file. Kept in 64 bits until it is known to fit.
struct Range {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
};

/// True when the range lies in `size` bytes; cannot overflow.
[[nodiscard]] constexpr bool fits(Range range, std::uint64_t size) {
    return range.offset <= size && range.size <= size - range.offset;
}

/// Reads a range of at most `limit` bytes. Beyond the end or over the limit is `corrupt`; the
/// message names `what`.
[[nodiscard]] Result<std::vector<std::byte>>
read_range(const ByteSource& source, Range range, std::uint64_t limit, std::string_view what);

/// Little-endian integer at `offset` of a record whose size the caller has checked; outside is our
/// bug.
template <std::unsigned_integral T>
[[nodiscard]] T load_le(Bytes record, std::size_t offset) {
    KB_ASSERT(offset <= record.size() && sizeof(T) <= record.size() - offset,
              "the record was checked to hold this field");
    std::uint64_t value = 0;
    for (std::size_t i = sizeof(T); i-- > 0;) {
        value = value << 8U | std::to_integer<std::uint64_t>(record[offset + i]);
    }
    return static_cast<T>(value);
}

/// Big-endian twin, for the headers of universal files.
[[nodiscard]] std::uint32_t load_be32(Bytes record, std::size_t offset);

/// Longest name that is read: the cost of a table of names without ends stays linear.
inline constexpr std::size_t kMaxName = 64UL << 10U;

/// The text at `offset` up to its NUL. Nothing when the offset or the end lies outside, or when it
/// is longer than kMaxName.
[[nodiscard]] std::optional<std::string_view> c_string(Bytes table, std::uint64_t offset);

} // namespace kb::binfmt
