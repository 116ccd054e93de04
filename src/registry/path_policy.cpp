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

std::optional<std::string> segment_objection(std::string_view segment) {
    if (is_git_directory(segment)) {
        return "'.git' is taken by git";
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
