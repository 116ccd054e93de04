// SPDX-License-Identifier: Apache-2.0
#include "build/testshell.hpp"

#include "base/text.hpp"
#include "build/kernel_path.hpp"
#include "cli/commands/table.hpp"
#include "cli/open_project.hpp"
#include "cli/render.hpp"
#include "cli/settings.hpp"
#include "project/variant_dirs.hpp"
#include "sys/environment.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    "Runs CMD, or a shell, in an environment in which the Python you use can import the\n"
    "CUDA build of torch although this machine has no GPU libraries: each missing library is\n"
    "replaced by a generated stub whose functions answer 'no device'. Nothing is installed;\n"
    "stubs are made once for each torch and kept beside the store. For tests only.\n"
    "\n"
    "With --as cpu torch also says that it has no CUDA (torch.version.cuda is None), so that\n"
    "loaders choose a kernel's CPU variant.\n"
    "\n"
    "In a project, its kernel can be imported by its name: the built variant that suits this\n"
    "machine and this torch, or --variant.\n"
    "\n"
    "  kernel-builder testshell -- python3 -m pytest tests\n"
    "  kernel-builder testshell --as cpu -- python3 -c 'import torch; print(torch.version.cuda)'\n"
    "  eval \"$(kernel-builder testshell --print-env)\"\n"
    "\n"
    "Exit code: that of CMD; 2 for a wrong option, variant or CMD, 3 for a wrong build.toml, 4 "
    "when\n"
    "there is no torch.";

std::string shell_quoted(std::string_view text) {
    return fmt::format("'{}'", replace_all(text, "'", "'\\''"));
}

class TestShellCommand final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "testshell"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Run a program where a CUDA torch imports without a GPU";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::machine; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{.name = "--as",
                 .value = "cpu",
                 .help = "what torch says about itself; 'cpu' hides CUDA",
                 .target = &as_},
                {.name = "--torch",
                 .value = "DIR",
                 .help = "torch's package directory (default: that of --python)",
                 .target = &torch_},
                {.name = "--python",
                 .value = "PROGRAM",
                 .help = "the Python whose torch is meant",
                 .target = &python_},
                {.name = "--variant",
                 .value = "NAME",
                 .help = "the built variant of the project here that is imported",
                 .target = &variant_},
                {.name = "--store",
                 .value = "DIR",
                 .help = "toolchain store; the stubs lie beside it",
                 .target = &settings_.store},
                {.name = "--print-env",
                 .value = "",
                 .help = "print the variables as shell commands and run nothing",
                 .target = &print_env_}};
    }

    [[nodiscard]] bool takes_rest() const override { return true; }

    void set_rest(const std::vector<std::string>& arguments) override { program_ = arguments; }

    ExitCode run(const Services& services) override {
        if (as_ && *as_ != "cpu") {
            services.terminal.err(
                fmt::format("error: --as knows 'cpu', not '{}'\n", escape_control(*as_)));
            return ExitCode::usage;
        }
        Diagnostics diagnostics;
        const auto settings = read_settings(settings_, services, diagnostics);
        render_diagnostics(diagnostics, {}, services.terminal);
        if (!settings) {
            return ExitCode::configuration;
        }
        const sys::Path cache = settings->store.parent_path() / "testshell";
        auto shell = build::prepare_test_shell(
            {.as = as_ ? build::TestAs::cpu : build::TestAs::as_is,
             .torch = torch_ ? services.current_directory / *torch_ : sys::Path{},
             .python = python_,
             .cache = cache},
            services.environment,
            services.fs,
            services.processes);
        if (!shell) {
            render_error(shell.error(), services.terminal);
            return exit_code_for(shell.error(), ExitCode::toolchain);
        }
        if (const ExitCode ended = add_kernel(cache, *shell, services); ended != ExitCode::ok) {
            return ended;
        }
        return print_env_ ? print(*shell, services) : start(*shell, services);
    }

