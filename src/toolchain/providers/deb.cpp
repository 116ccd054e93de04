// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "toolchain/provider.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace kb::toolchain {
namespace {

using backend::Requirement;

/// Packages that belong together under one name. Unpacked, never installed: a package is here
/// because a program needs its files, not because a dependency field says so.
struct DebSet {
    std::string_view name{};
    std::string_view version{};
    std::span<const std::string_view> packages{};
};

constexpr std::array kGcc12{
    std::string_view{"bash"},
    std::string_view{"binutils"},
    std::string_view{"binutils-common"},
    std::string_view{"binutils-x86-64-linux-gnu"},
    std::string_view{"ccache"},
    std::string_view{"coreutils"},
    std::string_view{"cpp-12"},
    std::string_view{"dash"},
    std::string_view{"g++-12"},
    std::string_view{"gcc-12"},
    std::string_view{"libacl1"},
    std::string_view{"libatomic1"},
    std::string_view{"libattr1"},
    std::string_view{"libbinutils"},
    std::string_view{"libc6"},
    std::string_view{"libc6-dev"},
    std::string_view{"libcc1-0"},
    std::string_view{"libcrypt-dev"},
    std::string_view{"libcrypt1"},
    std::string_view{"libctf-nobfd0"},
    std::string_view{"libctf0"},
    std::string_view{"libgcc-12-dev"},
    std::string_view{"libgcc-s1"},
    std::string_view{"libgmp10"},
    std::string_view{"libgomp1"},
    std::string_view{"libhiredis0.14"},
    std::string_view{"libisl23"},
    std::string_view{"libjansson4"},
    std::string_view{"libmpc3"},
    std::string_view{"libmpfr6"},
    std::string_view{"libpcre2-8-0"},
    std::string_view{"libquadmath0"},
    std::string_view{"libselinux1"},
    std::string_view{"libstdc++-12-dev"},
    std::string_view{"libstdc++6"},
    std::string_view{"libtinfo6"},
    std::string_view{"libzstd1"},
    std::string_view{"linux-libc-dev"},
    std::string_view{"ninja-build"},
    std::string_view{"sed"},
    std::string_view{"zlib1g"},
};
constexpr std::array kPython311{std::string_view{"libpython3.11-dev"}};

constexpr std::array<DebSet, 2> kSets{DebSet{"gcc", "12", kGcc12},
                                      DebSet{"python-headers", "3.11", kPython311}};

const DebSet* find_set(const Requirement& requirement) {
    const auto* found = std::ranges::find_if(kSets, [&](const DebSet& set) {
        return set.name == requirement.name && set.version == requirement.version;
    });
    return found == kSets.end() ? nullptr : found;
}

/// The name that apt-get gives a downloaded file: only the colon of an epoch is escaped.
std::string file_name(std::string_view package, std::string_view version) {
    return fmt::format("{}_{}_amd64.deb", package, replace_all(version, ":", "%3a"));
}

std::string refusal(const Requirement& requirement) {
    // A member of a set ("deb/libc6@2.36-9#gcc-12") is fetched, a set is resolved.
    if (!requirement.slice.empty() || find_set(requirement) != nullptr) {
        return {};
    }
    return "no set of packages has this name and version";
}

Error apt_failure(const sys::ProcessResult& result) {
    std::string first;
    for (const std::string_view line : split(result.err, '\n')) {
        if (line.starts_with("E: ")) {
            first = trim(line.substr(3));
            break;
        }
    }
    // E: Version '1' for 'libc6' was not found / E: Unable to locate package libc6 / E: Can't find
    // a source to download version ...
    const bool gone = first.find("was not found") != std::string::npos ||
                      first.find("Unable to locate") != std::string::npos ||
                      first.find("Can't find a source") != std::string::npos;
    if (gone) {
        return {.code = ErrorCode::not_found,
                .message = fmt::format(
                    "a pinned package is not served by the configured archive ({}): run 'apt-get "
                    "update' and try again, pin what is served now with 'kernel-builder lock "
                    "--update', or give a directory of files with --from",
                    escape_control(first))};
    }
    return {.code = ErrorCode::transient,
            .message = fmt::format("apt-get could not fetch packages ({}): {}",
                                   result.status.to_text(),
                                   escape_control(first.empty() ? trim(result.err) : first))};
}

Error no_apt(Error error) {
    if (error.code == ErrorCode::not_found) {
        error.message = "no program 'apt-get' in PATH, which fetches debs: give a directory of "
                        "files with --from ('fetch --export' on another machine makes one)";
    }
    return error;
}

/// All at once: apt-get needs a second to read its lists, whatever it fetches.
Result<void> download(std::span<const plan::LockEntry> entries,
                      const sys::Path& directory,
                      const Machine& machine) {
    std::vector<std::string> argv{"apt-get",
                                  "-q",
                                  "-o",
                                  "APT::Sandbox::User=root", // else it complains about our folder
                                  "-o",
                                  "Acquire::Retries=3",
                                  "download"};
    for (const plan::LockEntry& entry : entries) {
        KB_TRY(const Requirement requirement, Requirement::parse(entry.id));
        argv.push_back(fmt::format("{}:amd64={}", requirement.name, requirement.version));
    }
    const auto result = run_tool(machine, std::move(argv), directory);
    if (!result) {
        return no_apt(result.error());
    }
    return result->status.ok() ? Result<void>{} : apt_failure(*result);
}

/// A version of a package in the archive, as "apt-cache show" prints it.
struct Candidate {
    std::string package{};
    std::string version{};
    std::uint64_t size = 0;
    std::optional<digest::Digest> sha256{};
};

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
    std::vector<std::string> argv{"apt-cache", "madison"};
    argv.insert(argv.end(), set.packages.begin(), set.packages.end());
    const auto madison = run_tool(machine, argv, "/");
    if (!madison) {
        return no_apt(madison.error());
    }
    const auto versions = lasting_versions(madison->out);
    argv = {"apt-cache", "show"};
    for (const std::string_view package : set.packages) {
        const auto version = versions.find(std::string{package});
        if (version == versions.end()) {
            return Error{.code = ErrorCode::not_found,
                         .message = fmt::format("the configured archive has no package '{}': run "
                                                "'apt-get update', or use a machine with Debian 12",
                                                package)};
        }
        argv.push_back(fmt::format("{}={}", package, version->second));
    }
    KB_TRY(const sys::ProcessResult shown, run_tool(machine, argv, "/"));
    std::vector<Candidate> found = parse_show(shown.out);
    std::erase_if(found, [&](const Candidate& c) {
        const auto version = versions.find(c.package);
        return version == versions.end() || version->second != c.version;
    });
    return found;
}

