// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/commands/table.hpp"
#include "cli/render.hpp"
#include "document/json.hpp"
#include "registry/collect.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Removes what no branch, tag or pull request leads to: commits and files of deleted branches and
repositories, large objects that were uploaded and never committed, uploads in parts that were given
up. What was uploaded or deleted within the last --grace hours stays. Works while the registry is
being served, then with a grace of at least one hour, and leaves uploads in parts to the server.

Exit codes: 0 collected, 2 wrong options, 5 the registry is damaged or cannot be opened, or the grace
is too short for one that is being served.

Examples:
  kernel-builder registry gc --root /srv/kernels --dry-run
  kernel-builder registry gc --root /srv/kernels --grace 168)";

struct RegistryGcOptions {
    std::optional<std::string> root{};
    std::optional<std::uint64_t> grace{};
    bool dry_run = false;
    bool json = false;
};

class RegistryGc final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "registry gc"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Remove what nothing in a registry leads to";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"--root", "DIR", "directory of the registry", &options_.root},
                {"--grace", "HOURS", "keep what is younger (default 24)", &options_.grace},
                {"--dry-run", "", "say what would go and remove nothing", &options_.dry_run},
                {"--json", "", "the report as JSON", &options_.json}};
    }

    ExitCode run(const Services& services) override {
        if (!options_.root) {
            services.terminal.err("error: --root DIR must be given\n");
            return ExitCode::usage;
        }
        constexpr std::uint64_t kMostHours = 1'000'000;
        const auto hours =
            static_cast<std::int64_t>(std::min(options_.grace.value_or(24), kMostHours));
        const auto report = registry::collect(
            services.fs,
            services.current_directory / *options_.root,
            {.mode = options_.dry_run ? registry::CollectMode::look : registry::CollectMode::remove,
             .before = services.clock.unix_seconds() - hours * 3600,
             .now = services.clock.unix_seconds()});
        if (!report) {
            render_error(report.error(), services.terminal);
            return exit_code_for(report.error(), ExitCode::remote);
        }
        services.terminal.out(options_.json ? document::write_json(to_json(*report))
                                            : to_text(*report));
        return ExitCode::ok;
    }

private:
    [[nodiscard]] std::string to_text(const registry::CollectReport& report) const {
        return fmt::format("{}: {} repositories, {} commits, {} trees, {} files, {} objects, {} "
                           "uploads; {} blobs of {}\n",
                           options_.dry_run ? "would go" : "removed",
                           report.repositories,
                           report.commits,
                           report.trees,
                           report.files,
                           report.objects,
                           report.uploads,
                           report.blobs,
                           human_bytes(report.bytes));
    }

    [[nodiscard]] document::Node to_json(const registry::CollectReport& report) const {
        return document::Node::table({{"schema", "kernel-builder/registry-gc/1"},
                                      {"dry-run", options_.dry_run},
                                      {"repositories", report.repositories},
                                      {"commits", report.commits},
                                      {"trees", report.trees},
                                      {"files", report.files},
                                      {"objects", report.objects},
                                      {"uploads", report.uploads},
                                      {"blobs", report.blobs},
                                      {"bytes", report.bytes}});
    }

    RegistryGcOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_registry_gc() {
    return std::make_unique<RegistryGc>();
}

} // namespace kb::cli
