// SPDX-License-Identifier: Apache-2.0
#include "backend/rules.hpp"
#include "base/text.hpp"
#include "check/stable_sources.hpp"
#include "cli/commands/table.hpp"
#include "cli/open_project.hpp"
#include "cli/render.hpp"
#include "plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Says why a decision is as it is. WHAT is the name of a variant (chosen or left out, its
architectures, compilations, needs and build key), a source file (how it is compiled, and who shares
the object), an architecture (what each toolkit makes of it), a rule that '--explain' named, or 'stable-abi': the
lines that tie the sources to one torch version, with what the stable ABI has instead.
Writes nothing.

Exit codes: 0 explained, 2 nothing is called so, 3 build.toml.

Examples:
  kernel-builder explain torch-stable-abi211-cu130-x86_64-linux
  kernel-builder explain norm_cuda/norm.cu
  kernel-builder explain 10.3a
  kernel-builder explain not-in-bundle
  kernel-builder explain stable-abi)";

constexpr std::uint64_t kMaxSource = 16UL << 20U;

struct ExplainOptions {
    std::string what{};
    std::string directory = ".";
};

/// Everything that there is to ask about.
struct World {
    project::Project project{};
    plan::VariantChoice choice{};
    std::optional<plan::Plan> plan{};
};

std::string explain_sections(const std::vector<plan::SectionArchs>& sections) {
    std::string text;
    for (const plan::SectionArchs& section : sections) {
        text += fmt::format("  section '{}': {}\n",
                            section.section,
                            section.skipped ? "skipped, the toolkit is older than its cuda-minver"
                            : section.choice.kept.empty() ? "no architectures"
                                                          : join(section.choice.kept, " "));
        for (const auto& refused : section.choice.refused) {
            text += fmt::format("    without {}: {}\n", refused.arch, refused.reason);
        }
    }
    return text;
}

std::string explain_planned(const plan::Plan& plan, const plan::PlannedVariant& variant) {
    std::string text = fmt::format("  ops id: {}\n", variant.ops_id);
    for (const std::string_view id : variant.tus) {
        const plan::Tu& tu = plan.tu(id);
        const auto sharing = std::ranges::count_if(plan.variants, [&](const auto& other) {
            return std::ranges::find(other.tus, id) != other.tus.end();
        });
        text += fmt::format("  compiles {} ({}, {})\n",
                            tu.source.text(),
                            tu.torch.empty() ? std::string{"without torch"}
                                             : "torch " + tu.torch.to_text(),
                            counted(static_cast<std::size_t>(sharing), "variant"));
    }
    for (const plan::Requirement& requirement : variant.requirements()) {
        const bool missing = std::ranges::find(plan.missing, requirement) != plan.missing.end();
        text += fmt::format("  needs {}{}\n", requirement.id(), missing ? " (not locked)" : "");
    }
    return text + fmt::format("  build key: {}\n", variant.key.id());
}

std::optional<std::string> explain_variant(const World& world, const std::string& name) {
    std::string text;
    for (const plan::ChosenVariant& chosen : world.choice.chosen) {
        if (chosen.name.text() != name) {
            continue;
        }
        text += fmt::format("{}: chosen", name);
        if (chosen.name.variant().framework == backend::FrameworkId::torch_stable_abi) {
            text += fmt::format(", compiled with the headers of torch {}, the lowest of the bundle "
                                "that has the stable ABI {}",
                                chosen.torch.to_text(),
                                chosen.name.variant().framework_version.to_text());
        }
        text += "\n" + explain_sections(chosen.sections);
        const auto* planned = world.plan ? world.plan->find(chosen.name) : nullptr;
        if (planned != nullptr) {
            text += explain_planned(*world.plan, *planned);
        }
    }
    for (const plan::RefusedVariant& refused : world.choice.refused) {
        if (refused.what == name) {
            text += fmt::format("{}: left out by '{}': {}\n", name, refused.rule, refused.reason);
        }
    }
    if (text.empty() && backend::VariantName::parse(name)) {
        text = fmt::format("{}: no row of the support matrix makes it for this kernel\n", name);
    }
    return text.empty() ? std::nullopt : std::optional{text};
}

std::optional<std::string> explain_source(const World& world, const std::string& path) {
    if (!world.plan) {
        return std::nullopt;
    }
    std::string text;
    for (const plan::Tu& tu : world.plan->tus) {
        if (tu.source.text() != path) {
            continue;
        }
        text += fmt::format("{}: {}\n",
                            path,
                            tu.torch.empty()
                                ? "reaches no torch header, so all torch versions share the object"
                                : "includes torch " + tu.torch.to_text());
        for (const plan::PlannedVariant& variant : world.plan->variants) {
            if (std::ranges::find(variant.tus, tu.id) != variant.tus.end()) {
                text += fmt::format("  for {}\n", variant.name.text());
            }
        }
        for (const RelPath& header : tu.headers) {
            text += fmt::format("  reaches {}\n", header.text());
        }
        text += fmt::format("  {}\n", tu.command.joined(" "));
    }
    for (const plan::Tu& tu : world.plan->tus) {
        if (std::ranges::any_of(tu.headers,
                                [&](const RelPath& header) { return header.text() == path; })) {
            text += fmt::format("{}: reached by {}\n", path, tu.source.text());
        }
    }
    return text.empty() ? std::nullopt : std::optional{text};
}

