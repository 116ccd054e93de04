// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/table.hpp"
#include "cli/render.hpp"
#include "registry/root.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Makes an empty registry in a new directory: settings in registry.toml, metadata in meta.sqlite,
contents in blobs/. Nobody can write to it before 'registry token create'.

Exit codes: 0 made, 2 no --root given, 5 the directory is not empty or cannot be written.

Example:
  kernel-builder registry init --root /srv/kernels)";

class RegistryInit final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "registry init"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Make an empty registry in a new directory";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"--root", "DIR", "new directory of the registry", &root_}};
    }

    ExitCode run(const Services& services) override {
        if (!root_) {
            services.terminal.err("error: --root DIR must be given\n");
            return ExitCode::usage;
        }
        const auto made = registry::init_root(services.fs, services.current_directory / *root_);
        if (!made) {
            render_error(made.error(), services.terminal);
            return exit_code_for(made.error(), ExitCode::remote);
        }
        services.terminal.err(
            fmt::format("made an empty registry in '{0}'\n"
                        "next: kernel-builder registry token create --root {0} --user NAME\n"
                        "      kernel-builder registry serve --root {0}\n",
                        *root_));
        return ExitCode::ok;
    }

private:
    std::optional<std::string> root_{};
};

} // namespace

std::unique_ptr<Command> make_registry_init() {
    return std::make_unique<RegistryInit>();
}

} // namespace kb::cli
