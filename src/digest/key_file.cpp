// SPDX-License-Identifier: Apache-2.0
#include "digest/key_file.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

namespace kb::digest {

void KeyFile::set(std::string key, std::string_view value) {
    KB_ASSERT(!key.empty() && key.find_first_of(" \n\t") == std::string::npos, "a key is one word");
    const bool added = lines_.emplace(std::move(key), escape_control(value)).second;
    KB_ASSERT(added, "a key of a build key is set once");
}

std::string KeyFile::to_text() const {
    std::string out;
    for (const auto& [key, value] : lines_) {
        out += fmt::format("{} {}\n", key, value);
    }
    return out;
}

Digest KeyFile::digest() const {
    return sha256(to_text());
}

Result<KeyFile> KeyFile::parse(std::string_view text) {
    KeyFile out;
    for (const std::string_view line : split(text, '\n')) {
        if (line.empty()) {
            continue;
        }
        const std::size_t space = line.find(' ');
        if (space == 0 || space == std::string_view::npos ||
            !out.lines_.emplace(line.substr(0, space), line.substr(space + 1)).second) {
            return Error{.code = ErrorCode::corrupt,
                         .message =
                             fmt::format("'{}' is not a line of a key file", escape_control(line))};
        }
    }
    return out;
}

std::string difference(const KeyFile& before, const KeyFile& after) {
    std::string out;
    for (const auto& [key, value] : before.lines()) {
        const auto found = after.lines().find(key);
        if (found == after.lines().end() || found->second != value) {
            out += fmt::format("- {} {}\n", key, value);
        }
        if (found != after.lines().end() && found->second != value) {
            out += fmt::format("+ {} {}\n", key, found->second);
        }
    }
    for (const auto& [key, value] : after.lines()) {
        if (!before.lines().contains(key)) {
            out += fmt::format("+ {} {}\n", key, value);
        }
    }
    return out;
}

} // namespace kb::digest
