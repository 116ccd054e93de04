// SPDX-License-Identifier: Apache-2.0
#include "backend/rules.hpp"
#include "base/text.hpp"
#include "cli/commands/table.hpp"
#include "cli/open_project.hpp"
#include "cli/render.hpp"
#include "cli/selection_options.hpp"
#include "document/json.hpp"
#include "plan/plan.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

using document::Node;

constexpr std::string_view kDescription =
    R"(Lists the variants of the kernel in DIR that can be built, one a line in the order in which they
are built, with the architectures of their device code. Reads build.toml and the sources; needs no
lock, no toolchain and no network, and writes nothing.

Versions are comma lists of [op]version or version.*, op one of >= <= > < == !=; '13' means 13.*.

Exit codes: 0 listed, 2 usage, 3 build.toml.

Examples:
  kernel-builder list-variants
  kernel-builder list-variants --torch '>=2.13' --cuda '13.*' --explain
  kernel-builder list-variants --format github >> matrix.json)";

struct ListVariantsOptions {
    std::string directory = ".";
    SelectionOptions selection{};
    std::string format = "table";
    bool json = false;
    bool explain = false;
};

Node version_node(const Version& version) {
    return version.empty() ? Node{} : Node{version.to_text()};
}

Node section_node(const plan::SectionArchs& section) {
    Node refused = Node::array();
    for (const auto& item : section.choice.refused) {
        refused.push(Node::table({{"arch", item.arch}, {"reason", item.reason}}));
    }
    return Node::table({{"section", section.section},
                        {"skipped", section.skipped},
                        {"archs", Node::strings(section.choice.kept)},
                        {"refused", std::move(refused)}});
}

/// What is known of a variant without a plan; `planned` adds its compilations.
Node variant_node(const plan::ChosenVariant& chosen, const plan::PlannedVariant* planned) {
    const backend::Variant& what = chosen.name.variant();
    Node sections = Node::array();
    for (const plan::SectionArchs& section : chosen.sections) {
        sections.push(section_node(section));
    }
    const bool noarch = what.framework == backend::FrameworkId::torch_noarch;
    Node needs;
    Node units;
    if (planned != nullptr) {
        needs = Node::array();
        for (const plan::Requirement& requirement : planned->requirements()) {
            needs.push(requirement.id());
        }
        units = Node{planned->tus.size()};
    }
    return Node::table({{"name", chosen.name.text()},
                        {"framework", to_text(what.framework)},
                        {"framework-version", version_node(what.framework_version)},
                        {"torch", version_node(chosen.torch)},
                        {"backend", to_text(what.backend)},
                        {"backend-version", version_node(what.backend_version)},
                        {"platform", noarch ? Node{} : Node{to_text(what.platform)}},
                        {"archs", Node::strings(chosen.archs())},
                        {"sections", std::move(sections)},
                        {"units", std::move(units)},
                        {"requirements", std::move(needs)}});
}

Node counts_node(const std::optional<plan::Plan>& plan) {
    if (!plan) {
        return {};
    }
    const plan::PlanCounts counts = plan::count(*plan);
    return Node::table({{"variants", counts.variants},
                        {"units", counts.tus_distinct},
                        {"units-without-sharing", counts.tus_in_all},
                        {"arch-compiles", counts.arch_compiles},
                        {"links", counts.links}});
}

Node json_of(const config::Config& config,
             const plan::VariantChoice& choice,
             const std::optional<plan::Plan>& plan) {
    Node variants = Node::array();
    for (const plan::ChosenVariant& chosen : choice.chosen) {
        variants.push(variant_node(chosen, plan ? plan->find(chosen.name) : nullptr));
    }
    Node refused = Node::array();
    for (const plan::RefusedVariant& item : choice.refused) {
        refused.push(
            Node::table({{"name", item.what}, {"rule", item.rule}, {"reason", item.reason}}));
    }
    return Node::table({{"schema", "kernel-builder/variants/1"},
                        {"kernel", config.name.text()},
                        {"variants", std::move(variants)},
                        {"refused", std::move(refused)},
                        {"counts", counts_node(plan)}});
}

/// One line, as `matrix: ${{ fromJSON(...) }}` takes it; every key would be an axis, so there is no
/// schema.
std::string github_matrix(const plan::VariantChoice& choice) {
    Node include = Node::array();
    for (const plan::ChosenVariant& chosen : choice.chosen) {
        const backend::Variant& what = chosen.name.variant();
        const std::string& name = chosen.name.text();
        include.push(
            Node::table({{"variant", name},
                         {"backend", to_text(what.backend)},
                         {"platform", to_text(what.platform)},
                         {"command", fmt::format("kernel-builder build --variant {}", name)}}));
    }
    return document::write_json(Node::table({{"include", std::move(include)}}),
                                {.indent = 0, .final_newline = true});
}

