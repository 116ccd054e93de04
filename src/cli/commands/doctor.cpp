// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/commands/diagnose.hpp"
#include "cli/commands/table.hpp"
#include "cli/open_store.hpp"
#include "cli/render.hpp"
#include "document/json.hpp"
#include "plan/support_matrix.hpp"
#include "sandbox/level.hpp"
#include "sys/environment.hpp"
#include "sys/host_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Says what this machine can build, what is missing, and the command that gets it: programs,
sandbox levels, limits, the toolchain store, and for each row of the support matrix whether its
toolchain is in the store, can be fetched, or cannot be had. Opens no connection and changes
nothing.

With WHAT (a library, a variant or a directory of variants) it says instead why that does not load
here: one sentence for each cause (platform, Python, torch, CUDA, driver, device, libraries and
their versions, symbols), and the next step. Python and torch are asked in a child: --python names
them.

Exit codes: 0 this machine can build (with WHAT: it should load), 1 WHAT does not load, 2 usage,
4 something that every build needs is missing.

Examples:
  kernel-builder doctor
  kernel-builder doctor build --python ~/venv/bin/python
  kernel-builder doctor --json)";

enum class State : std::uint8_t { ok, note, missing };

/// One line of the answer.
struct Finding {
    std::string what{};
    State state = State::ok;
    std::string text{};
    std::string next{}; ///< The command or step that mends it.
};

std::string_view to_text(State state) {
    constexpr std::array<std::string_view, 3> kNames{"ok", "note", "missing"};
    return kNames[static_cast<std::size_t>(state)];
}

struct Program {
    std::string_view name{};
    std::string_view purpose{};
    std::string_view package{};
    State otherwise = State::missing;
};

/// Compilers, Ninja and ccache come from the store: only what fetches and confines is the
/// machine's.
constexpr std::array<Program, 4> kPrograms{
    Program{"bwrap", "confines builds", "bubblewrap", State::missing},
    Program{"pip3", "fetches wheels (torch headers, CUDA)", "python3-pip", State::missing},
    Program{"apt-get", "fetches the pinned compiler", "apt", State::missing},
    Program{"git", "tells commit and dirty state for provenance", "git", State::note}};

std::vector<Finding> look_at_programs(const Services& services) {
    std::vector<Finding> out;
    const std::string path = sys::lookup(services.environment, "PATH").value_or("/usr/bin:/bin");
    for (const Program& program : kPrograms) {
        const auto found = sys::find_program(program.name, path);
        Finding finding{.what = fmt::format("program {}", program.name)};
        if (found) {
            finding.text = found->string();
        } else {
            finding.state = program.otherwise;
            finding.text = fmt::format("not installed; it {}", program.purpose);
            finding.next = fmt::format("apt-get install {}", program.package);
        }
        out.push_back(std::move(finding));
    }
    return out;
}

std::vector<Finding> look_at_sandbox(const Services& services) {
    std::vector<Finding> out;
    for (const sandbox::Level level : sandbox::kLevels) {
        const sandbox::Probe probe =
            sandbox::probe(level, services.fs, services.processes, services.environment);
        Finding finding{.what = fmt::format("sandbox {}", sandbox::to_text(level)),
                        .text = "available"};
        if (!probe.is_available) {
            finding.state = level == sandbox::Level::namespaces ? State::missing : State::note;
            finding.text = probe.reason;
            finding.next = level == sandbox::Level::namespaces
                               ? "--sandbox asks for a weaker level by name; such packages are "
                                 "marked"
                               : "";
        }
        out.push_back(std::move(finding));
    }
    return out;
}

Finding look_at_limits(const Services& services) {
    const sys::HostLimits limits = sys::read_host_limits(services.fs);
    Finding out{.what = "limits",
                .text = fmt::format("{}, {} of memory",
                                    counted(limits.cpus, "CPU"),
                                    human_bytes(limits.memory_bytes))};
    if (limits.memory_bytes < 2'000'000'000) {
        out.state = State::note;
        out.next = "a source that includes all of torch needs about 1.4 GB to compile";
    }
    return out;
}

Finding look_at_gpu(const Services& services) {
    Finding out{.what = "NVIDIA device", .text = "present"};
    if (!sys::exists(services.fs, "/dev/nvidiactl")) {
        out.state = State::note;
        out.text = "none; CUDA kernels can be built here, not run";
    }
    return out;
}

using Requirements = std::vector<backend::Requirement>;

void append(Requirements& to, const Requirements& from) {
    to.insert(to.end(), from.begin(), from.end());
}