std::optional<std::string> explain_arch(const std::string& arch) {
    std::string text;
    for (const backend::BackendRules& rules : backend::all_rules()) {
        if (rules.archs_key.empty() || backend::check_arch(rules.id, arch)) {
            continue;
        }
        for (const plan::ToolkitRow& toolkit : plan::default_support_matrix().toolkits) {
            if (toolkit.backend != rules.id) {
                continue;
            }
            const std::vector<std::string> asked{arch};
            const backend::ArchChoice choice = rules.choose_archs(asked, toolkit.archs);
            text += fmt::format("{} on {}: {}\n",
                                arch,
                                toolkit.archs.name,
                                choice.refused.empty() ? "built" : choice.refused.front().reason);
        }
    }
    return text.empty() ? std::nullopt : std::optional{text};
}

std::optional<std::string> explain_rule(const std::string& word) {
    for (const plan::SelectionRule& rule : plan::selection_rules()) {
        if (rule.name == word) {
            return fmt::format("{}: the row gives no variant, because {}\n", word, rule.meaning);
        }
    }
    return std::nullopt;
}

std::string explain_use(const std::string& path, const check::UnstableUse& use) {
    const bool header = use.kind == check::UnstableUse::Kind::header;
    std::string text = fmt::format(
        "  {}:{}: {} '{}'", path, use.line, header ? "includes" : "uses", escape_control(use.what));
    return text +
           (use.replacement.empty() ? "\n" : fmt::format("; instead: {}\n", use.replacement));
}

/// Nothing when a source cannot be read, which is printed.
std::optional<std::string> explain_stable_abi(const std::string& directory,
                                              const Services& services) {
    const auto project = open_project(directory, Strict::no, services);
    const auto snapshot = project ? project::read_snapshot(services.fs, *project)
                                  : Result<plan::SourceSnapshot>{Error{}};
    if (!project) {
        return std::nullopt;
    }
    if (!snapshot) {
        render_error(snapshot.error(), services.terminal);
        return std::nullopt;
    }
    std::string lines;
    std::size_t count = 0;
    for (const plan::SourceFile& file : snapshot->files) {
        const auto text = services.fs.read_file(project->root() / file.path.text(), kMaxSource);
        if (!text) {
            render_error(text.error(), services.terminal);
            return std::nullopt;
        }
        if (file.path.extension() == ".py") {
            continue;
        }
        for (const check::UnstableUse& use : check::find_unstable_uses(*text)) {
            lines += explain_use(file.path.text(), use);
            ++count;
        }
    }
    return count == 0
               ? std::string{"the sources name nothing of torch outside the stable "
                             "ABI; 'check-abi' proves it of the binary\n"}
               : fmt::format("{} of the sources to change\n{}", counted(count, "line"), lines);
}

class Explain final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "explain"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Say why a variant, a source or an architecture is treated as it is";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::project; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{.name = "WHAT",
                 .value = "WHAT",
                 .help = "a variant, a source file, an architecture or a rule",
                 .target = &options_.what,
                 .required = true},
                {.name = "DIR",
                 .value = "DIR",
                 .help = "project directory",
                 .target = &options_.directory}};
    }

    ExitCode run(const Services& services) override {
        // A rule as well; where there is a project its sources are what the question is about.
        const sys::Path config = services.current_directory / options_.directory / "build.toml";
        if (options_.what == "stable-abi" && sys::exists(services.fs, config)) {
            const auto lines = explain_stable_abi(options_.directory, services);
            if (lines) {
                services.terminal.out(explain_rule(options_.what).value_or("") + *lines);
            }
            return lines ? ExitCode::ok : ExitCode::configuration;
        }
        // These need no project.
        for (const auto& text : {explain_rule(options_.what), explain_arch(options_.what)}) {
            if (text) {
                services.terminal.out(*text);
                return ExitCode::ok;
            }
        }
        const auto world = open_world(services);
        if (!world) {
            return ExitCode::configuration;
        }
        auto text = explain_variant(*world, options_.what);
        if (!text) {
            text = explain_source(*world, options_.what);
        }
        if (!text) {
            refuse(*world, services.terminal);
            return ExitCode::usage;
        }
        services.terminal.out(*text);
        return ExitCode::ok;
    }

private:
    std::optional<World> open_world(const Services& services) {
        auto project = open_project(options_.directory, Strict::no, services);
        if (!project) {
            return std::nullopt;
        }
        World world{.project = std::move(*project)};
        plan::Selection selection;
        world.choice =
            plan::select(world.project.config, plan::default_support_matrix(), selection);
        const auto lock = choose_lock(world.project, services);
        const auto snapshot = read_build_snapshot(world.project, services);
        if (!lock || !snapshot) {
            return world; // said already, or there is nothing to compile
        }
        Diagnostics diagnostics;
        world.plan = plan::make({.config = world.project.config,
                                 .matrix = plan::default_support_matrix(),
                                 .snapshot = *snapshot,
                                 .lock = lock->lock,
                                 .selection = selection,
                                 .tool_version = KB_VERSION,
                                 .lock_origin = lock->origin,
                                 .facts = key_facts(world.project)},
                                diagnostics);
        if (diagnostics.has_errors()) {
            render_for(world.project, diagnostics, services);
        }
        return world;
    }

    void refuse(const World& world, Terminal& terminal) const {
        std::vector<std::string_view> known;
        for (const plan::ChosenVariant& chosen : world.choice.chosen) {
            known.push_back(chosen.name.text());
        }
        for (const plan::RefusedVariant& refused : world.choice.refused) {
            known.push_back(refused.what);
        }
        if (world.plan) {
            for (const plan::Tu& tu : world.plan->tus) {
                known.push_back(tu.source.text());
            }
        }
        terminal.err(fmt::format("error: '{}' is no variant, source, architecture or rule\n",
                                 escape_control(options_.what)));
        for (const std::string& note : suggestion_note(options_.what, known)) {
            terminal.err(fmt::format("note: {}\n", note));
        }
    }

    ExplainOptions options_;
};

} // namespace

std::unique_ptr<Command> make_explain() {
    return std::make_unique<Explain>();
}

} // namespace kb::cli
