// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "store/blob_store.hpp"
#include "sys/environment.hpp"
#include "toolchain/providers/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace kb::toolchain {
namespace {

using backend::Requirement;

/// Wheels that hold one part of a CUDA toolkit in one merged folder.
constexpr std::string_view kCudaPrefix = "nvidia-";
/// The Python package of CUTLASS, which brings the sources of the library.
constexpr std::string_view kCutlass = "nvidia-cutlass";

/// Name, version and tags of a wheel, from its file name.
struct WheelName {
    std::string distribution{};
    std::string version{};
    std::string python{};
    std::string abi{};
    std::vector<std::string> platforms{};
};

/// "torch-2.11.0-cp312-cp312-manylinux_2_28_x86_64.whl"; a build tag may stand after the version.
Result<WheelName> parse_wheel_name(std::string_view file) {
    const auto parts = split(file.substr(0, file.rfind(".whl")), '-');
    if (!file.ends_with(".whl") || parts.size() < 5 || parts.size() > 6) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("'{}' is not the name of a wheel", file)};
    }
    WheelName out{.distribution = std::string{parts[0]},
                  .version = std::string{parts[1]},
                  .python = std::string{parts[parts.size() - 3]},
                  .abi = std::string{parts[parts.size() - 2]}};
    for (const std::string_view platform : split(parts.back(), '.')) {
        out.platforms.emplace_back(platform);
    }
    return out;
}

/// The Python whose wheels are taken. Headers are the same for every Python; one is chosen so that
/// every machine pins the same file.
constexpr std::string_view kPython = "3.12";
constexpr std::string_view kPythonAbi = "cp312";

/// Before the second and the third try. pip retries a broken connection itself, not an index that
/// answers wrongly for a moment.
constexpr std::array kRetryPauses{std::chrono::seconds{2}, std::chrono::seconds{10}};

std::vector<std::string> platform_tags(const backend::Platform& platform) {
    const std::string cpu{backend::to_text(platform.cpu)};
    std::vector<std::string> tags;
    for (const std::string_view policy : {"manylinux_2_28_",
                                          "manylinux_2_17_",
                                          "manylinux2014_",
                                          "manylinux_2_12_",
                                          "manylinux2010_",
                                          "manylinux_2_5_",
                                          "manylinux1_"}) {
        tags.push_back(std::string{policy} + cpu);
    }
    return tags;
}

Result<std::vector<std::string>> pip_program(const Machine& machine) {
    const std::string path = sys::lookup(machine.environment, "PATH").value_or("/usr/bin:/bin");
    for (const std::string_view name : {"pip3", "pip"}) {
        if (const auto found = sys::find_program(name, path)) {
            return std::vector<std::string>{found->string()};
        }
    }
    if (const auto python = sys::find_program("python3", path)) {
        return std::vector<std::string>{python->string(), "-m", "pip"};
    }
    return Error{.code = ErrorCode::not_found,
                 .message = "no program 'pip3', 'pip' or 'python3' in PATH, one of which fetches "
                            "wheels: install pip, or give a directory of files with --from"};
}

/// What pip warned of while it tried the index again ("... connection broken by 'SSLError(...)'"):
/// its closing error then speaks of missing versions. Nothing when it did not.
std::optional<std::string> broken_connection(std::string_view text) {
    constexpr std::string_view kMark = "connection broken by ";
    const std::size_t at = text.rfind(kMark);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view rest = text.substr(at + kMark.size());
    return std::string{trim(rest.substr(0, rest.find('\n')))};
}

Error pip_failure(std::string_view what, const sys::ProcessResult& result) {
    std::string last;
    for (const std::string_view line : split(result.err, '\n')) {
        if (line.starts_with("ERROR:")) {
            last = trim(line.substr(6));
            break; // the first one names the cause
        }
    }
    // Without any version pip has seen no list at all: for a name that a lock pinned once, that is
    // an index out of reach rather than a file that is gone.
    const bool no_list = last.find("(from versions: none)") != std::string::npos;
    const bool unknown = !no_list && (last.find("No matching distribution") != std::string::npos ||
                                      last.find("Could not find a version") != std::string::npos);
    if (const auto broken = no_list ? broken_connection(result.err) : std::nullopt) {
        last = "the index cannot be read: " + *broken;
    }
    return {.code = unknown ? ErrorCode::not_found : ErrorCode::transient,
            .message = fmt::format(
                "pip could not fetch '{}' ({}): {}; check the network and pip's index "
                "configuration, or give a directory of files with --from",
                what,
                result.status.to_text(),
                last.empty() ? escape_control(trim(result.err)) : escape_control(last))};
}

