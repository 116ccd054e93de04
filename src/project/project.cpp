// SPDX-License-Identifier: Apache-2.0
#include "project/project.hpp"

#include "base/text.hpp"
#include "document/toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace kb::project {

namespace {

constexpr std::uint64_t kMaxConfigBytes = 4UL << 20U;
constexpr std::uint64_t kMaxSourceBytes = 256UL << 20U;
constexpr std::size_t kMaxFiles = 200'000;
/// Never part of a project's sources.
constexpr std::array<std::string_view, 5> kSkipped{
    ".git", ".kernel-builder", "__pycache__", "_cmake_build", ".pytest_cache"};

/// Files below `directory`; `prefix` is its path from the root.
Result<void> list_files(sys::FileSystem& fs,
                        const sys::Path& directory,
                        const std::string& prefix,
                        std::vector<RelPath>& out) {
    KB_TRY(const std::vector<sys::DirEntry> entries, fs.list(directory));
    for (const sys::DirEntry& entry : entries) {
        const bool skipped = std::ranges::find(kSkipped, entry.name) != kSkipped.end() ||
                             (prefix.empty() && entry.name == "build");
        const Result<RelPath> path = RelPath::parse(prefix + entry.name);
        if (skipped || !path) {
            continue; // a name that no build.toml can spell
        }
        if (entry.type == sys::FileType::directory) {
            KB_TRY(list_files(fs, directory / entry.name, prefix + entry.name + "/", out));
        } else if (entry.type != sys::FileType::other) {
            out.push_back(*path);
        }
        if (out.size() > kMaxFiles) {
            return Error{.code = ErrorCode::unsupported,
                         .message = fmt::format(
                             "more than {} files lie here; is this the directory of one kernel?",
                             kMaxFiles)};
        }
    }
    return {};
}

std::vector<RelPath> declared_sources(const config::Config& config) {
    std::set<RelPath> out;
    const auto add = [&](const config::Strings& list) {
        for (const auto& item : list) {
            if (const Result<RelPath> path = RelPath::parse(item.value)) {
                out.insert(*path);
            }
        }
    };
    add(config::binding_src(config));
    for (const config::Section& section : config.sections) {
        add(section.src);
    }
    return {out.begin(), out.end()};
}

bool is_package_file(const RelPath& path, const std::vector<std::string>& extensions) {
    if (path.name() == "_ops.py") {
        return false; // generated for each variant
    }
    const std::string_view extension = path.extension();
    return !extension.empty() &&
           std::ranges::find(extensions, extension.substr(1)) != extensions.end();
}

} // namespace

Result<ProjectText>
read_project(sys::FileSystem& fs, const sys::Path& current, std::string_view directory) {
    ProjectText out;
    const bool is_here = directory.empty() || directory == ".";
    out.root = is_here ? current : (current / sys::Path{std::string{directory}}).lexically_normal();
    const sys::Path named = is_here ? sys::Path{} : sys::Path{std::string{directory}};
    out.config_name = (named / "build.toml").lexically_normal().string();
    out.settings_name = (named / config::kProjectSettingsFile).lexically_normal().string();
    const Result<sys::FileInfo> info = fs.stat(out.root);
    if (!info) {
        return Error{.code = info.error().code,
                     .message = fmt::format("cannot open the project: {}", info.error().to_text())};
    }
    if (info->type != sys::FileType::directory) {
        return Error{
            .code = ErrorCode::not_found,
            .message = fmt::format(
                "'{}' is not a directory; name the directory that holds build.toml", directory)};
    }
    Result<std::string> text = fs.read_file(out.root / "build.toml", kMaxConfigBytes);
    if (!text && text.error().code == ErrorCode::not_found) {
        return Error{.code = ErrorCode::not_found,
                     .message =
                         fmt::format("'{}' is missing; 'kernel-builder init' makes a new project",
                                     out.config_name)};
    }
    if (!text) {
        return std::move(text).error();
    }
    out.config_text = std::move(text).value();
    Result<std::string> settings =
        fs.read_file(out.root / config::kProjectSettingsFile, kMaxConfigBytes);
    if (settings) {
        out.settings_text = std::move(settings).value();
    } else if (settings.error().code != ErrorCode::not_found) {
        return std::move(settings).error();
    }
    KB_TRY(list_files(fs, out.root, "", out.files));
    std::ranges::sort(out.files);
    return out;
}

std::optional<config::ProjectSettings> judge_settings(const ProjectText& text,
                                                      Diagnostics& diagnostics) {
    if (!text.settings_text) {
        return config::ProjectSettings{};
    }
    const auto root =
        document::parse_toml(*text.settings_text, {.name = text.settings_name}, diagnostics);
    return root ? config::read_project_settings(*root, diagnostics) : std::nullopt;
}

