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
    R"(Pins everything that the chosen variants need - wheels, debs, generated stubs - by file name,
size and sha256 in build.lock, never by a url or a host. What the project's lock or the program's
own default lock pins already is kept; --update looks up the packages of the compiler anew. Prints
what changed. Without a build.lock the default lock is used, so most projects need this command
only to hold still what the program would update.

Exit codes: 0 written or unchanged, 1 with --check when it would change, 3 build.toml or build.lock
is wrong, 4 something that is needed is not served.

Examples:
  kernel-builder lock
  kernel-builder lock --check
  kernel-builder lock --update --cuda 13.0)";

struct LockOptions {
    std::string directory = ".";
    SelectionOptions selection{};
    SettingFlags settings{};
    std::optional<std::string> from{};
    bool update = false;
    bool check = false;
    bool dry_run = false;
    bool json = false;
};

/// "+ id sha256" and "- id sha256", sorted.
std::vector<std::string> difference(const plan::Lock& before, const plan::Lock& after) {
    const auto lines = [](const plan::Lock& from, const plan::Lock& without, char sign) {
        std::vector<std::string> out;
        for (const plan::LockEntry& entry : from.entries) {
            if (std::ranges::find(without.entries, entry) == without.entries.end()) {
                out.push_back(fmt::format(
                    "{} {} {} sha256 {}", sign, entry.id, entry.file, entry.sha256.hex()));
            }
        }
        return out;
    };
    std::vector<std::string> out = lines(before, after, '-');
    for (std::string& line : lines(after, before, '+')) {
        out.push_back(std::move(line));
    }
    return out;
}

class LockCommand final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "lock"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Pin the toolchains of this project in build.lock";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::machine; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        std::vector<OptionRow> rows{
            {"DIR", "", "project directory", &options_.directory},
            {"--update", "", "look up newer packages of the compiler", &options_.update},
            {"--check", "", "only say whether it would change", &options_.check},
            {"--dry-run", "", "print the changes, write nothing", &options_.dry_run},
            {"--from", "DIR", "look for files here before the network", &options_.from},
            {"--offline", "", "open no connection", &options_.settings.offline},
            {"--json", "", "the result as JSON", &options_.json}};
        const std::vector<OptionRow> selection = options_.selection.rows();
        rows.insert(rows.end(), selection.begin(), selection.end());
        return rows;
    }

    ExitCode run(const Services& services) override {
        Diagnostics diagnostics;
        const auto selection = resolve(options_.selection, diagnostics);
        render_diagnostics(diagnostics, {}, services.terminal);
        const auto settings = settings_for(options_.settings, services);
        if (!selection || diagnostics.has_errors() || !settings) {
            return ExitCode::usage;
        }
        const auto project = open_project(options_.directory, Strict::no, services);
        if (!project) {
            return ExitCode::configuration;
        }
        const auto base = choose_lock(*project, services);
        if (!base) {
            return ExitCode::configuration;
        }
        auto lock = make_lock(*project, *base, *selection, *settings, services);
        if (!lock) {
            render_error(lock.error(), services.terminal);
            return exit_code_for(lock.error(), ExitCode::toolchain);
        }
        const plan::Lock before = base->origin == "project" ? base->lock : plan::Lock{};
        return write(*project, before, *lock, services);
    }

private:
    Result<plan::Lock> make_lock(const project::Project& project,
                                 const LockChoice& base,
                                 const plan::Selection& selection,
                                 const Settings& settings,
                                 const Services& services) {
        std::vector<backend::Platform> platforms = selection.platforms;
        if (platforms.empty()) {
            platforms = {backend::Platform{}};
        }
        plan::Lock out;
        for (const backend::Platform& platform : platforms) {
            plan::Selection own = selection;
            own.platforms = {platform};
            KB_TRY(const plan::Lock lock,
                   lock_for_platform(project, base, own, settings, services));
            out.entries.insert(out.entries.end(), lock.entries.begin(), lock.entries.end());
        }
        std::ranges::sort(out.entries);
        out.entries.erase(std::unique(out.entries.begin(), out.entries.end()), out.entries.end());
        return out;
    }

    /// Of a selection of one platform.
    Result<plan::Lock> lock_for_platform(const project::Project& project,
                                         const LockChoice& base,
                                         const plan::Selection& selection,
                                         const Settings& settings,
                                         const Services& services) {
        const backend::Platform& platform = selection.platforms.front();
        const auto requirements =
            plan::requirements(project.config, plan::default_support_matrix(), selection);
        // What the project does not pin yet comes from the default lock.
        plan::Lock previous = base.lock;
        for (const backend::Requirement& requirement : requirements) {
            if (!plan::entries_for(previous, requirement, platform).empty()) {
                continue;
            }
            for (const plan::LockEntry* entry :
                 plan::entries_for(toolchain::default_lock(), requirement, platform)) {
                previous.entries.push_back(*entry);
            }
        }
        ProgressLine progress{services.terminal, services.clock};
        toolchain::FetchOptions options = fetch_options(settings);
        options.on_progress = [&](std::string_view text) {
            progress.stage(text);
        };
        if (options_.from) {
            options.from = services.current_directory / *options_.from;
        }
        auto lock = toolchain::resolve(requirements,
                                       platform,
                                       previous,
                                       options_.update ? toolchain::Update::newest
                                                       : toolchain::Update::keep,
                                       machine_of(services),
                                       options);
        progress.clear();
        return lock;
    }

    ExitCode write(const project::Project& project,
                   const plan::Lock& before,
                   const plan::Lock& after,
                   const Services& services) const {
        const std::vector<std::string> changes = difference(before, after);
        if (options_.json) {
            services.terminal.out(document::write_json(
                document::Node::table({{"schema", "kernel-builder/lock-report/1"},
                                       {"entries", after.entries.size()},
                                       {"changed", !changes.empty()},
                                       {"changes", document::Node::strings(changes)}})));
        } else {
            for (const std::string& line : changes) {
                services.terminal.out(line + "\n");
            }
        }
        const auto say = [&](std::string_view text) {
            services.terminal.err(fmt::format(
                "build.lock: {} ({})\n", text, counted(after.entries.size(), "pinned file")));
        };
        if (changes.empty()) {
            say("unchanged");
            return ExitCode::ok;
        }
        if (options_.check || options_.dry_run) {
            say("would change");
            return options_.check ? ExitCode::failed : ExitCode::ok;
        }
        const auto written = services.fs.write_atomic(
            project.root() / "build.lock", plan::write_lock(after), FileMode::regular);
        if (!written) {
            render_error(written.error(), services.terminal);
            return ExitCode::configuration;
        }
        say("written");
        return ExitCode::ok;
    }

    LockOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_lock() {
    return std::make_unique<LockCommand>();
}

} // namespace kb::cli
