// SPDX-License-Identifier: Apache-2.0
#include "backend/variant.hpp"
#include "base/text.hpp"
#include "build/import_check.hpp"
#include "build/inspect.hpp"
#include "check/check.hpp"
#include "cli/commands/table.hpp"
#include "cli/commands/variants.hpp"
#include "package/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Everything that check-abi proves with its defaults, and that each finished variant in DIR is
whole: the directory name is one that clients load and agrees with metadata.json, '__init__.py' and
a library are there, and every file has the digest that metadata.json gives it. With --python each
variant is also imported, in a fresh child that sees no user packages; a variant that this torch is
not for says 'not checked'. Writes nothing.

Exit codes: 0 everything passed, 1 a finding or a refused look, 2 usage, 3 kernel-builder.toml.

Examples:
  kernel-builder check-builds
  kernel-builder check-builds my-kernel --json)";

struct CheckBuildsOptions {
    std::string directory = ".";
    std::optional<std::string> python{};
    std::vector<std::string> allow_unchecked{};
    std::string format = "text";
    bool json = false;
};

/// Findings of package::verify as verdicts beside those of the libraries.
void add_package_findings(const package::Package& package, check::Report& report) {
    const std::vector<check::Finding> findings = package::verify(package);
    for (const char* id : {"digest", "package"}) {
        const bool failed =
            std::ranges::find(findings, id, &check::Finding::check) != findings.end();
        report.verdicts.push_back(
            {.check = id, .outcome = failed ? check::Outcome::failed : check::Outcome::passed});
    }
    report.findings.insert(report.findings.end(), findings.begin(), findings.end());
    std::ranges::sort(report.verdicts);
    std::ranges::sort(report.findings);
}

/// What the project says about all its variants.
struct ProjectSays {
    std::vector<check::Suppression> suppressions{};
    std::vector<std::string> machine_places{};
};

check::Report check_variant(const project::VariantDir& variant,
                            const ProjectSays& project,
                            const Services& services) {
    const auto refuse = [&](const Error& error) {
        return check::Report{
            .variant = variant.name,
            .verdicts = {{.check = "read", .reason = escape_control(error.to_text())}}};
    };
    const auto package = project::read_package(services.fs, variant);
    if (!package) {
        return refuse(package.error());
    }
    auto libraries =
        build::inspect_libraries(services.fs,
                                 variant.path,
                                 {.threads = std::max(1U, std::thread::hardware_concurrency()),
                                  .machine_places = project.machine_places});
    if (!libraries) {
        return refuse(libraries.error());
    }
    check::Report report =
        build::run_checks({.variant = variant.name,
                           .libraries = std::move(*libraries),
                           .promise = build::promise_of(variant.name, &package->metadata),
                           .suppressions = project.suppressions,
                           .machine_places = project.machine_places});
    add_package_findings(*package, report);
    return report;
}

/// The verdict "import": what a fresh Python says.
void add_import(const project::VariantDir& variant,
                const std::string& python,
                check::Report& report,
                const Services& services) {
    check::Verdict verdict{.check = "import", .outcome = check::Outcome::passed};
    const auto name = backend::VariantName::parse(variant.name);
    const auto metadata = project::read_metadata(services.fs, variant);
    const auto facts = metadata ? build::import_variant(services.processes,
                                                        {.python = python,
                                                         .directory = variant.path,
                                                         .id = metadata->id,
                                                         .environment = services.environment})
                                : Result<build::ImportFacts>{metadata.error()};
    if (!facts) {
        verdict.outcome = check::Outcome::not_checked;
        verdict.reason = escape_control(facts.error().to_text());
    } else if (const std::string gap =
                   name ? build::import_gap(name->variant(), *facts) : std::string{};
               !gap.empty()) {
        verdict.outcome = check::Outcome::not_checked;
        verdict.reason = gap;
    } else if (!facts->error.empty()) {
        verdict.outcome = check::Outcome::failed;
        report.findings.push_back({.check = "import",
                                   .subject = variant.name,
                                   .policy = "importing it works",
                                   .found = facts->error,
                                   .message = fmt::format("importing it fails: {}", facts->error),
                                   .next_step = fmt::format("kernel-builder doctor {} --python {}",
                                                            escape_control(variant.path.string()),
                                                            escape_control(python))});
        std::ranges::sort(report.findings);
    }
    report.verdicts.push_back(std::move(verdict));
    std::ranges::sort(report.verdicts);
}

void allow(const std::vector<std::string>& ids, check::Report& report) {
    for (check::Verdict& verdict : report.verdicts) {
        const bool named = std::ranges::find(ids, verdict.check) != ids.end();
        verdict.allowed =
            verdict.allowed || (named && verdict.outcome == check::Outcome::not_checked);
    }
}

class CheckBuilds final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "check-builds"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Check that finished variants are whole and what they say they are";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"DIR", "", "kernel, build or variant directory", &options_.directory},
                {"--python", "PROGRAM", "also import each variant with it", &options_.python},
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
        constexpr std::array<std::string_view, 3> kMore = {"digest", "package", "import"};
        if (!format || !are_checks(options_.allow_unchecked, kMore, services.terminal)) {
            return ExitCode::usage;
        }
        auto suppressions = find_suppressions(options_.directory, services);
        if (!suppressions) {
            return ExitCode::configuration;
        }
        const ProjectSays project{.suppressions = *std::move(suppressions),
                                  .machine_places =
                                      find_machine_places(options_.directory, services)};
        const auto found = find_variants(options_.directory, services);
        if (!found) {
            return found.code();
        }
        std::vector<check::Report> reports;
        for (const project::VariantDir& variant : found->variants) {
            check::Report report = check_variant(variant, project, services);
            if (options_.python) {
                add_import(variant, *options_.python, report, services);
            }
            allow(options_.allow_unchecked, report);
            reports.push_back(std::move(report));
        }
        render_reports(reports, *format, services.terminal);
        return conclude(reports, services.terminal);
    }

private:
    CheckBuildsOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_check_builds() {
    return std::make_unique<CheckBuilds>();
}

} // namespace kb::cli
