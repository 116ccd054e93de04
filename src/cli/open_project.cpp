// SPDX-License-Identifier: Apache-2.0
#include "cli/open_project.hpp"

#include "cli/render.hpp"
#include "generate/package_files.hpp"
#include "toolchain/toolchain.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::cli {

std::optional<project::Project>
open_project(const std::string& directory, Strict strict, const Services& services) {
    Result<project::ProjectText> text =
        project::read_project(services.fs, services.current_directory, directory);
    if (!text) {
        render_error(text.error(), services.terminal);
        return std::nullopt;
    }
    const std::map<std::string, std::string> sources{
        {text->config_name, text->config_text},
        {text->settings_name, text->settings_text.value_or("")}};
    Diagnostics diagnostics;
    auto project =
        project::judge_project(std::move(text).value(), project::Validate::yes, diagnostics);
    if (strict == Strict::yes) {
        diagnostics.promote_warnings();
    }
    render_diagnostics(diagnostics, sources, services.terminal);
    return diagnostics.has_errors() ? std::nullopt : std::move(project);
}

void render_for(const project::Project& project,
                const Diagnostics& diagnostics,
                const Services& services) {
    render_diagnostics(
        diagnostics, {{project.text.config_name, project.text.config_text}}, services.terminal);
}

std::optional<LockChoice> choose_lock(const project::Project& project, const Services& services) {
    const sys::Path path = project.root() / "build.lock";
    const Result<std::string> text = services.fs.read_file(path);
    if (!text && text.error().code == ErrorCode::not_found) {
        return LockChoice{.lock = toolchain::default_lock(), .origin = "default"};
    }
    Result<plan::Lock> lock = text ? plan::parse_lock(*text) : Result<plan::Lock>{text.error()};
    if (!lock) {
        render_error(std::move(lock).context(fmt::format("reading '{}'", path.string())).error(),
                     services.terminal);
        return std::nullopt;
    }
    return LockChoice{.lock = std::move(lock).value(), .origin = "project"};
}

Result<plan::SourceSnapshot> read_build_snapshot(const project::Project& project,
                                                 const Services& services) {
    KB_TRY(plan::SourceSnapshot snapshot, project::read_snapshot(services.fs, project));
    const RelPath header = RelPath::literal(generate::kRegistrationHeader);
    const bool is_torch = std::holds_alternative<config::Torch>(project.config.framework);
    if (is_torch && std::ranges::find(snapshot.files, header, &plan::SourceFile::path) ==
                        snapshot.files.end()) {
        snapshot.files.push_back(plan::scan_source(header, generate::registration_header()));
        snapshot.files.back().generated = true;
    }
    return snapshot;
}

std::map<std::string, std::string> key_facts(const project::Project& project) {
    std::map<std::string, std::string> facts;
    if (project.settings.experimental) {
        facts.emplace("experimental", "true");
    }
    return facts;
}

std::optional<backend::Platform> host_platform() {
#if defined(__x86_64__) && defined(__linux__)
    return backend::Platform{.cpu = backend::Cpu::x86_64, .os = backend::Os::linux};
#elif defined(__aarch64__) && defined(__linux__)
    return backend::Platform{.cpu = backend::Cpu::aarch64, .os = backend::Os::linux};
#elif defined(__aarch64__) && defined(__APPLE__)
    return backend::Platform{.cpu = backend::Cpu::aarch64, .os = backend::Os::darwin};
#else
    return std::nullopt;
#endif
}

} // namespace kb::cli
