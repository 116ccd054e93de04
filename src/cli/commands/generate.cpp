// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "build/workspace.hpp"
#include "cli/commands/pyproject.hpp"
#include "cli/commands/table.hpp"
#include "cli/open_project.hpp"
#include "cli/open_store.hpp"
#include "cli/progress.hpp"
#include "cli/render.hpp"
#include "cli/selection_options.hpp"
#include "cli/settings.hpp"
#include "generate/script_files.hpp"
#include "plan/plan.hpp"
#include "sys/environment.hpp"
#include "toolchain/toolchain.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

struct Prepared {
    project::Project project{};
    Settings settings{};
    plan::SourceSnapshot snapshot{};
    LockChoice lock{};
    plan::Plan plan{};
};

class Generate final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "generate"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Write the CMake project and the hermetic build scripts";
    }

    [[nodiscard]] std::string_view description() const override {
        return "Does what create-pyproject does, and writes build.ninja, build.sh and the sources "
               "that they need to\n"
               ".kernel-builder/work/. build.sh builds the selected variants (default: all that "
               "this platform can build) in\n"
               "the bubblewrap line that it spells out, without kernel-builder, to the same bytes. "
               "Toolchains that the lock\n"
               "pins and the store lacks are fetched.\n"
               "\n"
               "  kernel-builder generate --cuda 13.0 && .kernel-builder/work/build.sh\n"
               "\n"
               "Exit: 0 written, 1 files in the way or not writable, 2 usage, 3 build.toml, 4 "
               "lock, "
               "store or download.";
    }

    [[nodiscard]] Tier tier() const override { return Tier::machine; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        std::vector<OptionRow> rows{
            {"DIR", "", "project directory", &options_.directory},
            {"TARGET", "", "where the CMake project goes; default: DIR", &options_.target},
            {"-f,--force", "", "replace files that are not ours", &options_.force},
            {"--unique-id",
             "ID",
             "last part of the operators' namespace; default: a digest of the sources",
             &options_.unique_id},
            {"--store", "DIR", "toolchain store", &settings_.store},
            {"--offline",
             "",
             "fetch nothing: the store must hold what is needed",
             &settings_.offline},
            {"--from", "DIR", "look for pinned files here before the network", &from_}};
        const std::vector<OptionRow> selection = selection_.rows();
        rows.insert(rows.end(), selection.begin(), selection.end());
        return rows;
    }

    ExitCode run(const Services& services) override {
        if (!check_unique_id(options_, services.terminal)) {
            return ExitCode::usage;
        }
        Prepared prepared;
        if (const ExitCode code = prepare(services, prepared); code != ExitCode::ok) {
            return code;
        }
        const ExitCode code =
            write_pyproject(prepared.project, prepared.snapshot, options_, services);
        return code == ExitCode::ok ? write_work(services, prepared) : code;
    }

private:
    ExitCode prepare(const Services& services, Prepared& out) {
        Diagnostics diagnostics;
        const auto settings = read_settings(settings_, services, diagnostics);
        auto selection = resolve(selection_, diagnostics);
        const auto platform = host_platform();
        if (selection && platform) {
            choose_platform(*selection, *platform, diagnostics);
        }
        render_diagnostics(diagnostics, {}, services.terminal);
        if (!settings || !selection || !platform || diagnostics.has_errors()) {
            return ExitCode::usage;
        }
        auto project = open_project(options_.directory, Strict::no, services);
        if (!project) {
            return ExitCode::configuration;
        }
        auto lock = choose_lock(*project, services);
        if (!lock) {
            return ExitCode::toolchain;
        }
        auto snapshot = read_build_snapshot(*project, services);
        if (!snapshot) {
            render_error(snapshot.error(), services.terminal);
            return ExitCode::configuration;
        }
        out = {.project = std::move(*project),
               .settings = *settings,
               .snapshot = std::move(*snapshot),
               .lock = std::move(*lock)};
        return make_plan(*selection, services, out);
    }

    ExitCode make_plan(const plan::Selection& selection, const Services& services, Prepared& out) {
        Diagnostics diagnostics;
        auto plan = plan::make({.config = out.project.config,
                                .matrix = plan::default_support_matrix(),
                                .snapshot = out.snapshot,
                                .lock = out.lock.lock,
                                .selection = selection,
                                .unique_id = options_.unique_id,
                                .tool_version = KB_VERSION,
                                .lock_origin = out.lock.origin,
                                .facts = key_facts(out.project)},
                               diagnostics);
        render_for(out.project, diagnostics, services);
        if (!plan) {
            return ExitCode::configuration;
        }
        out.plan = std::move(*plan);
        return ExitCode::ok;
    }

    Result<std::vector<generate::ScriptMount>>
    provide(const Services& services, const Prepared& prepared, const build::Workspace& workspace) {
        std::vector<generate::ScriptMount> mounts;
        if (prepared.plan.requirements.empty()) {
            return mounts; // noarch variants need no toolchain
        }
        KB_TRY(store::Store store,
               store::Store::open(services.fs, services.clock, prepared.settings.store));
        ProgressLine progress{services.terminal, services.clock};
        toolchain::FetchOptions fetch = fetch_options(prepared.settings);
        fetch.on_progress = [&](std::string_view text) {
            progress.stage(text);
        };
        if (from_) {
            fetch.from = services.current_directory / *from_;
        }
        const sandbox::ConfineTools tools{
            .path_variable = sys::lookup(services.environment, "PATH").value_or("/usr/bin:/bin"),
            .self = services.self,
            .scratch = workspace.scratch()};
        const auto roots =
            toolchain::provide(prepared.plan.requirements,
                               prepared.lock.lock,
                               prepared.plan.variants.front().name.variant().platform,
                               store,
                               {.fs = services.fs,
                                .processes = services.processes,
                                .environment = services.environment,
                                .clock = services.clock},
                               fetch,
                               {.level = sandbox::Level::namespaces, .tools = tools});
        progress.clear();
        if (!roots) {
            return roots.error();
        }
        for (const toolchain::Root& root : *roots) {
            mounts.push_back({.place = root.mount, .directory = root.host.string()});
        }
        return mounts;
    }

    ExitCode write_work(const Services& services, const Prepared& prepared) {
        const build::Workspace workspace{.state = prepared.project.state()};
        if (auto made = project::make_state_directory(services.fs, prepared.project); !made) {
            render_error(made.error(), services.terminal);
            return ExitCode::failed;
        }
        const auto mounts = provide(services, prepared, workspace);
        if (!mounts) {
            render_error(mounts.error(), services.terminal);
            return exit_code_for(mounts.error(), ExitCode::toolchain);
        }
        std::vector<backend::VariantName> names;
        for (const plan::PlannedVariant& variant : prepared.plan.variants) {
            names.push_back(variant.name);
        }
        const auto scripts =
            generate::script_files({.plan = prepared.plan, .variants = names, .mounts = *mounts});
        const auto done = build::materialise(
            services.fs, workspace, prepared.project, prepared.snapshot, scripts);
        if (!done) {
            render_error(done.error(), services.terminal);
            return exit_code_for(done.error(), ExitCode::failed);
        }
        services.terminal.out(fmt::format("wrote {} for {}\n",
                                          (workspace.work() / "build.sh").string(),
                                          counted(names.size(), "variant")));
        return ExitCode::ok;
    }

    PyprojectOptions options_;
    SelectionOptions selection_;
    SettingFlags settings_;
    std::optional<std::string> from_;
};

} // namespace

std::unique_ptr<Command> make_generate() {
    return std::make_unique<Generate>();
}

} // namespace kb::cli