Result<void> pip_download(const Machine& machine,
                          const std::string& name,
                          const std::string& version,
                          const std::vector<std::string>& tags,
                          const sys::Path& directory,
                          const FetchOptions& options) {
    KB_TRY(std::vector<std::string> argv, pip_program(machine));
    argv.insert(argv.end(),
                {"download",
                 "-q",
                 "--no-input",
                 "--disable-pip-version-check",
                 "--no-deps",
                 "--only-binary=:all:",
                 "--implementation",
                 "cp",
                 "--python-version",
                 std::string{kPython},
                 "--abi",
                 std::string{kPythonAbi},
                 "--abi",
                 "abi3",
                 "--abi",
                 "none"});
    for (const std::string& tag : tags) {
        argv.insert(argv.end(), {"--platform", tag});
    }
    for (const std::string& index : options.extra_indexes) {
        argv.insert(argv.end(), {"--extra-index-url", index});
    }
    const std::string wanted = name + "==" + version;
    argv.insert(argv.end(), {"-d", directory.string(), wanted});
    for (std::size_t attempt = 0;; ++attempt) {
        KB_TRY(const sys::ProcessResult result, run_tool(machine, argv, directory));
        if (result.status.ok()) {
            return {};
        }
        Error error = pip_failure(wanted, result);
        if (error.code != ErrorCode::transient || attempt == kRetryPauses.size()) {
            return error;
        }
        if (!machine.clock.sleep(kRetryPauses.at(attempt))) {
            return Error{.code = ErrorCode::cancelled, .message = "interrupted"};
        }
    }
}

Result<void> download(std::span<const plan::LockEntry> entries,
                      const sys::Path& directory,
                      const Machine& machine,
                      const FetchOptions& options) {
    for (const plan::LockEntry& entry : entries) {
        KB_TRY(const WheelName wheel, parse_wheel_name(entry.file));
        KB_TRY(const Requirement requirement, Requirement::parse(entry.id));
        KB_TRY(pip_download(
            machine, requirement.name, requirement.version, wheel.platforms, directory, options));
        if (!sys::exists(machine.fs, directory / entry.file)) {
            return Error{.code = ErrorCode::not_found,
                         .message = fmt::format(
                             "pip fetched another file than '{}' for '{}'; run 'kernel-builder "
                             "lock --update' to pin what is served now",
                             entry.file,
                             entry.id)};
        }
    }
    return {};
}

/// The one wheel for the requirement in a directory, if it is there.
std::optional<std::string> find_wheel(const Machine& machine,
                                      const sys::Path& directory,
                                      const Requirement& requirement,
                                      const std::vector<std::string>& tags) {
    const auto files = machine.fs.list(directory);
    if (!files) {
        return std::nullopt;
    }
    const std::string name = replace_all(requirement.name, "-", "_");
    std::optional<std::string> found;
    for (const sys::DirEntry& file : *files) {
        const auto wheel = parse_wheel_name(file.name);
        if (!wheel || wheel->distribution != name || wheel->version != requirement.version ||
            (wheel->abi != kPythonAbi && wheel->abi != "none" && wheel->abi != "abi3")) {
            continue;
        }
        const bool fits = std::ranges::any_of(wheel->platforms, [&](const std::string& tag) {
            return tag == "any" || std::ranges::find(tags, tag) != tags.end();
        });
        if (fits) {
            found = file.name; // the last by name: the highest build tag
        }
    }
    return found;
}

