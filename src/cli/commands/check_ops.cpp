// SPDX-License-Identifier: Apache-2.0
#include "backend/variant.hpp"
#include "base/text.hpp"
#include "build/import_check.hpp"
#include "cli/commands/table.hpp"
#include "cli/commands/variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Imports each finished variant of DIR in a fresh Python that has torch, and looks at the operators
that this registers: they are in the kernel's own namespace (op-namespace), have an implementation
for the variant's backend (op-implementation), and a fake one, so that torch.compile can trace them
(op-fake). A variant that this torch is not for says 'not checked'. Writes nothing.

Exit codes: 0 everything passed, 1 a finding or a refused look, 2 usage.

Examples:
  kernel-builder check-ops --python ~/venv/bin/python
  kernel-builder check-ops build/torch-stable-abi211-cpu-x86_64-linux --allow-missing op-fake)";

constexpr std::array<std::string_view, 3> kChecks{"op-namespace", "op-implementation", "op-fake"};

struct CheckOpsOptions {
    std::string directory = ".";
    std::string python = "python3";
    std::vector<std::string> allow_unchecked{};
    std::vector<std::string> allow_missing{};
    std::string format = "text";
    bool json = false;
};

check::Report refused(const std::string& variant, const std::string& reason) {
    return {.variant = variant,
            .verdicts = {{.check = "import", .reason = escape_control(reason)}}};
}

void add_ops(const backend::Variant& variant,
             const std::string& id,
             const build::ImportFacts& facts,
             check::Report& report) {
    report.findings = build::judge_ops(variant, id, facts);
    std::ranges::sort(report.findings);
    for (const std::string_view check : kChecks) {
        const bool failed = std::ranges::find(report.findings, check, &check::Finding::check) !=
                            report.findings.end();
        report.verdicts.push_back(
            {.check = std::string{check},
             .outcome = failed ? check::Outcome::failed : check::Outcome::passed,
             .reason = failed ? std::string{} : counted(facts.ops.size(), "operator")});
    }
    std::ranges::sort(report.verdicts);
}

class CheckOps final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "check-ops"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Check the operators that variants register, by importing them";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {
            {"DIR", "", "kernel, build or variant directory", &options_.directory},
            {"--python", "PROGRAM", "Python that has torch", &options_.python},
            {"--allow-missing", "ID", "a check whose findings are let be", &options_.allow_missing},
            {"--allow-unchecked",
             "ID",
             "a check that may say 'not checked'",
             &options_.allow_unchecked},
            {"--format", "FORMAT", "text, json, sarif or junit", &options_.format},
            {"--json", "", "the report as JSON, like --format json", &options_.json}};
    }

    ExitCode run(const Services& services) override {
        const auto format =
            parse_report_format(options_.json ? "json" : options_.format, services.terminal);
        if (!format || !know(options_.allow_missing, services.terminal) ||
            !may_be_unchecked(options_.allow_unchecked, services.terminal)) {
            return ExitCode::usage;
        }
        const auto found = find_variants(options_.directory, services);
        if (!found) {
            return found.code();
        }
        std::vector<check::Report> reports;
        for (const project::VariantDir& variant : found->variants) {
            reports.push_back(look(variant, services));
        }
        render_reports(reports, *format, services.terminal);
        return conclude(reports, services.terminal);
    }

private:
    static bool know(const std::vector<std::string>& ids, Terminal& terminal) {
        for (const std::string& id : ids) {
            if (std::ranges::find(kChecks, std::string_view{id}) == kChecks.end()) {
                terminal.err(fmt::format("error: no check of operators is called '{}'\n"
                                         "note: the checks are {}\n",
                                         escape_control(id),
                                         fmt::join(kChecks, ", ")));
                return false;
            }
        }
        return true;
    }

    static bool may_be_unchecked(std::vector<std::string> ids, Terminal& terminal) {
        std::erase(ids, "import"); // a refused look at the whole variant
        return know(ids, terminal);
    }

    [[nodiscard]] check::Report look(const project::VariantDir& variant,
                                     const Services& services) const {
        check::Report report = ask(variant, services);
        for (check::Verdict& verdict : report.verdicts) {
            verdict.allowed = verdict.outcome == check::Outcome::not_checked &&
                              std::ranges::find(options_.allow_unchecked, verdict.check) !=
                                  options_.allow_unchecked.end();
            if (std::ranges::find(options_.allow_missing, verdict.check) !=
                options_.allow_missing.end()) {
                verdict.outcome = check::Outcome::passed;
            }
        }
        for (check::Finding& finding : report.findings) {
            if (std::ranges::find(options_.allow_missing, finding.check) !=
                options_.allow_missing.end()) {
                finding.suppressed = "--allow-missing";
            }
        }
        return report;
    }

    [[nodiscard]] check::Report ask(const project::VariantDir& variant,
                                    const Services& services) const {
        const auto name = backend::VariantName::parse(variant.name);
        if (!name) {
            return refused(variant.name, "the directory is not named as a variant");
        }
        const auto metadata = project::read_metadata(services.fs, variant);
        if (!metadata) {
            return refused(variant.name, metadata.error().to_text());
        }
        const auto facts = build::import_variant(services.processes,
                                                 {.python = options_.python,
                                                  .directory = variant.path,
                                                  .id = metadata->id,
                                                  .environment = services.environment});
        if (!facts) {
            return refused(variant.name, facts.error().to_text());
        }
        if (const std::string gap = build::import_gap(name->variant(), *facts); !gap.empty()) {
            return refused(variant.name, gap);
        }
        check::Report report{.variant = variant.name};
        if (!facts->error.empty()) {
            report.verdicts = {{.check = "import", .outcome = check::Outcome::failed}};
            report.findings = {{.check = "import",
                                .subject = variant.name,
                                .policy = "importing it works",
                                .found = facts->error,
                                .message = fmt::format("importing it fails: {}", facts->error)}};
            return report;
        }
        add_ops(name->variant(), metadata->id, *facts, report);
        return report;
    }

    CheckOpsOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_check_ops() {
    return std::make_unique<CheckOps>();
}

} // namespace kb::cli
