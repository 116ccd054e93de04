// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/table.hpp"
#include "cli/render.hpp"
#include "sandbox/landlock.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <unistd.h>

namespace kb::cli {

namespace {

/// Applies landlock to this process and becomes the command: what sandbox level "landlock" runs.
class ConfineCommand final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "confine"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Run a command that may write only below some directories";
    }

    [[nodiscard]] std::string_view description() const override {
        return "Used by kernel-builder itself.";
    }

    [[nodiscard]] Tier tier() const override { return Tier::machine; }

    [[nodiscard]] bool is_hidden() const override { return true; }

    [[nodiscard]] bool takes_rest() const override { return true; }

    void set_rest(const std::vector<std::string>& arguments) override { command_ = arguments; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {
            {.name = "--writable", .value = "DIR", .help = "may be written", .target = &writable_},
            {.name = "--working-directory",
             .value = "DIR",
             .help = "where the command starts",
             .target = &directory_}};
    }

    ExitCode run(const Services& services) override {
        std::vector<sys::Path> paths{"/dev/null"};
        paths.insert(paths.end(), writable_.begin(), writable_.end());
        if (const Result<void> applied = sandbox::apply_landlock(paths); !applied) {
            render_error(applied.error(), services.terminal);
            return ExitCode::toolchain;
        }
        if (!directory_.empty() && ::chdir(directory_.c_str()) != 0) {
            render_error(error_from_errno(errno, fmt::format("entering '{}'", directory_)),
                         services.terminal);
            return ExitCode::toolchain;
        }
        std::vector<char*> argv;
        for (std::string& word : command_) {
            argv.push_back(word.data());
        }
        argv.push_back(nullptr);
        ::execvp(argv[0], argv.data());
        render_error(
            error_from_errno(errno,
                             fmt::format("running '{}'", command_.empty() ? "" : command_.front())),
            services.terminal);
        return ExitCode::toolchain;
    }

private:
    std::vector<std::string> writable_{};
    std::string directory_{};
    std::vector<std::string> command_{};
};

} // namespace

std::unique_ptr<Command> make_confine() {
    return std::make_unique<ConfineCommand>();
}

} // namespace kb::cli