std::optional<Project>
judge_project(ProjectText text, Validate validate, Diagnostics& diagnostics) {
    const auto root =
        document::parse_toml(text.config_text, {.name = text.config_name}, diagnostics);
    if (!root) {
        return std::nullopt;
    }
    auto config = config::read(*root, diagnostics);
    const auto settings = judge_settings(text, diagnostics);
    if (!config || !settings) {
        return std::nullopt;
    }
    if (validate == Validate::yes) {
        config::validate(*config, text.files, diagnostics);
    }
    return Project{.text = std::move(text), .config = std::move(*config), .settings = *settings};
}

RelPath package_directory(const config::Config& config) {
    return RelPath::literal(config::extension_dir(config)) /
           RelPath::literal(config.name.module_name());
}

namespace {

/// A link in the package may lead to another file of the project, through real directories only:
/// what it leads to is published.
Result<void> refuse_link_out(sys::FileSystem& fs, const sys::Path& root, const RelPath& path) {
    KB_TRY(const sys::FileInfo info, fs.stat(root / path.text(), sys::FollowLinks::no));
    if (info.type != sys::FileType::symlink) {
        return {};
    }
    KB_TRY(const std::string text, fs.read_link(root / path.text()));
    const sys::Path target{text};
    bool stays = !target.is_absolute();
    bool descended = false;
    for (const sys::Path& part : target) {
        // "a/.." is not here again when a is a link.
        stays = stays && !(part == ".." && descended);
        descended = descended || (part != ".." && part != ".");
    }
    const sys::Path resolved = (sys::Path{path.text()}.parent_path() / target).lexically_normal();
    sys::Path place = root;
    for (const sys::Path& part : resolved) {
        place /= part;
        const auto here = stays && part != ".." ? fs.stat(place, sys::FollowLinks::no)
                                                : Error{.code = ErrorCode::denied};
        stays = here && here->type != sys::FileType::symlink;
    }
    if (stays) {
        return {};
    }
    return Error{.code = ErrorCode::denied,
                 .message = fmt::format("'{}' is a link out of the project, to '{}': what it leads "
                                        "to would be published; put a copy in its place",
                                        escape_control(path.text()),
                                        escape_control(text))};
}

} // namespace

Result<plan::SourceSnapshot> read_snapshot(sys::FileSystem& fs, const Project& project) {
    plan::SourceSnapshot out;
    for (const RelPath& path : declared_sources(project.config)) {
        Result<std::string> text = fs.read_file(project.root() / path.text(), kMaxSourceBytes);
        if (!text && text.error().code == ErrorCode::not_found) {
            continue;
        }
        if (!text) {
            return std::move(text).context("reading the sources").error();
        }
        out.files.push_back(plan::scan_source(path, *text));
    }
    const std::string prefix = package_directory(project.config).text() + "/";
    const std::vector<std::string> extensions = config::python_extensions(project.config);
    for (const RelPath& path : project.text.files) {
        if (!path.text().starts_with(prefix) || !is_package_file(path, extensions)) {
            continue;
        }
        KB_TRY(refuse_link_out(fs, project.root(), path));
        KB_TRY(const std::string text, fs.read_file(project.root() / path.text(), kMaxSourceBytes));
        out.package.push_back({.path = RelPath::literal(path.text().substr(prefix.size())),
                               .sha256 = digest::sha256(text)});
    }
    return out;
}

Result<void> make_state_directory(sys::FileSystem& fs, const Project& project) {
    return make_state_directory(fs, project.state());
}

Result<void> make_state_directory(sys::FileSystem& fs, const sys::Path& directory) {
    // The marker is the one of the Cache Directory Tagging Specification: backup programs skip it
    // too.
    constexpr std::string_view kMarker =
        "Signature: 8a477f597d28d172789f06886806bc55\n# Made by kernel-builder; safe to delete.\n";
    if (sys::exists(fs, directory / "CACHEDIR.TAG")) {
        return {};
    }
    if (sys::exists(fs, directory)) {
        KB_TRY(const std::vector<sys::DirEntry> entries, fs.list(directory));
        if (!entries.empty()) {
            return Error{.code = ErrorCode::denied,
                         .message = fmt::format("'{}' was not made by kernel-builder; move it away",
                                                directory.string())};
        }
    }
    KB_TRY(fs.make_directories(directory));
    // The marker first: killed in between, the directory is ours all the same.
    KB_TRY(fs.write_atomic(directory / "CACHEDIR.TAG", kMarker, FileMode::regular));
    return fs.write_atomic(directory / ".gitignore", "*\n", FileMode::regular);
}

} // namespace kb::project