Result<std::vector<plan::LockEntry>> resolve(const Requirement& requirement,
                                             const backend::Platform& platform,
                                             const Machine& machine,
                                             const FetchOptions& options) {
    if (platform != backend::Platform{}) {
        return Error{.code = ErrorCode::unsupported,
                     .message =
                         fmt::format("'{}' is pinned for x86_64-linux only", requirement.id())};
    }
    if (options.network == Network::offline) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format("'{}' cannot be pinned offline", requirement.id())};
    }
    const DebSet* set = find_set(requirement);
    KB_ASSERT(set != nullptr, "refusal() was asked first");
    const std::string name = fmt::format("{}-{}", set->name, set->version);
    KB_TRY(const auto candidates, find_candidates(*set, machine));
    std::vector<plan::LockEntry> out;
    for (const std::string_view package : set->packages) {
        const auto found = std::ranges::find(candidates, package, &Candidate::package);
        if (found == candidates.end()) {
            return Error{.code = ErrorCode::not_found,
                         .message = fmt::format("apt-cache tells no sha256 of '{}'", package)};
        }
        out.push_back({.id = fmt::format("deb/{}@{}#{}", package, found->version, name),
                       .file = file_name(package, found->version),
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
            .refusal = refusal,
            .resolve = resolve,
            .download = download,
            .archive = store::ArchiveKind::deb,
            .rules = rules};
}

} // namespace kb::toolchain