Result<std::vector<plan::LockEntry>> resolve(const Requirement& requirement,
                                             const backend::Platform& platform,
                                             const Machine& machine,
                                             const FetchOptions& options) {
    const std::vector<std::string> tags = platform_tags(platform);
    sys::Path directory = options.from.value_or("");
    std::optional<std::string> file;
    if (options.from) {
        file = find_wheel(machine, directory, requirement, tags);
    }
    sys::Path temporary;
    if (!file && options.network == Network::allowed) {
        const std::string base = sys::lookup(machine.environment, "TMPDIR").value_or("/tmp");
        temporary = sys::Path{base} / ("kernel-builder-lock-" + store::unique_name());
        directory = options.export_to.value_or(temporary);
        KB_TRY(machine.fs.make_directories(directory));
        const auto fetched =
            pip_download(machine, requirement.name, requirement.version, tags, directory, options);
        if (!fetched) {
            static_cast<void>(machine.fs.remove_tree(temporary).has_value());
            return fetched.error();
        }
        file = find_wheel(machine, directory, requirement, tags);
    }
    if (!file) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format(
                         "no wheel for '{}' on {}", requirement.id(), backend::to_text(platform))};
    }
    auto pinned =
        pin_file(machine,
                 requirement,
                 directory / *file,
                 file->ends_with("-any.whl") ? std::string{"any"} : backend::to_text(platform));
    if (!temporary.empty()) {
        static_cast<void>(machine.fs.remove_tree(temporary).has_value());
    }
    return pinned;
}

/// Folder of a wheel "nvidia-cuda-nvcc-cu12": up to CUDA 12 each component has its own.
std::string component_folder(std::string_view name) {
    name.remove_prefix(kCudaPrefix.size());
    return fmt::format("nvidia/{}/", replace_all(name.substr(0, name.rfind('-')), "-", "_"));
}

store::UnpackRules cuda_rules(const Requirement& requirement) {
    if (requirement.name.ends_with("-cu11") || requirement.name.ends_with("-cu12")) {
        // The compiler is a deb: of "nvidia-cuda-nvcc" only headers and libnvvm are used.
        const std::string root = component_folder(requirement.name);
        return {.keep = {{root + "include/__init__.py", std::nullopt},
                         {root + "lib/__init__.py", std::nullopt},
                         {root + "lib/cmake/", std::nullopt},
                         {root + "include/", "include/"},
                         {root + "lib/", "lib/"},
                         {root + "nvvm/lib64/", "nvvm/lib64/"}}};
    }
    // "cccl" from 13.3 on has versions of its own, but the major one is that of the toolkit.
    const std::string root =
        fmt::format("nvidia/cu{}/", requirement.version.substr(0, requirement.version.find('.')));
    return {.keep = {{root + "lib/cmake/", std::nullopt},
                     {root + "bin/", "bin/"},
                     {root + "include/", "include/"},
                     {root + "lib/", "lib/"},
                     {root + "nvvm/", "nvvm/"}},
            .executable = {"bin/", "nvvm/bin/"}};
}

store::UnpackRules rules(const Requirement& requirement) {
    if (requirement.name == kCutlass) {
        const std::string root = "cutlass_library/source/";
        return {.keep = {{root + "include/", "include/"},
                         {root + "tools/util/include/", "tools/util/include/"}}};
    }
    if (requirement.name.starts_with(kCudaPrefix)) {
        return cuda_rules(requirement);
    }
    // "tvm_ffi" for "apache-tvm-ffi": the package is not always called like its distribution.
    const std::string package = requirement.name == "apache-tvm-ffi" ? "tvm_ffi" : requirement.name;
    const std::string record = fmt::format(
        "{}-{}.dist-info/RECORD", replace_all(requirement.name, "-", "_"), requirement.version);
    return {.keep = {{package + "/include/", "include/"},
                     {package + "/version.py", "version.py"},
                     {record, "RECORD"}}};
}

std::string refusal(const Requirement& requirement) {
    // "#cuda-13.5" names the toolkit where the version of a part does not.
    const bool cuda = requirement.name.starts_with(kCudaPrefix) && requirement.name != kCutlass &&
                      (requirement.slice.empty() || requirement.slice.starts_with("cuda-"));
    const bool headers = requirement.slice == "include";
    return cuda || headers ? std::string{}
                           : fmt::format("wheels have no slice '{}'", requirement.slice);
}

} // namespace

Provider wheel_provider() {
    return {.name = "wheel",
            .source = "pip",
            .refusal = refusal,
            .resolve = resolve,
            .download = download,
            .archive = [](std::string_view /*file*/) { return store::ArchiveKind::zip; },
            .rules = rules};
}

} // namespace kb::toolchain
