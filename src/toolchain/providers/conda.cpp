// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "document/json.hpp"
#include "toolchain/providers/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace kb::toolchain {
namespace {

using backend::Requirement;
using document::Node;

/// Packages that make one CUDA toolkit, as conda-forge and NVIDIA's channel split it since 12.
constexpr std::array<std::string_view, 13> kCudaPackages{"cuda-cccl_linux-64",
                                                         "cuda-crt-dev_linux-64",
                                                         "cuda-crt-tools",
                                                         "cuda-cudart-dev_linux-64",
                                                         "cuda-cudart-static_linux-64",
                                                         "cuda-cudart_linux-64",
                                                         "cuda-driver-dev_linux-64",
                                                         "cuda-nvcc-impl",
                                                         "cuda-nvcc-tools",
                                                         "cuda-nvvm-dev_linux-64",
                                                         "cuda-nvvm-impl",
                                                         "cuda-nvvm-tools",
                                                         "cuda-profiler-api"};

/// Folders of a channel that serve x86_64 Linux.
constexpr std::array<std::string_view, 2> kSubdirs{"linux-64", "noarch"};
constexpr std::uint64_t kMaxIndex = 1UL << 30U;

bool is_toolkit(const Requirement& requirement) {
    return requirement.name == "cuda" && requirement.slice.empty();
}

/// A package of a channel, as repodata.json lists it:
///  "packages.conda": {"cuda-nvcc-tools-12.8.93-he02047a_1.conda": {"name": ..., "version": ...,
///  "build_number": 1, "sha256": "...", "size": 123}}
struct Listed {
    std::string file{};
    std::string subdir{};
    std::string version{};
    std::uint64_t build_number = 0;
    std::uint64_t size = 0;
    digest::Digest sha256{};
};

std::uint64_t number_of(const Node& table, std::string_view key) {
    const Node* node = table.find(key);
    return node != nullptr && node->is_unsigned() ? node->as_unsigned() : 0;
}

std::vector<std::uint64_t> version_order(std::string_view version) {
    std::vector<std::uint64_t> out;
    for (const std::string_view part : split(version, '.')) {
        out.push_back(parse_unsigned(part).value_or(0));
    }
    return out;
}

/// "12.8" and everything below it, for packages whose versions follow the toolkit's.
bool is_of(std::string_view version, std::string_view wanted) {
    return version == wanted || version.starts_with(fmt::format("{}.", wanted));
}

class Channel {
public:
    Channel(const Machine& machine, const FetchOptions& options)
        : machine_{machine}, options_{options} {}

    Result<void> read();
    [[nodiscard]] std::optional<Listed> newest(std::string_view name,
                                               std::string_view version) const;

private:
    Result<void> read_index(std::string_view subdir, const std::string& text);