/// Whether the toolchain of one toolkit with these torch versions can be had.
Finding look_at_toolkit(const plan::ToolkitRow& toolkit,
                        const Requirements& shared,
                        store::Store& store,
                        const backend::Platform& platform) {
    Finding out{.what = fmt::format("builds for {}", toolkit.archs.name), .state = State::note};
    if (!toolkit.unavailable.empty()) {
        out.text = toolkit.unavailable;
        return out;
    }
    const plan::SupportMatrix& matrix = plan::default_support_matrix();
    std::vector<std::string> ready;
    std::vector<std::string> absent;
    std::uint64_t bytes = 0;
    for (const plan::SupportRow& row : matrix.rows) {
        const plan::FrameworkRow* torch = plan::find_torch(matrix, row.torch);
        if (row.backend != toolkit.backend || row.backend_version != toolkit.version ||
            torch == nullptr || !torch->unavailable.empty() ||
            std::ranges::find(row.platforms, platform) == row.platforms.end()) {
            continue;
        }
        Requirements wanted = shared;
        append(wanted, toolkit.requirements);
        append(wanted, torch->requirements);
        const auto entries = toolchain::select_entries(wanted, toolchain::default_lock(), platform);
        const auto missing = entries ? toolchain::missing_entries(*entries, store)
                                     : Result<std::vector<plan::LockEntry>>{entries.error()};
        if (!missing) {
            out.text = missing.error().to_text();
            return out;
        }
        for (const plan::LockEntry& entry : *missing) {
            bytes += entry.size;
        }
        (missing->empty() ? ready : absent).push_back(row.torch.to_text());
    }
    if (ready.empty() && absent.empty()) {
        out.text = "no torch of the support matrix on this platform";
        return out;
    }
    out.state = State::ok;
    out.text =
        ready.empty() ? std::string{} : fmt::format("torch {} in the store", join(ready, ", "));
    if (!absent.empty()) {
        out.text += fmt::format("{}torch {} to be fetched ({} at most)",
                                ready.empty() ? "" : "; ",
                                join(absent, ", "),
                                human_bytes(bytes));
        out.next = "'build' fetches what it needs, 'fetch' does it ahead";
    }
    return out;
}

std::vector<Finding> look_at_matrix(const Settings& settings, const Services& services) {
    auto store = store::Store::open(services.fs, services.clock, settings.store);
    Finding where{.what = "store", .text = settings.store.string()};
    if (!store) {
        where.state = State::missing;
        where.text = store.error().to_text();
        where.next = "--store DIR or KERNEL_BUILDER_STORE names another place";
        return {where};
    }
    std::vector<Finding> out{where};
    const backend::Platform platform{}; // the one that toolchains are pinned for
    const plan::SupportMatrix& matrix = plan::default_support_matrix();
    const plan::HostRow* host = plan::find_host(matrix, platform);
    Requirements shared = matrix.python;
    if (host != nullptr) {
        append(shared, host->requirements);
    }
    for (const plan::ToolkitRow& toolkit : matrix.toolkits) {
        out.push_back(look_at_toolkit(toolkit, shared, *store, platform));
    }
    return out;
}

class Doctor final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "doctor"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Say what this machine can build and what is missing";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::machine; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"WHAT", "", "a library, a variant or a directory of variants", &what_},
                {"--python", "PROGRAM", "Python that is to load WHAT", &python_},
                {"--store", "DIR", "toolchain store", &flags_.store},
                {"--json", "", "the result as JSON", &json_}};
    }

    ExitCode run(const Services& services) override {
        if (what_) {
            return diagnose({.what = *what_, .python = python_, .json = json_}, services);
        }
        const auto settings = settings_for(flags_, services);
        if (!settings) {
            return ExitCode::usage;
        }
        std::vector<Finding> findings = look_at_programs(services);
        for (std::vector<Finding>& more :
             std::array{look_at_sandbox(services),
                        std::vector{look_at_limits(services), look_at_gpu(services)},
                        look_at_matrix(*settings, services)}) {
            findings.insert(findings.end(), more.begin(), more.end());
        }
        render(findings, services.terminal);
        const bool can_build = std::ranges::none_of(
            findings, [](const Finding& finding) { return finding.state == State::missing; });
        return can_build ? ExitCode::ok : ExitCode::toolchain;
    }

private:
    void render(const std::vector<Finding>& findings, Terminal& terminal) const {
        document::Node items = document::Node::array();
        std::string text;
        for (const Finding& finding : findings) {
            items.push(document::Node::table({{"what", finding.what},
                                              {"state", to_text(finding.state)},
                                              {"text", finding.text},
                                              {"next", finding.next}}));
            text += fmt::format("{:<8}{}: {}\n",
                                to_text(finding.state),
                                finding.what,
                                escape_control(finding.text));
            if (!finding.next.empty()) {
                text += fmt::format("{:<8}  {}\n", "", finding.next);
            }
        }
        terminal.out(
            json_ ? document::write_json(document::Node::table(
                        {{"schema", "kernel-builder/doctor/1"}, {"findings", std::move(items)}}))
                  : text);
    }

    SettingFlags flags_{};
    std::optional<std::string> what_{};
    std::string python_ = "python3";
    bool json_ = false;
};

} // namespace

std::unique_ptr<Command> make_doctor() {
    return std::make_unique<Doctor>();
}

} // namespace kb::cli
