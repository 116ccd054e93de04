// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/pyproject.hpp"
#include "cli/commands/table.hpp"
#include "cli/open_project.hpp"
#include "cli/render.hpp"

namespace kb::cli {

namespace {

class CreatePyproject final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "create-pyproject"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Write a CMake and setup.py project for IDEs and pip";
    }

    [[nodiscard]] std::string_view description() const override {
        return "Writes CMakeLists.txt, cmake/, setup.py, pyproject.toml and "
               "metadata-<backend>.json. "
               "The files are the same on every machine. Files that kernel-builder wrote before "
               "are "
               "replaced or removed; files that somebody else wrote or edited are named and kept.\n"
               "\n"
               "Example:  kernel-builder create-pyproject && pip install --no-build-isolation -e "
               ".\n"
               "\n"
               "Exit codes: 0 written, 1 files in the way or not writable, 2 usage, 3 build.toml.";
    }

    [[nodiscard]] Tier tier() const override { return Tier::project; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {
            {"KERNEL_DIR", "", "The kernel; default: here", &options_.directory},
            {"TARGET_DIR", "", "Where to write; default: KERNEL_DIR", &options_.target},
            {"-f,--force", "", "Replace files that are not ours", &options_.force},
            {"--unique-id",
             "ID",
             "Last part of the operators' namespace; default: a digest of the sources",
             &options_.unique_id},
            {"--kernel-sha", "HEX", "Commit of the kernel; default: git's", &options_.kernel_sha},
            {"--kernel-dirty",
             "",
             "With --kernel-sha: the sources differ from that commit",
             &options_.kernel_dirty},
            {"--dry-run", "", "Only say what would be done", &options_.dry_run}};
    }

    ExitCode run(const Services& services) override {
        if (!check_unique_id(options_, services.terminal)) {
            return ExitCode::usage;
        }
        const auto project = open_project(options_.directory, Strict::no, services);
        if (!project) {
            return ExitCode::configuration;
        }
        const auto snapshot = read_build_snapshot(*project, services);
        if (!snapshot) {
            render_error(snapshot.error(), services.terminal);
            return ExitCode::configuration;
        }
        return write_pyproject(*project, *snapshot, options_, services);
    }

private:
    PyprojectOptions options_;
};

class CleanPyproject final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "clean-pyproject"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Remove what create-pyproject wrote";
    }

    [[nodiscard]] std::string_view description() const override {
        return "Removes the files of the last create-pyproject, and directories that become empty. "
               "A file that was edited since is named and kept, unless '--force' is given.\n"
               "\n"
               "Example:  kernel-builder clean-pyproject --dry-run\n"
               "\n"
               "Exit codes: 0 removed, 1 a file could not be removed, 2 usage.";
    }

    [[nodiscard]] Tier tier() const override { return Tier::project; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"KERNEL_DIR", "", "The kernel; default: here", &options_.directory},
                {"TARGET_DIR", "", "Where the files are; default: KERNEL_DIR", &options_.target},
                {"-f,--force", "", "Also remove files that were edited", &options_.force},
                {"-d,--dry-run", "", "Only say what would be removed", &options_.dry_run}};
    }

    ExitCode run(const Services& services) override {
        // No build.toml is needed: the manifest knows what was written, whatever it says today.
        const sys::Path target =
            (services.current_directory / options_.target.value_or(options_.directory))
                .lexically_normal();
        return apply_generated(services, target, {}, options_);
    }

private:
    PyprojectOptions options_;
};

} // namespace

std::unique_ptr<Command> make_create_pyproject() {
    return std::make_unique<CreatePyproject>();
}

std::unique_ptr<Command> make_clean_pyproject() {
    return std::make_unique<CleanPyproject>();
}

} // namespace kb::cli
