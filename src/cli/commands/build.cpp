// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "build/pipeline.hpp"
#include "build/reproduce.hpp"
#include "cli/commands/build_json.hpp"
#include "cli/commands/card.hpp"
#include "cli/commands/table.hpp"
#include "cli/commands/variants.hpp"
#include "cli/open_project.hpp"
#include "cli/open_store.hpp"
#include "cli/progress.hpp"
#include "cli/render.hpp"
#include "cli/selection_options.hpp"
#include "cli/settings.hpp"
#include "document/json.hpp"
#include "store/blob_store.hpp"
#include "sys/environment.hpp"
#include "sys/host_limits.hpp"
#include "toolchain/installed.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    "Plans the chosen variants, fetches the toolchains that the lock pins and the store lacks, "
    "compiles every distinct\n"
    "translation unit once in the sandbox, links, checks and seals each variant into "
    "build/<variant>/. What is up to date is\n"
    "left alone; a failed variant does not hold up the others; Ctrl-C loses nothing that was "
    "finished.\n"
    "\n"
    "Without --matrix or a selection it builds the best variant for this machine.\n"
    "\n"
    "  kernel-builder build                       the variant of this machine\n"
    "  kernel-builder build --matrix              all that this platform can build\n"
    "  kernel-builder build --matrix --cuda 13.0  of these, the ones for CUDA 13.0\n"
    "  kernel-builder build --matrix --dry-run    what would be built and why\n"
    "\n"
    "Exit: 0 all variants are built and pass the checks, 1 one failed, 3 build.toml, 4 toolchain "
    "or sandbox, 130 interrupted.";

struct BuildCommandOptions {
    std::string directory = ".";
    bool matrix = false;
    SelectionOptions selection{};
    SettingFlags settings{};
    std::optional<std::string> from{};
    std::optional<std::string> cuda_root{};
    std::vector<std::string> allow_unchecked{};
    bool check_reproducible = false;
    bool fail_fast = false;
    bool no_cache = false;
    bool dry_run = false;
    bool explain = false;
    bool json = false;
};

/// Everything decided, nothing done yet.
struct Prepared {
    project::Project project{};
    Settings settings{};
    plan::SourceSnapshot snapshot{};
    LockChoice lock{};
    plan::SupportMatrix matrix{};
    plan::Plan plan{};
    std::vector<build::VariantState> states{};
    build::WorkList work{};
};

class BuildCommand final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "build"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Build variants in the sandbox";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::machine; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        std::vector<OptionRow> rows{
            {.name = "DIR",
             .value = "DIR",
             .help = "project directory",
             .target = &options_.directory},
            {.name = "--matrix",
             .help = "every variant that this platform can build",
             .target = &options_.matrix},
            {.name = "-j,--jobs",
             .value = "N",
             .help = "parallel compilers (default: the CPUs this process may use)",
             .target = &options_.settings.jobs},
            {.name = "--memory",
             .value = "SIZE",
             .help = "memory for all compilers together, e.g. 8G",
             .target = &options_.settings.memory},
            {.name = "--sandbox",
             .value = "LEVEL",
             .help = "namespaces (default), chroot, landlock or plain; weaker ones are recorded",
             .target = &options_.settings.sandbox},
            {.name = "--store",
             .value = "DIR",
             .help = "toolchain store",
             .target = &options_.settings.store},
            {.name = "--offline",
             .help = "fetch nothing: the store must hold what is needed",
             .target = &options_.settings.offline},
            {.name = "--from",
             .value = "DIR",
             .help = "look for pinned files here before the network",
             .target = &options_.from},
            {.name = "--allow-unchecked",
             .value = "CHECK",
             .help = "a check that may say 'not checked' (may be given again)",
             .target = &options_.allow_unchecked},
            {.name = "--fail-fast",
             .help = "stop at the first failure",
             .target = &options_.fail_fast},
            {.name = "--cuda-root",
             .value = "DIR",
             .help = "compile with the CUDA toolkit installed there",
             .target = &options_.cuda_root},
            {.name = "--no-cache", .help = "compile without ccache", .target = &options_.no_cache},
            {.name = "--check-reproducible",
             .help = "build one variant twice in other circumstances and compare every byte",
             .target = &options_.check_reproducible},
            {.name = "--dry-run",
             .help = "say what would be built, what that takes, and stop",
             .target = &options_.dry_run},
            {.name = "--explain",
             .help = "say for each variant why it is built",
             .target = &options_.explain},
            {.name = "--json",
             .help = "the result as JSON on standard output",
             .target = &options_.json}};
        const std::vector<OptionRow> selection = options_.selection.rows();
        rows.insert(rows.begin() + 2, selection.begin(), selection.end());
        return rows;
    }

    ExitCode run(const Services& services) override {
        if (!are_checks(options_.allow_unchecked, {}, services.terminal)) {
            return ExitCode::usage;
        }
        Prepared prepared;
        if (const ExitCode code = prepare(services, prepared); code != ExitCode::ok) {
            return code;
        }
        if (options_.dry_run || options_.explain) {
            show_plan(prepared, services);
        }
        if (options_.dry_run) {
            return ExitCode::ok;
        }
        if (options_.check_reproducible && prepared.plan.variants.size() != 1) {
            services.terminal.err(
                fmt::format("error: '--check-reproducible' builds one variant, and {} were chosen\n"
                            "note: name one with --variant; 'kernel-builder list-variants' prints "
                            "them\n",
                            prepared.plan.variants.size()));
            return ExitCode::usage;
        }
        // A mistake in the card is said before the hours of compiling, not after.
        FilledCard card;
        if (wants_card(prepared.project, services)) {
            card = fill_card(prepared.project, services);
        }
        if (card.code != ExitCode::ok) {
            return card.code;
        }
        const ExitCode code = build_variants(prepared, services);
        // Building twice to compare leaves the project as it was.
        const bool writes = code == ExitCode::ok && !options_.check_reproducible;
        return writes ? write_card(prepared.project, card.text, services) : code;
    }