std::string names_of(const plan::VariantChoice& choice) {
    std::string text;
    for (const plan::ChosenVariant& chosen : choice.chosen) {
        text += chosen.name.text() + "\n";
    }
    return text;
}

std::string table_of(const plan::VariantChoice& choice) {
    std::vector<std::vector<std::string>> rows;
    for (const plan::ChosenVariant& chosen : choice.chosen) {
        rows.push_back({chosen.name.text(), join(chosen.archs(), " ")});
    }
    return render_table(rows);
}

std::string explanation_of(const plan::VariantChoice& choice) {
    std::vector<std::vector<std::string>> rows;
    for (const plan::ChosenVariant& chosen : choice.chosen) {
        for (const plan::SectionArchs& section : chosen.sections) {
            const std::string what =
                fmt::format("{} [kernel.{}]", chosen.name.text(), section.section);
            if (section.skipped) {
                rows.push_back({what, "cuda-minver", "the toolkit is older: section skipped"});
            }
            for (const auto& refused : section.choice.refused) {
                rows.push_back({what, refused.arch, refused.reason});
            }
        }
    }
    for (const plan::RefusedVariant& refused : choice.refused) {
        rows.push_back({refused.what, refused.rule, refused.reason});
    }
    return rows.empty() ? std::string{} : "\nleft out:\n" + render_table(rows);
}

class ListVariants final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "list-variants"; }

    [[nodiscard]] std::string_view summary() const override {
        return "List the variants that can be built";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::project; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        std::vector<OptionRow> rows{{.name = "DIR",
                                     .value = "DIR",
                                     .help = "project directory",
                                     .target = &options_.directory},
                                    {.name = "--format",
                                     .value = "FORMAT",
                                     .help = "table, names, or github (a job matrix on one line)",
                                     .target = &options_.format},
                                    {.name = "--json",
                                     .help = "everything that is known, as JSON",
                                     .target = &options_.json},
                                    {.name = "--explain",
                                     .help = "also what is left out, with the rule and the reason",
                                     .target = &options_.explain}};
        const std::vector<OptionRow> selection = options_.selection.rows();
        rows.insert(rows.end(), selection.begin(), selection.end());
        return rows;
    }

    ExitCode run(const Services& services) override {
        if (options_.format != "table" && options_.format != "names" &&
            options_.format != "github") {
            services.terminal.err(
                fmt::format("error: '--format {}': expected table, names or github\n",
                            escape_control(options_.format)));
            return ExitCode::usage;
        }
        Diagnostics problems;
        const auto selection = resolve(options_.selection, problems);
        if (!selection) {
            render_diagnostics(problems, {}, services.terminal);
            return ExitCode::usage;
        }
        const auto project = open_project(options_.directory, Strict::no, services);
        if (!project) {
            return ExitCode::configuration;
        }
        const plan::VariantChoice choice =
            plan::select(project->config, plan::default_support_matrix(), *selection);
        if (choice.chosen.empty()) {
            services.terminal.err("note: no variant matches; '--explain' lists what was left out "
                                  "and why\n");
        }
        if (options_.json) {
            services.terminal.out(document::write_json(
                json_of(project->config, choice, make_plan(*project, *selection, services))));
        } else {
            print(choice, services.terminal);
        }
        return ExitCode::ok;
    }

private:
    void print(const plan::VariantChoice& choice, Terminal& terminal) const {
        if (options_.format == "github") {
            terminal.out(github_matrix(choice));
        } else {
            terminal.out(options_.format == "names" ? names_of(choice) : table_of(choice));
        }
        if (options_.explain) {
            // Beside a format that a program reads, people read the other stream.
            const std::string text = explanation_of(choice);
            options_.format == "table" ? terminal.out(text) : terminal.err(text);
        }
    }

    /// Counts and needs; nothing, and the reason on stderr, when the sources do not allow a plan.
    static std::optional<plan::Plan> make_plan(const project::Project& project,
                                               const plan::Selection& selection,
                                               const Services& services) {
        const auto snapshot = read_build_snapshot(project, services);
        if (!snapshot) {
            render_error(snapshot.error(), services.terminal);
            return std::nullopt;
        }
        Diagnostics diagnostics;
        const plan::Lock no_lock;
        auto plan = plan::make({.config = project.config,
                                .matrix = plan::default_support_matrix(),
                                .snapshot = *snapshot,
                                .lock = no_lock,
                                .selection = selection,
                                .facts = key_facts(project)},
                               diagnostics);
        render_for(project, diagnostics, services);
        return plan;
    }

    ListVariantsOptions options_;
};

} // namespace

std::unique_ptr<Command> make_list_variants() {
    return std::make_unique<ListVariants>();
}

} // namespace kb::cli
