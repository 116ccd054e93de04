// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/card.hpp"
#include "cli/commands/table.hpp"
#include "cli/open_project.hpp"
#include "cli/render.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

class FillCard final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "fill-card"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Fill the template CARD.md for the registry's page";
    }

    [[nodiscard]] std::string_view description() const override {
        return "Prints CARD.md with the repository, version, functions, layers and licence filled "
               "in, or writes it to a file. 'build' does the same for build/CARD.md.\n"
               "\n"
               "Example:  kernel-builder fill-card --output build/CARD.md\n"
               "\n"
               "Exit codes: 0 filled, 1 not readable or writable, 3 build.toml or CARD.md is "
               "wrong.";
    }

    [[nodiscard]] Tier tier() const override { return Tier::project; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"KERNEL_DIR", "", "The kernel; default: here", &directory_},
                {"-o,--output", "FILE", "Write to a file instead of printing", &output_}};
    }

    ExitCode run(const Services& services) override {
        const auto project = open_project(directory_, Strict::no, services);
        if (!project) {
            return ExitCode::configuration;
        }
        const FilledCard card = fill_card(*project, services);
        return card.code == ExitCode::ok ? print(services, card.text) : card.code;
    }

private:
    ExitCode print(const Services& services, const std::string& text) const {
        if (!output_) {
            services.terminal.out(text);
            return ExitCode::ok;
        }
        const sys::Path path = services.current_directory / *output_;
        if (auto done = services.fs.write_atomic(path, text, FileMode::regular); !done) {
            render_error(done.error(), services.terminal);
            return exit_code_for(done.error(), ExitCode::failed);
        }
        return ExitCode::ok;
    }

    std::string directory_ = ".";
    std::optional<std::string> output_;
};

} // namespace

std::unique_ptr<Command> make_fill_card() {
    return std::make_unique<FillCard>();
}

} // namespace kb::cli
