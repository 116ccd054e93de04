// SPDX-License-Identifier: Apache-2.0
#include "binfmt/path_texts.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstring>

namespace kb::binfmt {

namespace {

// Fits into the second-level cache beside what is compared: 128 KiB and 1 MiB were slower.
constexpr std::uint64_t kBlock = 256UL << 10U;
/// Bytes in front of a path that are looked at: "-I".
constexpr std::uint64_t kBefore = 2;

bool is_path_character(char c) {
    constexpr std::string_view kEnds = "\"'`<>|;:,*?()[]{}=$&!\\";
    return c > ' ' && c <= '~' && kEnds.find(c) == std::string_view::npos;
}

/// Bytes of the character that `text` begins with, when a path goes on with it; else 0.
std::size_t path_character_length(std::string_view text) {
    if (static_cast<unsigned char>(text[0]) < 0x80) {
        return is_path_character(text[0]) ? 1 : 0;
    }
    if (text.starts_with('\xC2') && text.size() > 1 && static_cast<unsigned char>(text[1]) < 0xA0) {
        return 0; // a control character
    }
    for (std::size_t length = 2; length <= std::min<std::size_t>(4, text.size()); ++length) {
        if (is_valid_utf8(text.substr(0, length))) {
            return length;
        }
    }
    return 0; // code or data behind a text without an end
}

/// Bytes from a path's first on that decide whether it is wanted.
std::size_t reach_of(const PathSearch& search) {
    std::size_t reach = kMaxPathText;
    for (const std::string& beginning : search.beginnings) {
        reach = std::max(reach, beginning.size() + 1);
    }
    return reach;
}

/// The bytes in front end in something that a path goes on from.
bool is_inside_path(std::string_view before) {
    if (before.ends_with("-I") || before.ends_with("-L")) {
        return false;
    }
    if (before.empty()) {
        return false;
    }
    const char last = before.back();
    return (last >= '0' && last <= '9') || (last >= 'a' && last <= 'z') ||
           (last >= 'A' && last <= 'Z') ||
           std::string_view{"/._-+~@%}"}.find(last) != std::string_view::npos;
}

// Both compilers turn these into the vector instructions of the machine.
using Lanes = unsigned char __attribute__((vector_size(16)));
constexpr std::size_t kStride = 64;

Lanes load(const char* from) {
    Lanes out;
    std::memcpy(&out, from, sizeof out);
    return out;
}

Lanes all_lanes(unsigned char value) {
    return Lanes{} + value;
}

/// How all wanted paths begin: one byte, then one of a range.
class Pair {
public:
    Pair(unsigned char first, unsigned char low, unsigned char high)
        : first_{first},
          low_{low},
          width_{static_cast<unsigned char>(high - low)},
          firsts_{all_lanes(first)},
          lows_{all_lanes(low)},
          widths_{all_lanes(width_)} {}

    [[nodiscard]] bool is_at(const char* at) const {
        return static_cast<unsigned char>(at[0]) == first_ &&
               static_cast<unsigned char>(static_cast<unsigned char>(at[1]) - low_) <= width_;
    }

    /// Whether it occurs at any of kStride bytes; one more is read. Of random bytes one in 1900
    /// begins so, while one in 256 is a '/'.
    [[nodiscard]] bool occurs(const char* from) const {
        const Lanes any =
            occurring(from) | occurring(from + 16) | occurring(from + 32) | occurring(from + 48);
        std::uint64_t halves[2] = {};
        std::memcpy(halves, &any, sizeof any);
        return (halves[0] | halves[1]) != 0;
    }

private:
    [[nodiscard]] Lanes occurring(const char* from) const {
        return static_cast<Lanes>(load(from) == firsts_) &
               static_cast<Lanes>(load(from + 1) - lows_ <= widths_);
    }

    unsigned char first_;
    unsigned char low_;
    unsigned char width_;
    Lanes firsts_;
    Lanes lows_;
    Lanes widths_;
};

Pair pair_of(std::span<const std::string> beginnings) {
    unsigned char low = 255;
    unsigned char high = 0;
    for (const std::string& beginning : beginnings) {
        const auto second = static_cast<unsigned char>(beginning.at(1));
        low = std::min(low, second);
        high = std::max(high, second);
    }
    return {static_cast<unsigned char>(beginnings[0].at(0)), low, high};
}

class Scanner {
public:
    explicit Scanner(const PathSearch& search)
        : search_{search}, pair_{pair_of(search.beginnings)}, reach_{reach_of(search)} {}