private:
    /// Makes the kernel of the project in the current directory, if there is one, importable.
    ExitCode add_kernel(const sys::Path& cache, build::TestShell& shell, const Services& services) {
        const sys::Path& here = services.current_directory;
        if (!sys::exists(services.fs, here / "build.toml")) {
            if (variant_) {
                services.terminal.err(fmt::format(
                    "error: --variant needs a project: '{}' has no build.toml\n", here.string()));
                return ExitCode::usage;
            }
            return ExitCode::ok;
        }
        const auto project = open_project(here.string(), Strict::no, services);
        if (!project) {
            return ExitCode::configuration;
        }
        const auto variant = choose_variant(shell, here, services);
        if (!variant) {
            render_error(variant.error(), services.terminal);
            return ExitCode::usage;
        }
        if (variant->empty()) {
            services.terminal.err("note: nothing that runs here is built; 'kernel-builder build' "
                                  "makes it\n");
            return ExitCode::ok;
        }
        const auto folder = build::make_importable(
            services.fs, cache, project->config.name.module_name(), *variant);
        if (!folder) {
            render_error(folder.error(), services.terminal);
            return exit_code_for(folder.error(), ExitCode::toolchain);
        }
        build::put_on_python_path(shell, services.environment, *folder);
        return ExitCode::ok;
    }

    /// The directory of the variant that is asked for, or of the best one; empty without one.
    [[nodiscard]] Result<sys::Path> choose_variant(const build::TestShell& shell,
                                                   const sys::Path& project,
                                                   const Services& services) const {
        const sys::Path place = project / "build";
        if (variant_) {
            if (!backend::VariantName::parse(*variant_)) {
                return Error{.code = ErrorCode::unsupported,
                             .message = fmt::format("'{}' is no name of a variant; run: "
                                                    "kernel-builder list-variants",
                                                    escape_control(*variant_))};
            }
            if (!sys::exists(services.fs, place / *variant_ / "metadata.json")) {
                return Error{.code = ErrorCode::not_found,
                             .message = fmt::format("'{}' is not built; run: kernel-builder build "
                                                    "--variant {}",
                                                    escape_control(*variant_),
                                                    escape_control(*variant_))};
            }
            return place / *variant_;
        }
        const auto built = project::discover_variants(services.fs, place);
        const auto platform = host_platform();
        if (!built || !platform) {
            return sys::Path{};
        }
        std::vector<std::string> names;
        for (const project::VariantDir& directory : built->variants) {
            names.push_back(directory.name);
        }
        KB_TRY(const build::TorchVersion version,
               build::read_torch_version(services.fs, shell.torch));
        const bool has_cuda = !as_ && version.cuda && sys::exists(services.fs, "/dev/nvidiactl");
        const auto best = build::loadable_variant(
            names,
            {.platform = *platform,
             .torch = version.torch,
             .backend = has_cuda ? backend::BackendId::cuda : backend::BackendId::cpu,
             .backend_version = has_cuda ? version.cuda : std::nullopt});
        return best ? built->variants[*best].path : sys::Path{};
    }

    static ExitCode print(const build::TestShell& shell, const Services& services) {
        for (const auto& [name, value] : shell.changes) {
            services.terminal.out(fmt::format("export {}={}\n", name, shell_quoted(value)));
        }
        return ExitCode::ok;
    }

    ExitCode start(const build::TestShell& shell, const Services& services) {
        sys::EnvironmentMap environment = services.environment;
        for (const auto& [name, value] : shell.changes) {
            environment.insert_or_assign(name, value);
        }
        if (program_.empty()) {
            services.terminal.err(fmt::format("{} stubs for torch in '{}'; 'exit' leaves\n",
                                              shell.stubbed.size(),
                                              shell.torch.string()));
            program_ = {sys::lookup(environment, "SHELL").value_or("/bin/sh")};
        }
        render_error(build::replace_process(program_, environment), services.terminal);
        return ExitCode::usage; // there is no such program
    }

    std::optional<std::string> as_{};
    std::optional<std::string> torch_{};
    std::optional<std::string> variant_{};
    SettingFlags settings_{};
    std::string python_ = "python3";
    bool print_env_ = false;
    std::vector<std::string> program_{};
};

} // namespace

std::unique_ptr<Command> make_testshell() {
    return std::make_unique<TestShellCommand>();
}

} // namespace kb::cli
