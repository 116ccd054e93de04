// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/pyproject.hpp"

#include "base/text.hpp"
#include "cli/render.hpp"
#include "generate/project_files.hpp"
#include "plan/plan.hpp"
#include "project/generated.hpp"
#include "project/git_state.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::cli {

namespace {

bool is_commit(std::string_view text) {
    return (text.size() == 40 || text.size() == 64) && std::ranges::all_of(text, [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

bool is_unique_id(std::string_view text) {
    return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_';
    });
}

std::optional<package::Provenance> make_provenance(const PyprojectOptions& options,
                                                   const Services& services,
                                                   const project::Project& project) {
    package::Provenance provenance{.tool_version = KB_VERSION};
    if (!options.kernel_sha) {
        const project::GitState git =
            project::read_git_state(services.processes, services.environment, project.root());
        if (git.commit) {
            provenance.kernel = package::SourceState{.commit = *git.commit, .dirty = git.is_dirty};
        }
        return provenance;
    }
    const std::string commit = to_lower(*options.kernel_sha);
    if (!is_commit(commit)) {
        services.terminal.err(fmt::format(
            "error: '--kernel-sha {}' is not a commit: 40 or 64 hex digits were expected\n",
            escape_control(*options.kernel_sha)));
        return std::nullopt;
    }
    provenance.kernel = package::SourceState{.commit = commit, .dirty = options.kernel_dirty};
    return provenance;
}

std::string listed(std::string_view head, const std::vector<std::string>& paths) {
    std::string text = paths.empty() ? std::string{} : fmt::format("{}:\n", head);
    for (const std::string& path : paths) {
        text += fmt::format("  {}\n", path);
    }
    return text;
}

void render_report(const project::GeneratedReport& report, bool dry_run, Terminal& terminal) {
    for (const std::string& path : report.written) {
        terminal.out(fmt::format("{} {}\n", dry_run ? "would write" : "wrote", path));
    }
    for (const std::string& path : report.removed) {
        terminal.out(fmt::format("{} {}\n", dry_run ? "would remove" : "removed", path));
    }
    if (report.written.empty() && report.removed.empty()) {
        terminal.err("nothing to do\n");
    }
}

} // namespace

bool check_unique_id(const PyprojectOptions& options, Terminal& terminal) {
    if (!options.unique_id || is_unique_id(*options.unique_id)) {
        return true;
    }
    terminal.err(fmt::format("error: '--unique-id {}': letters, digits and '_' were expected\n",
                             escape_control(*options.unique_id)));
    return false;
}

ExitCode apply_generated(const Services& services,
                         const sys::Path& target,
                         const std::vector<FileImage>& files,
                         const PyprojectOptions& options) {
    auto report =
        project::write_generated(services.fs,
                                 target,
                                 target / project::kStateDirectory,
                                 files,
                                 options.force ? project::Force::yes : project::Force::no,
                                 options.dry_run ? project::DryRun::yes : project::DryRun::no);
    if (!report) {
        render_error(report.error(), services.terminal);
        return exit_code_for(report.error(), ExitCode::failed);
    }
    if (!report->kept.empty() && !options.force) {
        services.terminal.err(
            listed("error: files that kernel-builder did not write, or that were edited since, are "
                   "in the way",
                   report->kept) +
            "note: nothing was changed; '--force' replaces or removes these files\n");
        return ExitCode::failed;
    }
    render_report(*report, options.dry_run, services.terminal);
    return ExitCode::ok;
}

ExitCode write_pyproject(const project::Project& project,
                         const plan::SourceSnapshot& snapshot,
                         const PyprojectOptions& options,
                         const Services& services) {
    auto provenance = make_provenance(options, services, project);
    if (!provenance) {
        return ExitCode::usage;
    }
    const std::vector<FileImage> files = generate::project_files(
        {.config = project.config,
         .matrix = plan::default_support_matrix(),
         .snapshot = snapshot,
         .unique_id =
             options.unique_id ? *options.unique_id : plan::unique_id(project.config, snapshot),
         .provenance = std::move(provenance),
         .maturity = generate::maturity_of(project.settings)});
    const sys::Path target =
        options.target ? services.current_directory / *options.target : project.root();
    if (const auto info = services.fs.stat(target);
        !info || info->type != sys::FileType::directory) {
        services.terminal.err(fmt::format("error: '{}' is not a directory\n", target.string()));
        return ExitCode::usage;
    }
    return apply_generated(services, target, files, options);
}

} // namespace kb::cli