private:
    /// `build/CARD.md`, which upload sends as the repository's README.md.
    static ExitCode
    write_card(const project::Project& project, const std::string& text, const Services& services) {
        const sys::Path path = project.root() / "build" / "CARD.md";
        const Result<std::string> before = services.fs.read_file(path);
        if (text.empty() && before && !sys::exists(services.fs, project.root() / "CARD.md")) {
            services.terminal.err(
                "note: 'build/CARD.md' is of a CARD.md that is gone, and would be "
                "published; delete it if it is not meant any more\n");
        }
        const bool built = sys::exists(services.fs, path.parent_path());
        if (text.empty() || !built || (before && *before == text)) {
            return ExitCode::ok;
        }
        if (const auto done = services.fs.write_atomic(path, text, FileMode::regular); !done) {
            render_error(done.error(), services.terminal);
            return ExitCode::failed;
        }
        return ExitCode::ok;
    }

    /// Which rows of the matrix: the selection on this platform, or the best variant of this host.
    std::optional<plan::Selection> choose(const project::Project& project,
                                          const plan::SupportMatrix& matrix,
                                          const Services& services) {
        Diagnostics diagnostics;
        auto selection = resolve(options_.selection, diagnostics);
        const auto platform = host_platform();
        if (selection && !platform) {
            diagnostics.error("unknown-platform",
                              {.file = "this machine"},
                              "no variant is for this kind of machine");
        }
        if (selection && platform) {
            choose_platform(*selection, *platform, diagnostics);
        }
        if (diagnostics.has_errors()) {
            render_for(project, diagnostics, services);
            return std::nullopt;
        }
        if (!options_.matrix && !options_.selection.any() && !options_.cuda_root) {
            const plan::VariantChoice choice = plan::select(project.config, matrix, *selection);
            const bool has_gpu = sys::exists(services.fs, "/dev/nvidiactl");
            const auto best = plan::best_for_host(
                choice,
                {.platform = *platform,
                 .backend = has_gpu ? backend::BackendId::cuda : backend::BackendId::cpu});
            if (best) {
                selection->variants = {choice.chosen[*best].name.text()};
            }
        }
        return selection;
    }

    /// The installed toolkit takes the place of what its row would fetch, and only its variants
    /// are meant.
    static Result<Version>
    use_cuda_root(const std::string& directory, const Services& services, Prepared& out) {
        KB_TRY(store::Store store,
               store::Store::open(services.fs, services.clock, out.settings.store));
        KB_TRY(toolchain::InstalledToolkit toolkit,
               toolchain::take_cuda_root(
                   services.current_directory / directory, store, machine_of(services)));
        KB_TRY(out.matrix, toolchain::with_installed(std::move(out.matrix), toolkit));
        out.lock.lock.entries.push_back(std::move(toolkit.entry));
        std::ranges::sort(out.lock.lock.entries);
        return toolkit.version;
    }

    /// The matrix, with an installed toolkit in it, and which of its rows are meant.
    std::optional<plan::Selection> choose_rows(const Services& services, Prepared& out) {
        out.matrix = plan::default_support_matrix();
        if (!options_.cuda_root) {
            return choose(out.project, out.matrix, services);
        }
        const auto installed = use_cuda_root(*options_.cuda_root, services, out);
        if (!installed) {
            render_error(installed.error(), services.terminal);
            return std::nullopt;
        }
        auto selection = choose(out.project, out.matrix, services);
        if (selection && selection->cuda.is_any()) {
            auto only = plan::VersionSet::parse(installed->to_text());
            KB_ASSERT(only.has_value(), "a version is a condition");
            selection->cuda = std::move(only).value();
            selection->bundle_only = false; // the bundle has what can be fetched
        }
        return selection;
    }

    ExitCode prepare(const Services& services, Prepared& out) {
        Diagnostics diagnostics;
        const auto settings = read_settings(options_.settings, services, diagnostics);
        render_diagnostics(diagnostics, {}, services.terminal);
        if (!settings) {
            return ExitCode::usage;
        }
        out.settings = *settings;
        auto project = open_project(options_.directory, Strict::no, services);
        if (!project) {
            return ExitCode::configuration;
        }
        out.project = std::move(*project);
        auto lock = choose_lock(out.project, services);
        if (!lock) {
            return ExitCode::toolchain;
        }
        out.lock = std::move(*lock);
        const auto selection = choose_rows(services, out);
        if (!selection) {
            return ExitCode::usage;
        }
        Result<plan::SourceSnapshot> snapshot = read_build_snapshot(out.project, services);
        if (!snapshot) {
            render_error(snapshot.error(), services.terminal);
            return ExitCode::configuration;
        }
        out.snapshot = std::move(snapshot).value();
        return make_plan(*selection, services, out);
    }

    ExitCode make_plan(const plan::Selection& selection, const Services& services, Prepared& out) {
        Diagnostics diagnostics;
        auto plan = plan::make({.config = out.project.config,
                                .matrix = out.matrix,
                                .snapshot = out.snapshot,
                                .lock = out.lock.lock,
                                .selection = selection,
                                .tool_version = KB_VERSION,
                                .lock_origin = out.lock.origin,
                                .facts = key_facts(out.project)},
                               diagnostics);
        render_for(out.project, diagnostics, services);
        if (!plan) {
            return ExitCode::configuration;
        }
        out.plan = std::move(*plan);
        if (!out.plan.missing.empty()) {
            std::vector<std::string> ids;
            for (const backend::Requirement& missing : out.plan.missing) {
                ids.push_back(missing.id());
            }
            services.terminal.err(
                fmt::format("error: the {} lock does not pin {}\nnote: run 'kernel-builder lock' "
                            "to pin what this project needs\n",
                            out.lock.origin,
                            quoted_list(ids)));
            return ExitCode::toolchain;
        }
        Result<std::vector<build::VariantState>> states =
            build::read_states(build_services(services), out.project, out.plan);
        if (!states) {
            render_error(states.error(), services.terminal);
            return ExitCode::failed;
        }
        out.states = std::move(states).value();
        // git is asked only where its answer matters: a build with nothing to do takes
        // milliseconds.
        const bool asks_git = std::ranges::any_of(out.states, &build::VariantState::is_dirty);
        const project::GitState git = asks_git ? project::read_git_state(services.processes,
                                                                         services.environment,
                                                                         out.project.root())
                                               : project::GitState{};
        out.work = build::select_work(out.plan,
                                      out.states,
                                      out.settings.sandbox,
                                      git.commit && !git.is_dirty ? build::Sources::committed
                                                                  : build::Sources::unknown);
        return ExitCode::ok;
    }

    void show_plan(const Prepared& prepared, const Services& services) const {
        if (options_.json && options_.dry_run) {
            services.terminal.out(document::write_json(
                json_of(prepared.work, prepared.plan, foresee(prepared, services))));
            return;
        }
        const plan::PlanCounts counts = plan::count(prepared.plan);
        std::string text;
        for (const build::WorkItem& item : prepared.work.stale) {
            text += fmt::format("{}: {}\n", item.variant, item.reason);
            if (options_.explain) {
                text += item.difference;
            }
        }
        for (const std::string& name : prepared.work.fresh) {
            text += fmt::format("{}: up to date\n", name);
        }
        text += fmt::format("{}, {} ({} without sharing), {} for device code, lock: {}\n",
                            counted(counts.variants, "variant"),
                            counted(counts.tus_distinct, "unit"),
                            counts.tus_in_all,
                            counted(counts.arch_compiles, "compilation"),
                            prepared.plan.lock_origin);
        if (options_.dry_run) {
            text += text_of(foresee(prepared, services), build_options(prepared, services).jobs);
        }
        if (options_.json) {
            services.terminal.err(text);
        } else {
            services.terminal.out(text);
        }
    }

    static build::BuildServices build_services(const Services& services) {
        return {.fs = services.fs,
                .processes = services.processes,
                .clock = services.clock,
                .environment = services.environment};
    }

    /// Without what fetching needs.
    [[nodiscard]] build::BuildOptions build_options(const Prepared& prepared,
                                                    const Services& services) const {
        const sys::HostLimits limits = sys::read_host_limits(services.fs);
        return build::BuildOptions{
            .store = prepared.settings.store,
            .level = sandbox::parse_level(prepared.settings.sandbox).value(),
            .jobs = static_cast<unsigned>(prepared.settings.jobs.value_or(limits.cpus)),
            // A tenth stays for the system and Ninja.
            .memory_bytes = prepared.settings.memory_bytes.value_or(limits.memory_bytes / 10 * 9),
            .fail_fast = options_.fail_fast,
            .use_cache = !options_.no_cache,
            .allow_unchecked = options_.allow_unchecked,
            .self = services.self};
    }

    [[nodiscard]] build::Estimate foresee(const Prepared& prepared,
                                          const Services& services) const {
        return build::foresee(build_services(services),
                              {.project = prepared.project,
                               .snapshot = prepared.snapshot,
                               .plan = prepared.plan,
                               .lock = prepared.lock.lock},
                              prepared.work,
                              build_options(prepared, services));
    }

    ExitCode build_variants(const Prepared& prepared, const Services& services) {
        build::BuildOptions options = build_options(prepared, services);
        ProgressLine progress{services.terminal, services.clock};
        options.fetch = fetch_options(prepared.settings);
        options.fetch.jobs = options.jobs;
        if (options_.from) {
            options.fetch.from = services.current_directory / *options_.from;
        }
        options.fetch.on_progress = [&](std::string_view text) {
            progress.stage(text);
        };
        const bool builds = options_.check_reproducible || !prepared.work.stale.empty();
        if (builds && !check_level(options.level, services)) {
            return ExitCode::toolchain;
        }
        const build::BuildInput input{
            .project = prepared.project,
            .snapshot = prepared.snapshot,
            .plan = prepared.plan,
            .lock = prepared.lock.lock,
            .git = builds ? project::read_git_state(
                                services.processes, services.environment, prepared.project.root())
                          : project::GitState{}};
        const build::BuildEvents events{
            .on_stage = [&](std::string_view text) { progress.stage(text); },
            .on_progress =
                [&](const build::NinjaProgress& p) {
                    progress.count(p.finished, p.total, p.what);
                }};
        if (options_.check_reproducible) {
            return reproduce(input, options, events, progress, services);
        }
        Result<build::BuildReport> report =
            build::run(input, prepared.work, options, build_services(services), events);
        progress.clear();
        if (!report) {
            render_error(report.error(), services.terminal);
            return exit_code_for(report.error(), ExitCode::toolchain);
        }
        render(*report, services);
        return report->ok() ? ExitCode::ok : ExitCode::failed;
    }

    ExitCode reproduce(const build::BuildInput& input,
                       const build::BuildOptions& options,
                       const build::BuildEvents& events,
                       ProgressLine& progress,
                       const Services& services) const {
        const std::string base = sys::lookup(services.environment, "TMPDIR").value_or("/tmp");
        const sys::Path scratch =
            services.current_directory / base / ("kernel-builder-twice-" + store::unique_name());
        const Result<build::ReproduceReport> report =
            build::reproduce(input, options, build_services(services), events, scratch);
        progress.clear();
        if (!report) {
            render_error(report.error(), services.terminal);
            return exit_code_for(report.error(), ExitCode::toolchain);
        }
        render(*report, services);
        return report->equal() ? ExitCode::ok : ExitCode::failed;
    }

    void render(const build::ReproduceReport& report, const Services& services) const {
        if (options_.json) {
            services.terminal.out(document::write_json(json_of(report)));
            return;
        }
        if (!report.builds.back().ok()) {
            render(report.builds.back(), services);
            return;
        }
        if (report.equal()) {
            services.terminal.out(
                fmt::format("{}: two builds gave the same bytes\n", report.variant));
            return;
        }
        std::string text = fmt::format("{}: two builds differ\n", report.variant);
        for (const build::FileDifference& d : report.differences) {
            const std::string where =
                d.section.empty() ? std::string{} : fmt::format(" in section '{}'", d.section);
            text += d.what == "changed"
                        ? fmt::format("  '{}' differs{} from byte {}\n", d.file, where, d.offset)
                        : fmt::format("  '{}' is {} build\n", d.file, d.what);
        }
        services.terminal.out(text);
        services.terminal.err(fmt::format("note: both are kept: '{}' and '{}'\n",
                                          report.kept.front().string(),
                                          report.kept.back().string()));
    }

    static bool check_level(sandbox::Level level, const Services& services) {
        const sandbox::Probe probe =
            sandbox::probe(level, services.fs, services.processes, services.environment);
        if (probe.is_available) {
            return true;
        }
        services.terminal.err(fmt::format("error: sandbox level '{}' is not available: {}\n",
                                          sandbox::to_text(level),
                                          probe.reason));
        std::vector<sandbox::Probe> all;
        for (const sandbox::Level other : sandbox::kLevels) {
            all.push_back(
                other == level
                    ? probe
                    : sandbox::probe(other, services.fs, services.processes, services.environment));
        }
        services.terminal.err(sandbox::describe(all) +
                              "note: --sandbox LEVEL asks for a weaker one by name; such packages "
                              "are marked and not uploaded without a flag\n");
        return false;
    }

    void render(const build::BuildReport& report, const Services& services) const {
        for (const build::StepWarning& warning : report.warnings) {
            services.terminal.err(fmt::format(
                "\nwarning: {}\n{}", escape_control(warning.what), escape_lines(warning.text)));
        }
        for (const build::StepFailure& failure : report.failures) {
            services.terminal.err(fmt::format("\nfailed: {} (for {})\n{}",
                                              failure.what,
                                              join(failure.variants, ", "),
                                              escape_lines(failure.text)));
        }
        std::vector<std::vector<std::string>> rows;
        for (const build::VariantResult& v : report.variants) {
            rows.push_back({v.variant,
                            std::string{build::to_text(v.outcome)},
                            v.failures.empty() ? "" : v.failures.front()});
        }
        for (const std::string& name : report.fresh) {
            rows.push_back({name, "up to date", ""});
        }
        if (options_.json) {
            services.terminal.out(document::write_json(json_of(report)));
            return;
        }
        services.terminal.out(render_table(rows));
        for (const build::VariantResult& v : report.variants) {
            for (std::size_t i = 1; i < v.failures.size(); ++i) {
                services.terminal.err(fmt::format("{}: {}\n", v.variant, v.failures[i]));
            }
        }
        const auto built = static_cast<std::size_t>(std::ranges::count(
            report.variants, build::Outcome::built, &build::VariantResult::outcome));
        const std::size_t failed = report.variants.size() - built;
        services.terminal.err(fmt::format("{} built, {}{} up to date, {} compiled of {}, {}\n",
                                          built,
                                          failed == 0 ? "" : fmt::format("{} failed, ", failed),
                                          report.fresh.size(),
                                          counted(report.compiled.size(), "unit"),
                                          report.objects_wanted,
                                          human_seconds(report.seconds)));
    }

    BuildCommandOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_build() {
    return std::make_unique<BuildCommand>();
}

} // namespace kb::cli
