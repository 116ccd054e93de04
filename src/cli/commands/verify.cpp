// SPDX-License-Identifier: Apache-2.0
#include "package/verify.hpp"

#include "base/text.hpp"
#include "check/report_json.hpp"
#include "cli/commands/table.hpp"
#include "cli/commands/variants.hpp"
#include "cli/render.hpp"
#include "digest/signature.hpp"
#include "document/json.hpp"
#include "package/attestation.hpp"
#include "project/attestations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Recomputes the digest of each finished variant in DIR (or of the one variant that DIR is) and
compares it with metadata.json, then tells where the variant comes from: tool, source commit,
sandbox level. --require-clean fails variants of uncommitted sources, of unknown origin or built
weaker than in level 'namespaces'. The provenance statement and the bill of materials that 'build'
wrote are compared with the variant where they are there. --key FILE.pub judges the signature that
'sign' made and fails variants without one, and variants with bytecode, which no statement covers.
A signature beside metadata.json is named, not judged. Writes nothing.

Exit codes: 0 everything holds, 1 something differs.

Examples:
  kernel-builder verify
  kernel-builder verify --key release.key.pub
  kernel-builder verify build/torch-cuda --require-clean)";

struct VerifyOptions {
    std::string directory = ".";
    std::string key{};
    std::string provenance{};
    bool require_clean = false;
    bool json = false;
};

check::Outcome outcome_of(bool passed) {
    return passed ? check::Outcome::passed : check::Outcome::failed;
}

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

check::Finding broken_statement(const Error& error) {
    return {.check = "statement",
            .subject = "statement",
            .policy = "SLSA provenance 1",
            .message = escape_control(error.to_text()),
            .next_step = "get variant and statement from one build, or build again"};
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
                {"--key", "FILE", "public key that must have signed the statement", &options_.key},
                {"--provenance",
                 "DIR",
                 "where statements lie (default: .kernel-builder/provenance of the kernel)",
                 &options_.provenance},
                {"--json", "", "the report as JSON", &options_.json}};
    }

    ExitCode run(const Services& services) override {
        const auto found = find_variants(options_.directory, services);
        if (!found) {
            return found.code();
        }
        if (!options_.key.empty()) {
            auto key =
                services.fs.read_file(services.current_directory / options_.key, 64UL << 10U);
            if (!key) {
                render_error(key.error(), services.terminal);
                return ExitCode::usage;
            }
            public_pem_ = std::move(key).value();
            if (auto usable = digest::key_id(public_pem_); !usable) {
                render_error(
                    std::move(usable).context(fmt::format("key '{}'", options_.key)).error(),
                    services.terminal);
                return ExitCode::usage;
            }
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
            {.check = "digest", .outcome = outcome_of(report.findings.empty())});
        judge_attestations(variant, *package, services, report);
        if (options_.require_clean) {
            const std::size_t before = report.findings.size();
            judge_origin(package->metadata, report.findings);
            report.verdicts.push_back(
                {.check = "provenance", .outcome = outcome_of(report.findings.size() == before)});
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

    /// The statement against the variant, and the signature against the key where one was given.
    void judge_attestations(const project::VariantDir& variant,
                            const package::Package& package,
                            const Services& services,
                            check::Report& report) const {
        const sys::Path directory = options_.provenance.empty()
                                        ? project::attestation_directory(variant.path)
                                        : services.current_directory / options_.provenance;
        const auto said = project::read_attestations(services.fs, directory, variant.name);
        const bool wanted = !options_.key.empty() || !options_.provenance.empty();
        if (!said && said.error().code == ErrorCode::not_found && !wanted) {
            return; // made by another tool, or copied without
        }
        if (!said && said.error().code != ErrorCode::corrupt) {
            report.verdicts.push_back(
                {.check = "statement", .reason = escape_control(said.error().to_text())});
            return;
        }
        const auto add = [&](std::string_view check, std::vector<check::Finding> findings) {
            report.verdicts.push_back(
                {.check = std::string{check}, .outcome = outcome_of(findings.empty())});
            std::ranges::move(findings, std::back_inserter(report.findings));
        };
        if (!said) {
            add("statement", {broken_statement(said.error())});
            return;
        }
        auto findings = package::judge_statement(package, said->statement, said->sbom);
        if (!options_.key.empty()) {
            std::ranges::move(package::find_uncovered(package), std::back_inserter(findings));
        }
        add("statement", std::move(findings));
        if (options_.key.empty()) {
            return;
        }
        if (said->envelope.empty()) {
            add("signature",
                {{.check = "signature",
                  .subject = "envelope",
                  .policy = "--key",
                  .message = "the statement is not signed",
                  .next_step = "sign it with 'kernel-builder sign --key FILE'"}});
            return;
        }
        add("signature", package::judge_envelope(said->statement, said->envelope, public_pem_));
    }

    VerifyOptions options_{};
    std::string public_pem_{};
};

} // namespace

std::unique_ptr<Command> make_verify() {
    return std::make_unique<Verify>();
}

} // namespace kb::cli
