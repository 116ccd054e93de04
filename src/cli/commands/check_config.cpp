// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/table.hpp"
#include "cli/render.hpp"
#include "document/json.hpp"
#include "plan/plan.hpp"
#include "project/project.hpp"

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Reads build.toml (editions 1 to 5) and reports everything that is wrong with it in one pass: each
problem with its line, what was expected, and a suggestion. What the format allows but nobody means
is a warning: missing sources, a backend without a section, bounds the wrong way round,
architectures that a toolkit leaves out. Says nothing about a sound file. Writes nothing.

Exit codes: 0 build.toml can be used (warnings included), 3 it cannot, or --strict and a warning.

Examples:
  kernel-builder check-config
  kernel-builder check-config my-kernel --strict
  kernel-builder check-config --json)";

struct CheckConfigOptions {
    std::string directory = ".";
    bool strict = false;
    bool json = false;
};

struct CheckConfigReport {
    std::string file{};
    /// Nothing when build.toml cannot be used at all.
    std::optional<config::Config> config{};
    Diagnostics diagnostics{};
};

/// What toolkits make of the architectures, over the whole matrix. "None left" is an error of a
/// plan; here, where nothing is built, it is a finding like the others.
void add_architectures(CheckConfigReport& report) {
    const plan::VariantChoice choice =
        plan::select(*report.config, plan::default_support_matrix(), {.bundle_only = false});
    Diagnostics found;
    plan::report_architectures(*report.config, choice, found);
    for (Diagnostic item : found.items()) {
        item.severity = Severity::warning;
        report.diagnostics.report(std::move(item));
    }
}

document::Node json_of(const CheckConfigReport& report) {
    document::Node edition;
    document::Node name;
    document::Node backends = document::Node::array();
    if (report.config) {
        edition = static_cast<int>(report.config->edition);
        name = report.config->name.text();
        for (const backend::BackendId id : config::distinct_backends(*report.config)) {
            backends.push(backend::to_text(id));
        }
    }
    return document::Node::table({{"schema", "kernel-builder/check-config/1"},
                                  {"file", report.file},
                                  {"valid", !report.diagnostics.has_errors()},
                                  {"edition", std::move(edition)},
                                  {"name", std::move(name)},
                                  {"backends", std::move(backends)},
                                  {"diagnostics", to_json(report.diagnostics)}});
}

class CheckConfig final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "check-config"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Check build.toml and report every problem with its place";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::project; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"DIR", "", "directory that holds build.toml", &options_.directory},
                {"--strict", "", "warnings are errors", &options_.strict},
                {"--json", "", "the report as JSON", &options_.json}};
    }

    ExitCode run(const Services& services) override {
        Result<project::ProjectText> text =
            project::read_project(services.fs, services.current_directory, options_.directory);
        if (!text) {
            render_error(text.error(), services.terminal);
            return ExitCode::configuration;
        }
        const std::map<std::string, std::string> sources{{text->config_name, text->config_text}};
        CheckConfigReport report{.file = text->config_name};
        auto project = project::judge_project(
            std::move(text).value(), project::Validate::yes, report.diagnostics);
        if (project) {
            report.config = std::move(project->config);
            add_architectures(report);
        }
        if (options_.strict) {
            report.diagnostics.promote_warnings();
        }
        if (options_.json) {
            services.terminal.out(document::write_json(json_of(report)));
        } else {
            render_diagnostics(report.diagnostics, sources, services.terminal);
        }
        return report.diagnostics.has_errors() ? ExitCode::configuration : ExitCode::ok;
    }

private:
    CheckConfigOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_check_config() {
    return std::make_unique<CheckConfig>();
}

} // namespace kb::cli
