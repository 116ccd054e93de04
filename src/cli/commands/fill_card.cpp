// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/table.hpp"
#include "cli/open_project.hpp"
#include "cli/render.hpp"
#include "generate/card.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

/// Text of the first of these files that exists, or "".
Result<std::string> first_text(sys::FileSystem& fs, std::initializer_list<sys::Path> paths) {
    for (const sys::Path& path : paths) {
        auto text = fs.read_file(path);
        if (text || text.error().code != ErrorCode::not_found) {
            return text;
        }
    }
    return std::string{};
}

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
        const sys::Path root = project->root();
        auto card = services.fs.read_file(root / "CARD.md");
        const sys::Path package = root / project::package_directory(project->config).text();
        auto init = first_text(services.fs, {package / "__init__.py"});
        auto layers =
            first_text(services.fs, {package / "layers" / "__init__.py", package / "layers.py"});
        for (const auto* text : {&card, &init, &layers}) {
            if (!*text) {
                render_error(text->error(), services.terminal);
                return ExitCode::failed;
            }
        }
        Diagnostics diagnostics;
        const auto filled = generate::render_card(
            {.config = project->config,
             .card = *card,
             .card_name = "CARD.md",
             .package_init = *init,
             .layers = *layers,
             .has_benchmark = sys::exists(services.fs, root / "benchmarks" / "benchmark.py")},
            diagnostics);
        if (!filled) {
            render_diagnostics(
                diagnostics,
                {{"CARD.md", *card}, {project->text.config_name, project->text.config_text}},
                services.terminal);
            return ExitCode::configuration;
        }
        return print(services, *filled);
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
