// SPDX-License-Identifier: Apache-2.0
#include "digest/key_file.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <set>

namespace kb::digest {

namespace {

constexpr std::uint64_t repeat(std::uint8_t byte) {
    return 0x0101010101010101U * byte;
}

/// Whether a byte is below `limit` (at most 0x80) or DEL. Many at a time, since every word of
/// every key passes here; the borrow trick is exact for "is there any".
bool has_control(std::string_view text, std::uint8_t limit) {
    const auto hits = [limit](std::uint64_t word) {
        const std::uint64_t del = word ^ repeat(0x7f);
        return (((word - repeat(limit)) & ~word) | ((del - repeat(1)) & ~del)) & repeat(0x80);
    };
    constexpr std::size_t kBlock = 4 * sizeof(std::uint64_t);
    for (; text.size() >= kBlock; text.remove_prefix(kBlock)) {
        std::array<std::uint64_t, 4> words{};
        std::memcpy(words.data(), text.data(), kBlock);
        if ((hits(words[0]) | hits(words[1]) | hits(words[2]) | hits(words[3])) != 0) {
            return true;
        }
    }
    for (; text.size() >= sizeof(std::uint64_t); text.remove_prefix(sizeof(std::uint64_t))) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data(), sizeof word);
        if (hits(word) != 0) {
            return true;
        }
    }
    std::uint64_t rest = repeat('x');
    std::memcpy(&rest, text.data(), text.size());
    return hits(rest) != 0;
}

bool is_word(std::string_view text) {
    return !text.empty() && !has_control(text, ' ' + 1);
}

bool is_plain(std::string_view text) {
    return !has_control(text, ' ');
}

} // namespace

void KeyFile::reserve(std::size_t bytes, std::size_t lines) {
    text_.reserve(bytes);
    lines_.reserve(lines);
}

void KeyFile::set(std::string_view group, std::string_view key, std::string_view value) {
    KB_ASSERT(is_word(key) && (group.empty() || is_word(group)), "a key is one word");
    Line line{.begin = static_cast<std::uint32_t>(text_.size()),
              .key_size = static_cast<std::uint32_t>(group.size() + key.size())};
    text_.append(group).append(key).append(1, ' ');
    if (is_plain(value)) {
        text_.append(value);
    } else {
        text_.append(escape_control(value));
    }
    line.size = static_cast<std::uint32_t>(text_.size()) - line.begin;
    lines_.push_back(line);
}

std::string_view KeyFile::key_of(const Line& line) const {
    return std::string_view{text_}.substr(line.begin, line.key_size);
}

std::vector<KeyFile::Line> KeyFile::sorted() const {
    std::vector<Line> lines = lines_;
    const auto key = [this](const Line& line) {
        return key_of(line);
    };
    std::ranges::sort(lines, {}, key);
    KB_ASSERT(std::ranges::adjacent_find(lines, {}, key) == lines.end(),
              "a key of a build key is set once");
    return lines;
}

std::map<std::string, std::string> KeyFile::lines() const {
    std::map<std::string, std::string> out;
    for (const Line& line : lines_) {
        const std::string_view whole = std::string_view{text_}.substr(line.begin, line.size);
        out.emplace(key_of(line), whole.substr(line.key_size + 1));
    }
    return out;
}

std::string KeyFile::to_text() const {
    std::string out;
    out.reserve(text_.size() + lines_.size());
    for (const Line& line : sorted()) {
        out.append(text_, line.begin, line.size).append(1, '\n');
    }
    return out;
}

Digest KeyFile::digest() const {
    return sha256(to_text());
}

Result<KeyFile> KeyFile::parse(std::string_view text) {
    KeyFile out;
    std::set<std::string_view> seen;
    for (const std::string_view line : split(text, '\n')) {
        if (line.empty()) {
            continue;
        }
        const std::size_t space = line.find(' ');
        if (space == std::string_view::npos || !is_word(line.substr(0, space)) ||
            !seen.insert(line.substr(0, space)).second) {
            return Error{.code = ErrorCode::corrupt,
                         .message =
                             fmt::format("'{}' is not a line of a key file", escape_control(line))};
        }
        out.set(line.substr(0, space), line.substr(space + 1));
    }
    return out;
}

std::string difference(const KeyFile& before, const KeyFile& after) {
    std::string out;
    const auto old_lines = before.lines();
    const auto new_lines = after.lines();
    for (const auto& [key, value] : old_lines) {
        const auto found = new_lines.find(key);
        if (found == new_lines.end() || found->second != value) {
            out += fmt::format("- {} {}\n", key, value);
        }
        if (found != new_lines.end() && found->second != value) {
            out += fmt::format("+ {} {}\n", key, found->second);
        }
    }
    for (const auto& [key, value] : new_lines) {
        if (!old_lines.contains(key)) {
            out += fmt::format("+ {} {}\n", key, value);
        }
    }
    return out;
}

} // namespace kb::digest
