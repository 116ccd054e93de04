// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/commands/table.hpp"
#include "cli/render.hpp"
#include "registry/archive.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

constexpr std::string_view kExportDescription =
    R"(Writes repositories with their branches, tags, history and contents as one tar, for a backup or for
a registry that no network reaches. Without --repo all of them. Pull requests, tokens, settings and
the audit are not in it. Works while the registry is being served.

Exit codes: 0 written, 2 wrong options, 5 the registry cannot be opened or is damaged, there is no
such repository, or FILE exists.

Examples:
  kernel-builder registry export --root /srv/kernels --output kernels.tar
  kernel-builder registry export --root r --output relu.tar --repo kernels/acme/relu)";

constexpr std::string_view kImportDescription =
    R"(Takes over an archive of 'registry export'. All of it is checked first: every id and digest, that
nothing is missing, that paths may be such. A branch that is here already must be an ancestor of the
one in the archive, a tag must be equal; else nothing is imported. Repeating it after a break
finishes it. Works while the registry is being served.

Exit codes: 0 imported, 2 wrong options, 5 the archive is damaged or does not fit, or the
registry cannot be opened.

Example:
  kernel-builder registry import --root /srv/kernels kernels.tar)";

std::string to_text(std::string_view what, const registry::ArchiveReport& report) {
    return fmt::format("{} {} repositories, {} refs ({} unchanged), {} commits, {} files; {}\n",
                       what,
                       report.repositories,
                       report.refs,
                       report.refs_unchanged,
                       report.commits,
                       report.files,
                       human_bytes(report.bytes));
}

ExitCode conclude(std::string_view what,
                  const Result<registry::ArchiveReport>& report,
                  const Services& services) {
    if (!report) {
        render_error(report.error(), services.terminal);
        return exit_code_for(report.error(), ExitCode::remote);
    }
    services.terminal.out(to_text(what, *report));
    return ExitCode::ok;
}

class RegistryExport final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "registry export"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Write repositories of a registry as one archive";
    }

    [[nodiscard]] std::string_view description() const override { return kExportDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"--root", "DIR", "directory of the registry", &root_},
                {"--output", "FILE", "new archive", &output_},
                {"--repo", "TYPE/OWNER/NAME", "only this repository (repeatable)", &repos_}};
    }

    ExitCode run(const Services& services) override {
        if (!root_ || !output_) {
            services.terminal.err("error: --root DIR and --output FILE must be given\n");
            return ExitCode::usage;
        }
        return conclude("wrote",
                        registry::export_archive(
                            services.fs,
                            services.current_directory / *root_,
                            {.output = services.current_directory / *output_, .repos = repos_}),
                        services);
    }

private:
    std::optional<std::string> root_{};
    std::optional<std::string> output_{};
    std::vector<std::string> repos_{};
};

class RegistryImport final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "registry import"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Take over an archive of another registry";
    }

    [[nodiscard]] std::string_view description() const override { return kImportDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"--root", "DIR", "directory of the registry", &root_},
                {"FILE", "", "archive of 'registry export'", &archive_}};
    }

    ExitCode run(const Services& services) override {
        if (!root_ || archive_.empty()) {
            services.terminal.err("error: --root DIR and FILE must be given\n");
            return ExitCode::usage;
        }
        return conclude("imported",
                        registry::import_archive(services.fs,
                                                 services.current_directory / *root_,
                                                 {.archive = services.current_directory / archive_,
                                                  .now = services.clock.unix_seconds()}),
                        services);
    }

private:
    std::optional<std::string> root_{};
    std::string archive_{};
};

} // namespace

std::unique_ptr<Command> make_registry_export() {
    return std::make_unique<RegistryExport>();
}

std::unique_ptr<Command> make_registry_import() {
    return std::make_unique<RegistryImport>();
}

} // namespace kb::cli
