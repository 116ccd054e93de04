// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/table.hpp"
#include "cli/render.hpp"
#include "cli/text_diff.hpp"
#include "config/migrate.hpp"
#include "project/project.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Rewrites a build.toml of an older edition as edition 5, in place: comments, order and formatting
stay, the new text is read back and must mean the same before the file is replaced in one step. A
file with a mistake is left alone and the mistakes are listed. Edition 5 is not touched.

Exit codes: 0 the file is of edition 5 now, 3 it cannot be rewritten.

Examples:
  kernel-builder update-build --dry-run
  kernel-builder update-build my-kernel
  kernel-builder update-build --license apache-2.0)";

struct UpdateBuildOptions {
    std::string directory = ".";
    std::optional<std::string> license{};
    bool dry_run = false;
};

/// Replacing a link by a file would leave the file that it names as it was.
Result<void> refuse_link(const project::ProjectText& text, sys::FileSystem& fs) {
    const sys::Path path = text.root / "build.toml";
    KB_TRY(const sys::FileInfo info, fs.stat(path, sys::FollowLinks::no));
    if (info.type == sys::FileType::symlink) {
        KB_TRY(const std::string target, fs.read_link(path));
        return Error{.code = ErrorCode::unsupported,
                     .message = fmt::format("'{}' is a link to '{}'; update the project there",
                                            text.config_name,
                                            target)};
    }
    return {};
}

class UpdateBuild final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "update-build"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Rewrite build.toml as the current edition, comments kept";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::project; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"DIR", "", "directory that holds build.toml", &options_.directory},
                {"--license", "ID", "licence for a file that names none", &options_.license},
                {"--dry-run", "", "print the difference, write nothing", &options_.dry_run}};
    }

    ExitCode run(const Services& services) override {
        const Result<project::ProjectText> text =
            project::read_project(services.fs, services.current_directory, options_.directory);
        if (!text) {
            render_error(text.error(), services.terminal);
            return ExitCode::configuration;
        }
        Diagnostics diagnostics;
        const auto migration = config::migrate(text->config_text,
                                               {.name = text->config_name},
                                               {.license = options_.license},
                                               diagnostics);
        render_diagnostics(
            diagnostics, {{text->config_name, text->config_text}}, services.terminal);
        if (!migration) {
            return ExitCode::configuration;
        }
        if (migration->from == config::Edition::v5) {
            services.terminal.out(fmt::format("{} is of edition 5 already\n", text->config_name));
            return ExitCode::ok;
        }
        if (options_.dry_run) {
            services.terminal.out(
                unified_diff(text->config_name, text->config_text, migration->text));
            return ExitCode::ok;
        }
        return write(*text, *migration, services);
    }

private:
    static ExitCode write(const project::ProjectText& text,
                          const config::Migration& migration,
                          const Services& services) {
        Result<void> done = refuse_link(text, services.fs);
        if (done) {
            done = services.fs.write_atomic(
                text.root / "build.toml", migration.text, FileMode::regular);
        }
        if (!done) {
            render_error(std::move(done).context("updating the build configuration").error(),
                         services.terminal);
            return ExitCode::configuration;
        }
        services.terminal.out(fmt::format("{}: edition {} is now edition 5\n",
                                          text.config_name,
                                          static_cast<int>(migration.from)));
        for (const std::string& change : migration.changes) {
            services.terminal.out(fmt::format("  {}\n", change));
        }
        return ExitCode::ok;
    }

    UpdateBuildOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_update_build() {
    return std::make_unique<UpdateBuild>();
}

} // namespace kb::cli
