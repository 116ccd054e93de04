// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "toolchain/providers/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::toolchain {
namespace {

using backend::Requirement;

constexpr std::array<std::string_view, 7> kExtensions{
    ".tar.gz", ".tar.xz", ".tar.zst", ".tar.bz2", ".tgz", ".tar", ".zip"};

std::optional<std::string_view> extension_of(std::string_view file) {
    const auto* found = std::ranges::find_if(
        kExtensions, [&](std::string_view extension) { return file.ends_with(extension); });
    return found == kExtensions.end() ? std::nullopt : std::optional{*found};
}

std::string file_name(const Requirement& requirement, std::string_view extension) {
    return fmt::format("{}-{}{}", requirement.name, requirement.version, extension);
}

store::ArchiveKind kind_of(std::string_view file) {
    return file.ends_with(".zip") ? store::ArchiveKind::zip : store::ArchiveKind::tar;
}

/// The name of a member becomes the name of a file of ours.
std::string refusal(const Requirement& requirement) {
    return requirement.name.find('/') == std::string::npos ? "" : "an archive's name has no '/'";
}

/// A place may call the file as it likes; we call all archives alike, so that a bundle has no two
/// files "v1.0.tar.gz".
Result<std::string>
address_of(const Requirement& requirement, std::string_view file, const FetchOptions& options) {
    return place_of(requirement,
                    {.name = requirement.name, .version = requirement.version, .file = file},
                    options.sources);
}

Result<void> download(std::span<const plan::LockEntry> entries,
                      const sys::Path& directory,
                      const Machine& machine,
                      const FetchOptions& options) {
    for (const plan::LockEntry& entry : entries) {
        KB_TRY(const Requirement requirement, Requirement::parse(entry.id));
        KB_TRY(const std::string place, address_of(requirement, entry.file, options));
        KB_TRY(get_file(place, directory / entry.file, machine, options));
    }
    return {};
}

/// Without a digest only the content says whether it is an archive at all.
Result<void> check_content(const Machine& machine, const sys::Path& path, std::string_view place) {
    KB_TRY(const std::string head, read_head(machine.fs, path, 300));
    constexpr std::array<std::string_view, 5> kMagic{"\x1f\x8b",
                                                     "\xfd"
                                                     "7zXZ",
                                                     "\x28\xb5\x2f\xfd",
                                                     "BZh",
                                                     "PK\x03\x04"};
    const bool packed = std::ranges::any_of(
        kMagic, [&](std::string_view magic) { return head.starts_with(magic); });
    const bool tar = head.size() > 262 && head.substr(257, 5) == "ustar";
    if (packed || tar) {
        return {};
    }
    return Error{.code = ErrorCode::corrupt,
                 .message = fmt::format("'{}' is {}, no archive; nothing was pinned",
                                        place,
                                        looks_like_page(head) ? "an HTML page (a proxy or a log-in "
                                                                "stands before the file)"
                                                              : "a file of another kind")};
}

/// The file of the requirement in `directory` and its name; tried under every extension that the
/// place leaves open.
Result<std::string> find_file(const Requirement& requirement,
                              const sys::Path& directory,
                              const Machine& machine,
                              const FetchOptions& options) {
    for (const std::string_view extension : kExtensions) {
        const std::string file = file_name(requirement, extension);
        if (options.from && sys::exists(machine.fs, *options.from / file)) {
            KB_TRY(machine.fs.copy_file(*options.from / file, directory / file));
            return file;
        }
    }
    if (options.network == Network::offline) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format("'{}' cannot be pinned offline", requirement.id())};
    }
    std::optional<Error> first;
    for (const std::string_view extension : kExtensions) {
        const std::string file = file_name(requirement, extension);
        KB_TRY(const std::string place, address_of(requirement, file, options));
        const auto own = extension_of(place);
        if (own && *own != extension) {
            continue; // the place says what it is
        }
        auto done = get_file(place, directory / file, machine, options);
        if (done) {
            KB_TRY(check_content(machine, directory / file, place));
            return file;
        }
        if (done.error().code != ErrorCode::not_found) {
            return done.error();
        }
        if (!first) {
            first = done.error();
        }
    }
    return *first;
}

Result<std::vector<plan::LockEntry>> resolve(const Requirement& requirement,
                                             const backend::Platform& /*platform*/,
                                             const Machine& machine,
                                             const FetchOptions& options) {
    KB_TRY(const TemporaryFolder folder, TemporaryFolder::make(machine, "lock"));
    KB_TRY(const std::string file, find_file(requirement, folder.path(), machine, options));
    return pin_file(machine, requirement, folder.path() / file);
}

/// The slice is the folder that the archive puts everything in, which the tree goes without.
store::UnpackRules rules(const Requirement& requirement) {
    if (requirement.slice.empty()) {
        return {};
    }
    return {.keep = {{requirement.slice + "/", ""}}};
}

} // namespace

Provider archive_provider() {
    return {.name = "archive",
            .source = "the configured source",
            .refusal = refusal,
            .resolve = resolve,
            .download = download,
            .archive = kind_of,
            .rules = rules};
}

} // namespace kb::toolchain
