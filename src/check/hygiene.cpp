// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "check/checks.hpp"

#include <fmt/format.h>

#include <array>

namespace kb::check {

namespace {

Finding finding(std::string subject, std::string message, std::string next_step) {
    return {.subject = std::move(subject),
            .policy = "loader hygiene",
            .message = std::move(message),
            .next_step = std::move(next_step)};
}

bool is_below(std::string_view path, std::string_view origin) {
    return path == origin || (path.starts_with(origin) && path[origin.size()] == '/');
}

/// Relative to the library itself: everything else is a path of the machine that built it, or one
/// that an attacker may choose (an empty entry is the current directory).
bool is_relocatable(std::string_view path) {
    for (const std::string_view origin :
         {"$ORIGIN", "${ORIGIN}", "@loader_path", "@rpath", "@executable_path"}) {
        if (is_below(path, origin)) {
            return true;
        }
    }
    return false;
}

void check_search_paths(const binfmt::SharedObject& object, std::vector<Finding>& out) {
    for (const binfmt::SearchPath& search : object.search_paths) {
        const std::string_view kind =
            search.kind == binfmt::SearchPathKind::rpath ? "rpath" : "runpath";
        for (const std::string_view path : split(search.text, ':')) {
            if (search.text.empty() || is_relocatable(path)) {
                continue;
            }
            Finding bad =
                finding(std::string{path},
                        path.empty() ? fmt::format("the {} has an empty entry, which is the "
                                                   "current directory",
                                                   kind)
                                     : fmt::format("the {} holds '{}', a path of the machine "
                                                   "that built it",
                                                   kind,
                                                   path),
                        "remove it, or write it relative to '$ORIGIN'");
            bad.found = path;
            bad.allowed = "$ORIGIN";
            out.push_back(std::move(bad));
        }
    }
}

bool applies(const Promise&, const binfmt::SharedObject& object) {
    return object.format != binfmt::Format::pe;
}

Looked look(const CheckInput&, const Library& library) {
    const binfmt::SharedObject& object = *library.object;
    Looked out;
    if (object.exec_stack) {
        out.findings.push_back(finding(
            "exec-stack",
            "asks for an executable stack, which hardened systems refuse",
            "link with '-Wl,-z,noexecstack'; assembler files want a .note.GNU-stack section"));
    }
    if (object.text_relocations) {
        out.findings.push_back(finding("text-relocations",
                                       "has relocations in code, so the loader must write to it",
                                       "compile every object with '-fPIC'"));
    }
    check_search_paths(object, out.findings);
    return out;
}

constexpr std::array kNeeds{binfmt::Fact::flags, binfmt::Fact::needed};

} // namespace

Check hygiene_check() {
    return {.id = "hygiene",
            .title = "no executable stack, no text relocations, no search path of another machine",
            .needs = kNeeds,
            .applies = applies,
            .library = look};
}

} // namespace kb::check
