// SPDX-License-Identifier: Apache-2.0
#include "check/host_paths.hpp"

#include "base/text.hpp"
#include "check/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace kb::check {

namespace {

/// Below these comes the name of a user.
constexpr std::array<std::string_view, 2> kHomes{"/home/", "/Users/"};
constexpr std::string_view kWindowsHome = R"(\Users\)";
/// Programs use these at run time as well: only what names a source, or lies deeper, was built
/// there.
constexpr std::array<std::string_view, 9> kWorkplaces{"/tmp/",
                                                      "/var/tmp/",
                                                      "/__w/",
                                                      "/github/workspace/",
                                                      "/builds/",
                                                      "/workspace/",
                                                      "/var/lib/jenkins/",
                                                      "/mnt/",
                                                      "/root/"};
constexpr std::array<std::string_view, 15> kSources{".c",
                                                    ".cc",
                                                    ".cpp",
                                                    ".cxx",
                                                    ".cu",
                                                    ".cuh",
                                                    ".h",
                                                    ".hpp",
                                                    ".inc",
                                                    ".o",
                                                    ".s",
                                                    ".ii",
                                                    ".ptx",
                                                    ".cubin",
                                                    ".py"};

/// "alice" of "alice/src/x.cpp"; nothing when that is no user's name, or nothing lies below.
std::string_view user_of(std::string_view rest, char separator) {
    const std::size_t end = rest.find(separator);
    if (end == 0 || end == std::string_view::npos || end + 1 == rest.size()) {
        return {};
    }
    const std::string_view user = rest.substr(0, end);
    const bool plain = std::ranges::all_of(user, [](char c) {
        return static_cast<unsigned char>(c) >= 0x80 || c == '.' || c == '_' || c == '-' ||
               (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
    return plain && user != "Shared" && user != "Public" && user != "." && user != ".."
               ? user
               : std::string_view{};
}

bool was_built_there(std::string_view rest) {
    const bool source = std::ranges::any_of(
        kSources, [&](std::string_view suffix) { return rest.ends_with(suffix); });
    const auto separators = std::ranges::count(rest, '/');
    const bool pattern = rest.contains("XXXXXX"); // of mkstemp(), filled in at run time
    return rest.find_first_not_of('/') != std::string_view::npos && !pattern &&
           (source || separators >= 2);
}

bool applies(const Promise&, const binfmt::SharedObject&) {
    return true;
}

Looked look(const CheckInput& input, const Library& library) {
    Looked out;
    std::set<std::string_view> told;
    for (const binfmt::PathText& path : library.object->path_texts) {
        const std::string reason = host_path_reason(path.text, input.machine_places);
        if (reason.empty() || !told.insert(path.text).second) {
            continue;
        }
        out.findings.push_back(
            {.subject = path.text,
             .policy = "no paths of the building machine",
             .found = fmt::format("offset {:#x}", path.offset),
             .allowed = "paths that are the same wherever it is built",
             .message = fmt::format("holds '{}', {}", path.text, reason),
             .next_step = "build in the sandbox, whose paths are the same everywhere, or compile "
                          "with '-ffile-prefix-map=' and without debug information"});
    }
    return out;
}

constexpr std::array kNeeds{binfmt::Fact::path_texts};

} // namespace

std::vector<std::string> host_path_beginnings(binfmt::Format format,
                                              const std::vector<std::string>& places) {
    if (format == binfmt::Format::pe) {
        return {std::string{kWindowsHome}};
    }
    std::vector<std::string> out{kHomes.begin(), kHomes.end()};
    out.insert(out.end(), kWorkplaces.begin(), kWorkplaces.end());
    out.insert(out.end(), places.begin(), places.end());
    std::erase_if(out, [](const std::string& beginning) {
        return beginning.size() < 2 || !beginning.starts_with('/');
    });
    return out;
}

std::string host_path_reason(std::string_view path, const std::vector<std::string>& places) {
    for (const std::string& place : places) {
        if (place.size() > 1 && path.starts_with(place) &&
            (path.size() == place.size() || place.ends_with('/') || path[place.size()] == '/')) {
            return fmt::format("below '{}' of this machine", place);
        }
    }
    if (path.starts_with(kWindowsHome)) {
        const std::string_view user = user_of(path.substr(kWindowsHome.size()), '\\');
        return user.empty() ? std::string{} : fmt::format("in the home of the user '{}'", user);
    }
    for (const std::string_view home : kHomes) {
        if (path.starts_with(home)) {
            const std::string_view user = user_of(path.substr(home.size()), '/');
            return user.empty() ? std::string{} : fmt::format("in the home of the user '{}'", user);
        }
    }
    for (const std::string_view place : kWorkplaces) {
        if (path.starts_with(place) && was_built_there(path.substr(place.size()))) {
            return "a place of the machine that built it";
        }
    }
    return {};
}

Check host_paths_check() {
    return {.id = "host-paths",
            .title = "no path or user name of the machine that built it",
            .needs = kNeeds,
            .applies = applies,
            .library = look};
}

} // namespace kb::check