    /// `text` is the file from `offset` on; paths that begin in [begin, end) of it are taken.
    void scan(std::string_view text, std::uint64_t offset, std::size_t begin, std::size_t end) {
        end = std::min(end, text.empty() ? 0 : text.size() - 1); // a path has two bytes
        const Pair pair = pair_;                                 // in registers
        std::size_t at = begin;
        for (; at + kStride <= end; at += kStride) {
            if (pair.occurs(text.data() + at)) {
                scan_slowly(text, offset, at, at + kStride);
            }
        }
        scan_slowly(text, offset, at, end);
    }

    [[nodiscard]] bool is_full() const { return found_.size() >= search_.limit; }

    [[nodiscard]] std::vector<PathText> found() && { return std::move(found_); }

private:
    void
    scan_slowly(std::string_view text, std::uint64_t offset, std::size_t begin, std::size_t end) {
        for (std::size_t at = begin; at < end; ++at) {
            if (pair_.is_at(text.data() + at) && !is_full()) {
                take(text, offset, at);
            }
        }
    }

    void take(std::string_view text, std::uint64_t offset, std::size_t at) {
        const std::string_view rest = text.substr(at, reach_);
        // A place may have a space in it, which ends what comes behind.
        std::size_t length = beginning_length(rest);
        if (length == 0 || is_inside_path(text.substr(at - std::min<std::size_t>(at, kBefore),
                                                      std::min<std::size_t>(at, kBefore)))) {
            return;
        }
        const std::string_view most = rest.substr(0, std::max(length, kMaxPathText));
        for (std::size_t more = 1; length < most.size() && more > 0; length += more) {
            more = step(most.substr(length));
        }
        found_.push_back({.offset = offset + at, .text = std::string{most.substr(0, length)}});
    }

    /// A Windows path has separators that end other paths.
    [[nodiscard]] std::size_t step(std::string_view text) const {
        return text[0] == search_.beginnings[0][0] ? 1 : path_character_length(text);
    }

    /// Of the longest that the text begins with and that ends there, or with its folder; 0 without.
    [[nodiscard]] std::size_t beginning_length(std::string_view text) const {
        const char separator = search_.beginnings[0][0];
        std::size_t longest = 0;
        for (const std::string& beginning : search_.beginnings) {
            if (text.starts_with(beginning)) {
                const std::string_view behind = text.substr(beginning.size());
                const bool ends = beginning.ends_with(separator) || behind.empty() ||
                                  behind[0] == separator || path_character_length(behind) == 0;
                longest = std::max(longest, ends ? beginning.size() : 0);
            }
        }
        return longest;
    }

    PathSearch search_;
    Pair pair_;
    std::size_t reach_;
    std::vector<PathText> found_{};
};

} // namespace

Result<std::vector<PathText>> find_path_texts(const ByteSource& source, const PathSearch& search) {
    if (!fits(search.range, source.size())) {
        return Error{.code = ErrorCode::corrupt,
                     .message = "the part to be searched lies beyond the end of the file"};
    }
    Scanner scanner{search};
    const std::uint64_t reach = reach_of(search);
    std::vector<std::byte> buffer(std::min(source.size(), kBefore + kBlock + reach));
    const std::uint64_t end = search.range.offset + search.range.size;
    for (std::uint64_t at = search.range.offset; at < end && !scanner.is_full(); at += kBlock) {
        const std::uint64_t from = at - std::min(at, kBefore);
        const std::uint64_t block_end = std::min(end, at + kBlock);
        const std::uint64_t to = std::min(source.size(), block_end + reach);
        const std::span<std::byte> window = std::span{buffer}.first(to - from);
        KB_TRY(source.read(from, window));
        scanner.scan(as_text(window), from, at - from, block_end - from);
    }
    return std::move(scanner).found();
}

} // namespace kb::binfmt
