// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/commands/table.hpp"
#include "cli/open_project.hpp"
#include "cli/open_store.hpp"
#include "cli/progress.hpp"
#include "cli/render.hpp"
#include "cli/selection_options.hpp"
#include "document/json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Puts the pinned toolchains of the chosen variants into the store, so that 'build --offline' has
what it needs. Files come from the user's own pip and apt-get, with their configuration, and count
only when their sha256 is the pinned one; what the store has is not fetched again. With --export
the files are put into a directory as well: a bundle that --from reads on a machine without a
network.

Exit codes: 0 all is in the store, 3 build.toml or build.lock is wrong, 4 a file is not served, is
not the pinned one, or the store cannot be written.

Examples:
  kernel-builder fetch
  kernel-builder fetch --export bundle
  kernel-builder fetch --offline --from bundle)";

struct FetchCommandOptions {
    std::string directory = ".";
    SelectionOptions selection{};
    SettingFlags settings{};
    std::optional<std::string> from{};
    std::optional<std::string> export_to{};
    bool json = false;
};

class FetchCommand final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "fetch"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Put the pinned toolchains into the store";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::machine; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        std::vector<OptionRow> rows{
            {"DIR", "", "project directory", &options_.directory},
            {"--from", "DIR", "look for files here before the network", &options_.from},
            {"--export", "DIR", "put the files here too", &options_.export_to},
            {"--offline", "", "open no connection", &options_.settings.offline},
            {"--store", "DIR", "toolchain store", &options_.settings.store},
            {"--json", "", "the result as JSON", &options_.json}};
        const std::vector<OptionRow> selection = options_.selection.rows();
        rows.insert(rows.end(), selection.begin(), selection.end());
        return rows;
    }

    ExitCode run(const Services& services) override {
        Diagnostics diagnostics;
        auto selection = resolve(options_.selection, diagnostics);
        render_diagnostics(diagnostics, {}, services.terminal);
        const auto settings = settings_for(options_.settings, services);
        if (!selection || diagnostics.has_errors() || !settings) {
            return ExitCode::usage;
        }
        const auto project = open_project(options_.directory, Strict::no, services);
        if (!project) {
            return ExitCode::configuration;
        }
        const auto lock = choose_lock(*project, services);
        if (!lock) {
            return ExitCode::configuration;
        }
        auto store = open_store(*settings, services);
        if (!store) {
            return ExitCode::toolchain;
        }
        if (selection->platforms.empty()) {
            selection->platforms = {backend::Platform{}};
        }
        const auto entries = entries_of(*project, *lock, *selection);
        if (!entries) {
            render_error(entries.error(), services.terminal);
            return exit_code_for(entries.error(), ExitCode::toolchain);
        }
        const auto report = fetch(*entries, *settings, *store, services);
        if (!report) {
            render_error(report.error(), services.terminal);
            return exit_code_for(report.error(), ExitCode::toolchain);
        }
        render(*report, services.terminal);
        return ExitCode::ok;
    }

private:
    static Result<std::vector<plan::LockEntry>> entries_of(const project::Project& project,
                                                           const LockChoice& lock,
                                                           const plan::Selection& selection) {
        std::vector<plan::LockEntry> out;
        for (const backend::Platform& platform : selection.platforms) {
            plan::Selection own = selection;
            own.platforms = {platform};
            const auto requirements =
                plan::requirements(project.config, plan::default_support_matrix(), own);
            KB_TRY(const auto entries,
                   toolchain::select_entries(requirements, lock.lock, platform)
                       .context(fmt::format("reading the {} lock", lock.origin)));
            out.insert(out.end(), entries.begin(), entries.end());
        }
        std::ranges::sort(out);
        out.erase(std::unique(out.begin(), out.end()), out.end());
        return out;
    }

    Result<toolchain::FetchReport> fetch(const std::vector<plan::LockEntry>& entries,
                                         const Settings& settings,
                                         store::Store& store,
                                         const Services& services) {
        ProgressLine progress{services.terminal, services.clock};
        toolchain::FetchOptions options = fetch_options(settings);
        options.on_progress = [&](std::string_view text) {
            progress.stage(text);
        };
        if (options_.from) {
            options.from = services.current_directory / *options_.from;
        }
        if (options_.export_to) {
            options.export_to = services.current_directory / *options_.export_to;
        }
        auto report = toolchain::fetch(entries, store, machine_of(services), options);
        progress.clear();
        return report;
    }

    void render(const toolchain::FetchReport& report, Terminal& terminal) const {
        if (options_.json) {
            terminal.out(document::write_json(
                document::Node::table({{"schema", "kernel-builder/fetch/1"},
                                       {"present", document::Node::strings(report.present)},
                                       {"fetched", document::Node::strings(report.fetched)},
                                       {"bytes", report.bytes}})));
            return;
        }
        for (const std::string& id : report.fetched) {
            terminal.out(fmt::format("fetched {}\n", id));
        }
        terminal.err(fmt::format("{} fetched ({}), {} in the store already\n",
                                 report.fetched.size(),
                                 human_bytes(report.bytes),
                                 report.present.size()));
    }

    FetchCommandOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_fetch() {
    return std::make_unique<FetchCommand>();
}

} // namespace kb::cli
