// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/commands/table.hpp"
#include "cli/open_store.hpp"
#include "cli/render.hpp"
#include "document/json.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

constexpr std::string_view kVerifyDescription =
    R"(Reads every tree and root of the toolchain store and compares each file with the manifest
under whose digest it lies. Changes nothing unless --repair is given, which takes away what is
damaged; the next 'fetch' or 'build' makes it anew.

Exit codes: 0 all is whole or was repaired, 4 something is damaged or the store cannot be read.

Examples:
  kernel-builder store verify
  kernel-builder store verify --repair)";

constexpr std::string_view kGcDescription =
    R"(Removes trees and roots of the toolchain store that no command used for so many days, and what
killed runs left behind. Whatever is needed again is fetched again. Do not run it during a build
that started so long ago.

Exit codes: 0 done, 4 something could not be removed.

Examples:
  kernel-builder store gc
  kernel-builder store gc --keep-days 7)";

constexpr std::string_view kPathDescription =
    R"(Prints the directory of the toolchain store: from --store, KERNEL_BUILDER_STORE, config.toml,
XDG_CACHE_HOME or HOME, in this order. The compiler cache lies beside it.

Exit codes: 0 printed, 2 none of these is set.

Example:
  kernel-builder store path)";

OptionRow store_row(SettingFlags& flags) {
    return {"--store", "DIR", "toolchain store", &flags.store};
}

class StoreVerify final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "store verify"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Check that the toolchain store is whole";
    }

    [[nodiscard]] std::string_view description() const override { return kVerifyDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::machine; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {store_row(flags_),
                {"--repair", "", "take away what is damaged", &repair_},
                {"--json", "", "the result as JSON", &json_}};
    }

    ExitCode run(const Services& services) override {
        const auto settings = settings_for(flags_, services);
        if (!settings) {
            return ExitCode::usage;
        }
        auto store = open_store(*settings, services);
        if (!store) {
            return ExitCode::toolchain;
        }
        const auto report = store->verify(repair_ ? store::Repair::yes : store::Repair::no);
        if (!report) {
            render_error(report.error(), services.terminal);
            return exit_code_for(report.error(), ExitCode::toolchain);
        }
        render(*report, services.terminal);
        return report->findings.empty() || repair_ ? ExitCode::ok : ExitCode::toolchain;
    }

private:
    void render(const store::VerifyReport& report, Terminal& terminal) const {
        if (json_) {
            document::Node findings = document::Node::array();
            for (const store::StoreFinding& finding : report.findings) {
                findings.push(
                    document::Node::table({{"name", finding.name}, {"message", finding.message}}));
            }
            terminal.out(document::write_json(
                document::Node::table({{"schema", "kernel-builder/store-verify/1"},
                                       {"trees", report.trees},
                                       {"files", report.files},
                                       {"repaired", repair_ && !report.findings.empty()},
                                       {"findings", std::move(findings)}})));
            return;
        }
        for (const store::StoreFinding& finding : report.findings) {
            terminal.out(fmt::format("{}: {}\n", finding.name, escape_control(finding.message)));
        }
        terminal.err(fmt::format("{}, {}: {}\n",
                                 counted(report.trees, "tree"),
                                 counted(report.files, "file"),
                                 report.findings.empty()
                                     ? std::string{"all is whole"}
                                     : counted(report.findings.size(), "damaged tree") +
                                           (repair_ ? " taken away" : "")));
    }

    SettingFlags flags_{};
    bool repair_ = false;
    bool json_ = false;
};

class StoreGc final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "store gc"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Remove what was not used for long from the toolchain store";
    }

    [[nodiscard]] std::string_view description() const override { return kGcDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::machine; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {store_row(flags_),
                {"--keep-days", "N", "days since the last use (default: 30)", &keep_days_},
                {"--json", "", "the result as JSON", &json_}};
    }

    ExitCode run(const Services& services) override {
        const auto settings = settings_for(flags_, services);
        if (!settings) {
            return ExitCode::usage;
        }
        auto store = open_store(*settings, services);
        if (!store) {
            return ExitCode::toolchain;
        }
        constexpr std::uint64_t kMaxDays = 36'500;
        const auto days = std::min(keep_days_.value_or(30), kMaxDays);
        const auto report =
            store->collect({.older_than_seconds = static_cast<std::int64_t>(days) * 24 * 3600});
        if (!report) {
            render_error(report.error(), services.terminal);
            return exit_code_for(report.error(), ExitCode::toolchain);
        }
        if (json_) {
            services.terminal.out(
                document::write_json(document::Node::table({{"schema", "kernel-builder/store-gc/1"},
                                                            {"packages", report->packages},
                                                            {"trees", report->trees},
                                                            {"roots", report->roots},
                                                            {"bytes", report->bytes}})));
        } else {
            services.terminal.out(fmt::format("removed {}, {} and {} ({})\n",
                                              counted(report->packages, "package"),
                                              counted(report->trees, "tree"),
                                              counted(report->roots, "root"),
                                              human_bytes(report->bytes)));
        }
        return ExitCode::ok;
    }

private:
    SettingFlags flags_{};
    std::optional<std::uint64_t> keep_days_{};
    bool json_ = false;
};

class StorePath final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "store path"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Print where the toolchain store is";
    }

    [[nodiscard]] std::string_view description() const override { return kPathDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override { return {store_row(flags_)}; }

    ExitCode run(const Services& services) override {
        const auto settings = settings_for(flags_, services);
        if (!settings) {
            return ExitCode::usage;
        }
        services.terminal.out(settings->store.string() + "\n");
        return ExitCode::ok;
    }

private:
    SettingFlags flags_{};
};

} // namespace

std::unique_ptr<Command> make_store_verify() {
    return std::make_unique<StoreVerify>();
}

std::unique_ptr<Command> make_store_gc() {
    return std::make_unique<StoreGc>();
}

std::unique_ptr<Command> make_store_path() {
    return std::make_unique<StorePath>();
}

} // namespace kb::cli
