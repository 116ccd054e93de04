// SPDX-License-Identifier: Apache-2.0
#include "hub/xet_chunk.hpp"

#include <fmt/format.h>

#include <algorithm>

// After "LZ4 Frame Format Description" 1.6.4 and "LZ4 Block Format Description". All blocks go into
// one buffer, so that a match may reach into the block before it.
namespace kb::hub {

namespace {

constexpr std::uint32_t kMagic = 0x184D2204;
constexpr std::size_t kLeastMatch = 4;

Error broken(std::string_view why) {
    return {.code = ErrorCode::corrupt, .message = fmt::format("an LZ4 frame that {}", why)};
}

/// Takes bytes from the front, never past the end.
class Source {
public:
    explicit Source(Bytes bytes) : bytes_{bytes} {}

    [[nodiscard]] bool empty() const { return bytes_.empty(); }

    Result<Bytes> take(std::size_t n) {
        if (n > bytes_.size()) {
            return broken("ends too early");
        }
        const Bytes taken = bytes_.first(n);
        bytes_ = bytes_.subspan(n);
        return taken;
    }

    Result<std::uint8_t> byte() {
        KB_TRY(const Bytes one, take(1));
        return std::to_integer<std::uint8_t>(one[0]);
    }

    Result<std::uint32_t> number(std::size_t width) {
        KB_TRY(const Bytes bytes, take(width));
        std::uint32_t value = 0;
        for (std::size_t i = 0; i < width; ++i) {
            value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
        }
        return value;
    }

private:
    Bytes bytes_;
};

class Decoder {
public:
    Decoder(std::size_t size, std::string& out) : size_{size}, out_{&out} {
        out_->clear();
        out_->reserve(size);
    }

    Result<void> frame(Source& source) {
        KB_TRY(const std::uint32_t magic, source.number(4));
        KB_TRY(const std::uint8_t flags, source.byte());
        if (magic != kMagic || flags >> 6U != 1) {
            return broken("begins like none");
        }
        const bool has_block_sum = (flags & 0x10U) != 0;
        const bool has_size = (flags & 0x08U) != 0;
        const bool has_sum = (flags & 0x04U) != 0;
        if ((flags & 0x01U) != 0) {
            return broken("wants a dictionary");
        }
        // Block size, content size, checksum of the header.
        KB_TRY(source.take(1U + (has_size ? 8U : 0U) + 1U));
        while (true) {
            KB_TRY(const std::uint32_t length, source.number(4));
            if (length == 0) {
                break;
            }
            KB_TRY(const Bytes block, source.take(length & 0x7FFFFFFFU));
            if ((length & 0x80000000U) != 0) {
                KB_TRY(append(block));
            } else {
                Source inner{block};
                KB_TRY(this->block(inner));
            }
            KB_TRY(source.take(has_block_sum ? 4 : 0));
        }
        KB_TRY(source.take(has_sum ? 4 : 0));
        if (!source.empty() || out_->size() != size_) {
            return broken("unpacks to another size");
        }
        return {};
    }

private:
    Result<void> append(Bytes literals) {
        if (literals.size() > size_ - out_->size()) {
            return broken("unpacks to more than was said");
        }
        *out_ += as_text(literals);
        return {};
    }

    /// 15 in four bits means that more bytes follow.
    static Result<std::size_t> length(std::size_t first, Source& source) {
        if (first != 15) {
            return first;
        }
        std::size_t sum = first;
        while (true) {
            KB_TRY(const std::uint8_t more, source.byte());
            sum += more; // bounded by the bytes of a block, which are bounded by their length
            if (more != 255) {
                return sum;
            }
        }
    }

    Result<void> block(Source& source) {
        while (true) {
            KB_TRY(const std::uint8_t token, source.byte());
            KB_TRY(const std::size_t literals, length(token >> 4U, source));
            KB_TRY(const Bytes bytes, source.take(literals));
            KB_TRY(append(bytes));
            if (source.empty()) {
                return {}; // the last sequence is literals alone
            }
            KB_TRY(const std::uint32_t offset, source.number(2));
            KB_TRY(const std::size_t match, length(token & 15U, source));
            KB_TRY(copy(offset, match + kLeastMatch));
        }
    }

    Result<void> copy(std::size_t offset, std::size_t n) {
        if (offset == 0 || offset > out_->size()) {
            return broken("refers to bytes before its begin");
        }
        if (n > size_ - out_->size()) {
            return broken("unpacks to more than was said");
        }
        // The source may run into what is being written: that is how runs are packed.
        const std::size_t from = out_->size() - offset;
        while (n > 0) {
            const std::size_t step = std::min(n, out_->size() - from);
            out_->append(out_->data() + from, step); // reserved: nothing moves
            n -= step;
        }
        return {};
    }

    std::size_t size_;
    std::string* out_;
};

} // namespace

Result<void> decode_lz4_frame(Bytes frame, std::size_t size, std::string& out) {
    Source source{frame};
    return Decoder{size, out}.frame(source);
}

} // namespace kb::hub
