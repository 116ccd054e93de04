// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "toolchain/providers/apt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace kb::toolchain {
namespace {

using backend::Requirement;

/// A version of a package in the archive, as "apt-cache show" prints it.
struct Candidate {
    std::string package{};
    std::string version{};
    std::string architecture{}; ///< "amd64" or "all"
    std::uint64_t size = 0;
    std::optional<digest::Digest> sha256{};
};

/// The name that apt-get gives a downloaded file: only the colon of an epoch is escaped.
std::string file_name(const Candidate& of) {
    return fmt::format(
        "{}_{}_{}.deb", of.package, replace_all(of.version, ":", "%3a"), of.architecture);
}

std::string refusal(const Requirement& requirement) {
    // A member of a set ("deb/libc6@2.36-9#gcc-12") is fetched, a set is resolved.
    if (!requirement.slice.empty() || find_deb_set(requirement) != nullptr) {
        return {};
    }
    return "no set of packages has this name and version";
}

/// All of a set at once: apt-get needs a second to read its lists, whatever it fetches.
Result<void> download(std::span<const plan::LockEntry> entries,
                      const sys::Path& directory,
                      const Machine& machine,
                      const FetchOptions& /*options*/) {
    std::map<std::string, std::vector<std::string>> by_set;
    for (const plan::LockEntry& entry : entries) {
        KB_TRY(const Requirement requirement, Requirement::parse(entry.id));
        by_set[requirement.slice].push_back(
            fmt::format("{}:amd64={}", requirement.name, requirement.version));
    }
    for (const auto& [name, packages] : by_set) {
        KB_TRY(const Apt apt, Apt::open(find_deb_set(name), machine));
        std::vector<std::string> words{"-q", "-o", "Acquire::Retries=3", "download", "--"};
        words.insert(words.end(), packages.begin(), packages.end());
        KB_TRY(const sys::ProcessResult result, apt.run("apt-get", words, directory));
        if (!result.status.ok()) {
            return apt_failure(result);
        }
    }
    return {};
}

std::vector<Candidate> parse_show(std::string_view text) {
    std::vector<Candidate> out(1);
    for (const std::string_view line : split(text, '\n')) {
        const std::size_t colon = line.find(": ");
        if (line.empty()) {
            out.emplace_back();
        } else if (colon != std::string_view::npos) {
            const std::string_view key = line.substr(0, colon);
            const std::string_view value = trim(line.substr(colon + 2));
            if (key == "Package") {
                out.back().package = value;
            } else if (key == "Version") {
                out.back().version = value;
            } else if (key == "Architecture") {
                out.back().architecture = value;
            } else if (key == "Size") {
                out.back().size = parse_unsigned(value).value_or(0);
            } else if (key == "SHA256") {
                if (const auto digest = digest::Digest::from_hex(value)) {
                    out.back().sha256 = *digest;
                }
            }
        }
    }
    std::erase_if(out, [](const Candidate& c) { return c.version.empty() || !c.sha256; });
    return out;
}

/// Versions of stable suites first: those of security suites vanish when the next one appears.
///  " libc6 | 2.36-9 | http://host/debian bookworm/main amd64 Packages"
std::map<std::string, std::string> lasting_versions(std::string_view madison) {
    std::map<std::string, std::string> lasting;
    std::map<std::string, std::string> others;
    for (const std::string_view line : split(madison, '\n')) {
        const auto cells = split(line, '|');
        if (cells.size() != 3 || !cells[2].ends_with("Packages")) {
            continue;
        }
        const auto words = split(trim(cells[2]), ' ');
        const bool security =
            words.size() > 1 && words[1].find("-security/") != std::string_view::npos;
        // The first line of a package is its newest version.
        (security ? others : lasting).emplace(trim(cells[0]), trim(cells[1]));
    }
    lasting.merge(others);
    return lasting;
}

/// Two calls for the whole set: each reads all lists of the archive, which takes a second.
Result<std::vector<Candidate>> find_candidates(const DebSet& set, const Machine& machine) {
    KB_TRY(const Apt apt, Apt::open(&set, machine));
    std::vector<std::string> words{"madison"};
    words.insert(words.end(), set.packages.begin(), set.packages.end());
    KB_TRY(const sys::ProcessResult madison, apt.run("apt-cache", words, "/"));
    const auto versions = lasting_versions(madison.out);
    words = {"show"};
    for (const std::string_view package : set.packages) {
        const auto version = versions.find(std::string{package});
        if (version == versions.end()) {
            return Error{.code = ErrorCode::not_found,
                         .message = fmt::format("the configured archive has no package '{}': run "
                                                "'apt-get update', or use a machine with Debian 12",
                                                package)};
        }
        words.push_back(fmt::format("{}={}", package, version->second));
    }
    KB_TRY(const sys::ProcessResult shown, apt.run("apt-cache", words, "/"));
    std::vector<Candidate> found = parse_show(shown.out);
    std::erase_if(found, [&](const Candidate& c) {
        const auto version = versions.find(c.package);
        return version == versions.end() || version->second != c.version;
    });
    return found;
}

Result<std::vector<plan::LockEntry>> resolve(const Requirement& requirement,
                                             const backend::Platform& /*platform*/,
                                             const Machine& machine,
                                             const FetchOptions& options) {
    if (options.network == Network::offline) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format("'{}' cannot be pinned offline", requirement.id())};
    }
    const DebSet* set = find_deb_set(requirement);
    KB_ASSERT(set != nullptr, "refusal() was asked first");
    const std::string name = set->id();
    KB_TRY(const auto candidates, find_candidates(*set, machine));
    std::vector<plan::LockEntry> out;
    for (const std::string_view package : set->packages) {
        const auto found = std::ranges::find(candidates, package, &Candidate::package);
        if (found == candidates.end()) {
            return Error{.code = ErrorCode::not_found,
                         .message = fmt::format("apt-cache tells no sha256 of '{}'", package)};
        }
        out.push_back({.id = fmt::format("deb/{}@{}#{}", package, found->version, name),
                       .file = file_name(*found),
                       .platform = "x86_64-linux",
                       .size = found->size,
                       .sha256 = *found->sha256,
                       .slice = plan::LockSlice{.name = name}});
    }
    return out;
}

/// One layout whatever the package thinks of a merged /usr. Documentation stays outside: a root is
/// not read by people.
store::UnpackRules rules(const Requirement& /*requirement*/) {
    return {.keep = {{"usr/share/doc/", std::nullopt},
                     {"usr/share/man/", std::nullopt},
                     {"usr/share/info/", std::nullopt},
                     {"usr/share/locale/", std::nullopt},
                     {"usr/share/lintian/", std::nullopt},
                     {"usr/", "usr/"},
                     {"bin/", "usr/bin/"},
                     {"sbin/", "usr/sbin/"},
                     {"lib/", "usr/lib/"},
                     {"lib64/", "usr/lib64/"}},
            .absolute_links = store::AbsoluteLinks::keep};
}

} // namespace

Provider deb_provider() {
    return {.name = "deb",
            .source = "apt-get",
            .refusal = refusal,
            .resolve = resolve,
            .download = download,
            .archive = [](std::string_view /*file*/) { return store::ArchiveKind::deb; },
            .rules = rules};
}

} // namespace kb::toolchain
