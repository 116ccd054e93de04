// SPDX-License-Identifier: Apache-2.0
#include "generate/host_paths.hpp"

#include "backend/mounts.hpp"

#include <algorithm>
#include <array>

namespace kb::generate {

namespace {

constexpr std::array kPlaces{
    backend::kSourceMount, backend::kWorkMount, backend::kHostMount, backend::kToolchainMount};
constexpr std::string_view kPrograms = "/usr/bin";
constexpr std::array<std::string_view, 6> kJoinedFlags{
    "-I", "-L", "-B", "-isystem", "-iquote", "-idirafter"};

/// True when `text` begins with this directory, not only with its letters.
bool is_below(std::string_view text, std::string_view directory) {
    if (!text.starts_with(directory)) {
        return false;
    }
    text.remove_prefix(directory.size());
    return text.empty() || text.front() == '/' || text.front() == ',' || text.front() == ':';
}

bool begins_with_place(std::string_view text) {
    for (const std::string_view place : kPlaces) {
        if (is_below(text, place)) {
            return true;
        }
    }
    return false;
}

/// Whether a path may begin after these characters of a word.
bool ends_before_path(std::string_view before) {
    if (before.empty() || before.back() == '=' || before.back() == ',' || before.back() == ':') {
        return true;
    }
    for (const std::string_view flag : kJoinedFlags) {
        if (before.ends_with(flag) &&
            (before.size() == flag.size() || before[before.size() - flag.size() - 1] == ',')) {
            return true;
        }
    }
    return false;
}

} // namespace

std::string host_path(std::string_view path, std::string_view view) {
    std::string out{view};
    if (is_below(path, kPrograms)) {
        path.remove_prefix(std::string_view{"/usr"}.size());
    } else if (!begins_with_place(path)) {
        return std::string{path};
    }
    return out.append(path);
}

std::string host_word(std::string_view word, std::string_view view) {
    if (word.starts_with("-D")) {
        return std::string{word};
    }
    std::string out;
    std::size_t done = 0;
    for (std::size_t at = word.find('/'); at != std::string_view::npos;
         at = word.find('/', at + 1)) {
        const std::string_view rest = word.substr(at);
        if (!begins_with_place(rest) || !ends_before_path(word.substr(0, at))) {
            continue;
        }
        const std::size_t end = std::min(rest.find_first_of(",:"), rest.size());
        out.append(word.substr(done, at - done)).append(host_path(rest.substr(0, end), view));
        done = at + end;
        at = done - 1;
    }
    return out.append(word.substr(done));
}

Words host_command(const Words& command, std::string_view view) {
    Words out;
    for (const std::string_view word : command) {
        out.add(host_word(word, view));
    }
    return out;
}

} // namespace kb::generate
