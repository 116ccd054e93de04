// SPDX-License-Identifier: Apache-2.0
#include "package/verify.hpp"

#include "base/text.hpp"
#include "check/report_json.hpp"
#include "cli/commands/table.hpp"
#include "cli/commands/variants.hpp"
#include "document/json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Recomputes the digest of each finished variant in DIR (or of the one variant that DIR is) and
compares it with metadata.json, then tells where the variant comes from: tool, source commit,
sandbox level. --require-clean fails variants of uncommitted sources, of unknown origin or built
weaker than in level 'namespaces'. A signature beside metadata.json is named, not judged.
Writes nothing.

Exit codes: 0 everything holds, 1 something differs.

Examples:
  kernel-builder verify
  kernel-builder verify build/torch-cuda --require-clean)";

struct VerifyOptions {
    std::string directory = ".";
    bool require_clean = false;
    bool json = false;
};

std::string state_text(const std::optional<package::SourceState>& state) {
    if (!state) {
        return "unknown commit";
    }
    return state->commit.substr(0, 12) + (state->dirty ? " (uncommitted changes)" : "");
}

/// Where it comes from, in one line.
std::string origin_text(const package::Metadata& metadata) {
    if (!metadata.provenance) {
        return "origin unknown";
    }
    const package::Provenance& from = *metadata.provenance;
    return fmt::format("kernel {}, kernel-builder {}, sandbox '{}'",
                       state_text(from.kernel),
                       from.tool_version.empty() ? "of unknown version" : from.tool_version,
                       from.sandbox.empty() ? "unknown" : from.sandbox);
}

check::Finding provenance_finding(std::string subject, std::string message, std::string next) {
    return {.check = "provenance",
            .subject = std::move(subject),
            .policy = "--require-clean",
            .message = std::move(message),
            .next_step = std::move(next)};
}

void judge_origin(const package::Metadata& metadata, std::vector<check::Finding>& out) {
    if (!metadata.provenance) {
        out.push_back(provenance_finding("origin",
                                         "metadata.json does not say where the variant comes from",
                                         "build it with 'kernel-builder build'"));
        return;
    }
    if (metadata.provenance->is_dirty() || !metadata.provenance->kernel) {
        out.push_back(provenance_finding("commit",
                                         "the sources were not those of one commit",
                                         "commit the sources and build again"));
    }
    if (metadata.provenance->sandbox != "namespaces") {
        out.push_back(
            provenance_finding("sandbox",
                               fmt::format("built at sandbox level '{}'",
                                           escape_control(metadata.provenance->sandbox.empty()
                                                              ? "unknown"
                                                              : metadata.provenance->sandbox)),
                               "build again with '--sandbox namespaces'"));
    }
}

class Verify final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "verify"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Compare finished variants with their digests, tell their origin";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"DIR", "", "kernel, build or variant directory", &options_.directory},
                {"--require-clean",
                 "",
                 "fail on uncommitted sources and weak sandboxes",
                 &options_.require_clean},
                {"--json", "", "the report as JSON", &options_.json}};
    }

    ExitCode run(const Services& services) override {
        const auto found = find_variants(options_.directory, services);
        if (!found) {
            return ExitCode::failed;
        }
        std::vector<check::Report> reports;
        for (const project::VariantDir& variant : found->variants) {
            reports.push_back(verify_one(variant, services));
        }
        if (options_.json) {
            services.terminal.out(document::write_json(check::to_json(reports)));
        }
        return conclude(reports, services.terminal);
    }

private:
    [[nodiscard]] check::Report verify_one(const project::VariantDir& variant,
                                           const Services& services) const {
        check::Report report{.variant = variant.name};
        const auto package = project::read_package(services.fs, variant);
        if (!package) {
            report.verdicts.push_back(
                {.check = "read", .reason = escape_control(package.error().to_text())});
            if (!options_.json) {
                render_report(report, services.terminal);
            }
            return report;
        }
        report.findings = package::verify(package->metadata, package->files);
        report.verdicts.push_back(
            {.check = "digest",
             .outcome = report.findings.empty() ? check::Outcome::passed : check::Outcome::failed});
        if (options_.require_clean) {
            const std::size_t before = report.findings.size();
            judge_origin(package->metadata, report.findings);
            report.verdicts.push_back({.check = "provenance",
                                       .outcome = report.findings.size() == before
                                                      ? check::Outcome::passed
                                                      : check::Outcome::failed});
        }
        if (!options_.json) {
            render_report(report, services.terminal);
            services.terminal.out(
                fmt::format("  {}\n", escape_control(origin_text(package->metadata))));
            const bool is_signed =
                std::ranges::any_of(package->files, [](const package::FileEntry& file) {
                    return file.path.text() == "metadata.json.sigstore";
                });
            if (is_signed) {
                services.terminal.out("  carries a signature that was not judged here\n");
            }
        }
        return report;
    }

    VerifyOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_verify() {
    return std::make_unique<Verify>();
}

} // namespace kb::cli
