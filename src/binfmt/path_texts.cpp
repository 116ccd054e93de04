// SPDX-License-Identifier: Apache-2.0
#include "binfmt/path_texts.hpp"

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
        : search_{search}, pair_{pair_of(search.beginnings)} {}

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
        const std::string_view rest = text.substr(at, kMaxPathText);
        const bool begins =
            std::ranges::any_of(search_.beginnings, [&](const std::string& beginning) {
                return rest.starts_with(beginning);
            });
        if (!begins || is_inside_path(text.substr(at - std::min<std::size_t>(at, kBefore),
                                                  std::min<std::size_t>(at, kBefore)))) {
            return;
        }
        std::size_t length = 1; // a Windows path begins with a character that ends others
        while (length < rest.size() &&
               (is_path_character(rest[length]) || rest[length] == search_.beginnings[0][0])) {
            ++length;
        }
        found_.push_back({.offset = offset + at, .text = std::string{rest.substr(0, length)}});
    }

    PathSearch search_;
    Pair pair_;
    std::vector<PathText> found_{};
};

} // namespace

Result<std::vector<PathText>> find_path_texts(const ByteSource& source, const PathSearch& search) {
    if (!fits(search.range, source.size())) {
        return Error{.code = ErrorCode::corrupt,
                     .message = "the part to be searched lies beyond the end of the file"};
    }
    Scanner scanner{search};
    std::vector<std::byte> buffer(
        std::min(source.size(), kBefore + kBlock + std::uint64_t{kMaxPathText}));
    const std::uint64_t end = search.range.offset + search.range.size;
    for (std::uint64_t at = search.range.offset; at < end && !scanner.is_full(); at += kBlock) {
        const std::uint64_t from = at - std::min(at, kBefore);
        const std::uint64_t block_end = std::min(end, at + kBlock);
        const std::uint64_t to = std::min(source.size(), block_end + kMaxPathText);
        const std::span<std::byte> window = std::span{buffer}.first(to - from);
        KB_TRY(source.read(from, window));
        scanner.scan(as_text(window), from, at - from, block_end - from);
    }
    return std::move(scanner).found();
}

} // namespace kb::binfmt