    const Machine& machine_;
    const FetchOptions& options_;
    std::multimap<std::string, Listed, std::less<>> packages_{};
};

Result<std::string>
channel_place(std::string_view subdir, std::string_view file, const FetchOptions& options) {
    return place_of({.provider = "conda", .name = "channel"},
                    {.file = fmt::format("{}/{}", subdir, file)},
                    options.sources);
}

Result<void> Channel::read() {
    KB_TRY(const TemporaryFolder folder, TemporaryFolder::make(machine_, "conda"));
    for (const std::string_view subdir : kSubdirs) {
        KB_TRY(const std::string place, channel_place(subdir, "repodata.json", options_));
        const sys::Path file = folder.path() / fmt::format("{}.json", subdir);
        const auto got = get_file(place, file, machine_, options_);
        if (!got && got.error().code == ErrorCode::not_found && subdir != kSubdirs.front()) {
            continue;
        }
        if (!got) {
            return got.error();
        }
        KB_TRY(const std::string text, machine_.fs.read_file(file, kMaxIndex));
        if (looks_like_page(std::string_view{text}.substr(0, 100))) {
            return Error{
                .code = ErrorCode::corrupt,
                .message = fmt::format("'{}' is an HTML page, no index of a conda channel", place)};
        }
        KB_TRY(read_index(subdir, text).context(fmt::format("reading '{}'", place)));
    }
    return {};
}

Result<void> Channel::read_index(std::string_view subdir, const std::string& text) {
    KB_TRY(const Node root, document::parse_json(text, {.name = "repodata.json"}));
    for (const std::string_view kind : {"packages.conda", "packages"}) {
        const Node* list = root.is_table() ? root.find(kind) : nullptr;
        if (list == nullptr || !list->is_table()) {
            continue;
        }
        for (const document::Entry& member : list->entries()) {
            const Node& package = member.value;
            if (!package.is_table()) {
                continue;
            }
            const auto sha256 = digest::Digest::from_hex(package.text_or("sha256"));
            const bool plain = member.key.find('/') == std::string::npos;
            if (!sha256 || !plain) {
                continue; // old packages have an md5 only, which proves nothing
            }
            packages_.emplace(package.text_or("name"),
                              Listed{.file = member.key,
                                     .subdir = std::string{subdir},
                                     .version = package.text_or("version"),
                                     .build_number = number_of(package, "build_number"),
                                     .size = number_of(package, "size"),
                                     .sha256 = *sha256});
        }
    }
    return {};
}

std::optional<Listed> Channel::newest(std::string_view name, std::string_view version) const {
    std::optional<Listed> best;
    const auto rank = [](const Listed& listed) {
        return std::tuple{version_order(listed.version),
                          listed.build_number,
                          listed.file.ends_with(".conda"),
                          listed.file};
    };
    const auto range = packages_.equal_range(name);
    for (auto it = range.first; it != range.second; ++it) {
        if (is_of(it->second.version, version) && (!best || rank(*best) < rank(it->second))) {
            best = it->second;
        }
    }
    return best;
}

/// Which folder of the channel serves the file stands in the entry: noarch packages fit any
/// platform.
std::string_view subdir_of(const plan::LockEntry& entry) {
    return entry.platform == "any" ? "noarch" : "linux-64";
}

Result<void> download(std::span<const plan::LockEntry> entries,
                      const sys::Path& directory,
                      const Machine& machine,
                      const FetchOptions& options) {
    for (const plan::LockEntry& entry : entries) {
        KB_TRY(const std::string place, channel_place(subdir_of(entry), entry.file, options));
        KB_TRY(get_file(place, directory / entry.file, machine, options));
    }
    return {};
}

Result<std::vector<plan::LockEntry>> resolve(const Requirement& requirement,
                                             const backend::Platform& platform,
                                             const Machine& machine,
                                             const FetchOptions& options) {
    if (options.network == Network::offline || platform != backend::Platform{}) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format(
                         "'{}' cannot be pinned {}",
                         requirement.id(),
                         options.network == Network::offline ? "offline" : "for this platform")};
    }
    Channel channel{machine, options};
    KB_TRY(channel.read());
    const std::string set = fmt::format("{}-{}", requirement.name, requirement.version);
    std::vector<plan::LockEntry> out;
    std::vector<std::string> missing;
    for (const std::string_view name : kCudaPackages) {
        const auto found = channel.newest(name, requirement.version);
        if (!found) {
            missing.emplace_back(name);
            continue;
        }
        out.push_back({.id = fmt::format("conda/{}@{}#{}", name, found->version, set),
                       .file = found->file,
                       .platform = found->subdir == "noarch" ? "any" : "x86_64-linux",
                       .size = found->size,
                       .sha256 = found->sha256,
                       .slice = plan::LockSlice{.name = set}});
    }
    if (!missing.empty()) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format("the configured conda channel has no version {} of {}",
                                            requirement.version,
                                            quoted_list(missing))};
    }
    return out;
}

std::string refusal(const Requirement& requirement) {
    return is_toolkit(requirement) || requirement.slice.starts_with("cuda-")
               ? ""
               : "only 'cuda' is known of conda channels";
}

/// The layout of a toolkit: what conda keeps below targets/ moves up. Their nvcc.profile speaks of
/// an environment; ours takes its place.
store::UnpackRules rules(const Requirement& /*requirement*/) {
    const std::string target = "targets/x86_64-linux/";
    return {.keep = {{"bin/nvcc.profile", std::nullopt},
                     {"bin/", "bin/"},
                     {"nvvm/", "nvvm/"},
                     {target + "lib/cmake/", std::nullopt},
                     {target + "lib/pkgconfig/", std::nullopt},
                     {target + "bin/", "bin/"},
                     {target + "nvvm/", "nvvm/"},
                     {target + "include/", "include/"},
                     {target + "lib/", "lib/"}},
            .executable = {"nvvm/bin/"}};
}

} // namespace

Provider conda_provider() {
    return {.name = "conda",
            .source = "the conda channel",
            .refusal = refusal,
            .resolve = resolve,
            .download = download,
            .archive =
                [](std::string_view file) {
                    return file.ends_with(".conda") ? store::ArchiveKind::conda
                                                    : store::ArchiveKind::tar;
                },
            .rules = rules};
}

} // namespace kb::toolchain
