// SPDX-License-Identifier: Apache-2.0
#include "registry/path_policy.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace kb::registry {

namespace {

constexpr std::size_t kMaxLevels = 64;
constexpr std::array<std::string_view, 22> kDevices{
    "con",  "prn",  "aux",  "nul",  "com1", "com2", "com3", "com4", "com5", "com6", "com7",
    "com8", "com9", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9"};

/// Git refuses these since they reach its own directory: by case, by the short name of Windows, by
/// characters that one file system drops (zero-width, U+200C to U+FEFF) or an NTFS stream.
bool is_git_directory(std::string_view segment) {
    std::string plain;
    for (std::size_t i = 0; i < segment.size(); ++i) {
        const bool is_dropped = segment.substr(i).starts_with("\xE2\x80") ||
                                segment.substr(i).starts_with("\xE2\x81") ||
                                segment.substr(i).starts_with("\xEF\xBB\xBF");
        if (is_dropped) {
            i += 2;
        } else {
            plain += segment[i];
        }
    }
    const std::string lower = to_lower(plain.substr(0, plain.find(':')));
    return lower == ".git" || lower == "git~1";
}

/// Characters that nobody sees: zero-width ones and those that turn the direction of writing
/// (U+200B to U+200F, U+202A to U+202E, U+2060 to U+206F, U+FEFF), so that a name looks like
/// another.
bool has_invisible(std::string_view segment) {
    for (std::size_t i = 0; i + 2 < segment.size(); ++i) {
        const std::string_view head = segment.substr(i, 2);
        const auto last = static_cast<unsigned char>(segment[i + 2]);
        const bool is_mark = head == "\xE2\x80" && ((last >= 0x8B && last <= 0x8F) || // U+200B
                                                    (last >= 0xAA && last <= 0xAE));  // U+202A
        const bool is_joiner = head == "\xE2\x81" && last >= 0xA0 && last <= 0xAF;    // U+2060
        if (is_mark || is_joiner || (head == "\xEF\xBB" && last == 0xBF)) {
            return true;
        }
    }
    return false;
}

/// "e" and U+0301 instead of one letter: systems disagree on whether the two are one name.
bool has_combining_mark(std::string_view segment) {
    for (std::size_t i = 0; i + 1 < segment.size(); ++i) {
        const auto first = static_cast<unsigned char>(segment[i]);
        const auto second = static_cast<unsigned char>(segment[i + 1]);
        if (first == 0xCC || (first == 0xCD && second <= 0xAF)) { // U+0300 to U+036F
            return true;
        }
    }
    return false;
}

std::optional<std::string> segment_objection(std::string_view segment) {
    if (is_git_directory(segment)) {
        return "'.git' is taken by git";
    }
    if (to_lower(segment) == ".cache") {
        return "'.cache' is where clients keep their own files";
    }
    if (has_invisible(segment)) {
        return "a part holds a character that nobody sees";
    }
    if (has_combining_mark(segment)) {
        return "a part holds a combining mark: write the letter as one character";
    }
    if (segment.ends_with('.') || segment.ends_with(' ')) {
        return "a part ends with '.' or a space, which Windows drops";
    }
    if (segment.find_first_of("<>:\"|?*") != std::string_view::npos) {
        return "a part holds one of <>:\"|?*, which Windows cannot hold";
    }
    const std::string stem = to_lower(segment.substr(0, segment.find('.')));
    if (std::ranges::find(kDevices, stem) != kDevices.end()) {
        return fmt::format("'{}' is a device on Windows", stem);
    }
    return std::nullopt;
}

} // namespace

std::optional<std::string> path_objection(const RelPath& path) {
    const std::vector<std::string_view> segments = split(path.text(), '/');
    if (segments.size() > kMaxLevels) {
        return fmt::format("it has over {} levels", kMaxLevels);
    }
    for (const std::string_view segment : segments) {
        if (auto objection = segment_objection(segment)) {
            return objection;
        }
    }
    return std::nullopt;
}

std::optional<std::pair<std::string, std::string>>
case_twins(const std::vector<std::string>& names) {
    std::map<std::string, std::string> seen;
    for (const std::string& name : names) {
        const auto [at, is_new] = seen.emplace(to_lower(name), name);
        if (!is_new) {
            return std::pair{at->second, name};
        }
    }
    return std::nullopt;
}

} // namespace kb::registry
