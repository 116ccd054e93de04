// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/commands/table.hpp"
#include "cli/render.hpp"
#include "generate/quote.hpp"
#include "generate/scaffold.hpp"
#include "project/new_files.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

using backend::BackendId;

struct InitOptions {
    std::string path{};
    std::optional<std::string> name{};
    std::string framework = "torch";
    std::string backends = "cpu,cuda";
    std::string license = "Apache-2.0";
    bool overwrite = false;
    bool dry_run = false;
};

/// "cpu,cuda", or "all" for everything that the framework can be built for.
std::optional<std::vector<BackendId>> parse_backends(std::string_view text,
                                                     generate::ScaffoldFramework framework,
                                                     Diagnostics& diagnostics) {
    if (text == "all") {
        const auto all = generate::scaffold_backends(framework);
        return std::vector<BackendId>{all.begin(), all.end()};
    }
    std::vector<BackendId> ids;
    for (const std::string_view item : split(text, ',')) {
        const auto id = backend::parse_backend(trim(item));
        if (!id) {
            std::vector<std::string_view> names;
            for (const BackendId known : backend::kAllBackends) {
                names.push_back(backend::to_text(known));
            }
            diagnostics.error("unknown-backend",
                              {},
                              fmt::format("'{}' is not a backend", escape_control(trim(item))),
                              suggestion_note(trim(item), names));
            continue;
        }
        ids.push_back(*id);
    }
    return diagnostics.has_errors() ? std::nullopt : std::optional{std::move(ids)};
}

std::optional<generate::ScaffoldInput>
resolve(const InitOptions& options, const sys::Path& directory, Diagnostics& diagnostics) {
    const auto framework = generate::parse_scaffold_framework(options.framework);
    if (!framework) {
        constexpr std::string_view kNames[] = {"torch", "torch-noarch", "tvm-ffi"};
        diagnostics.error("unknown-framework",
                          {},
                          fmt::format("'{}' is not a framework; there are 'torch', 'torch-noarch' "
                                      "and 'tvm-ffi'",
                                      escape_control(options.framework)),
                          suggestion_note(options.framework, kNames));
        return std::nullopt;
    }
    auto name =
        generate::scaffold_name(options.name, directory.lexically_normal().string(), diagnostics);
    auto backends = parse_backends(options.backends, *framework, diagnostics);
    if (!name || !backends) {
        return std::nullopt;
    }
    return generate::ScaffoldInput{.name = std::move(*name),
                                   .framework = *framework,
                                   .backends = std::move(*backends),
                                   .license = options.license};
}

class Init final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "init"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Make a new kernel that builds and passes its tests";
    }

    [[nodiscard]] std::string_view description() const override {
        return "Writes build.toml, sources of each backend, the binding, the Python package, "
               "tests, "
               "a benchmark and a card. All files are written or none; needs no network and no "
               "git.\n"
               "\n"
               "Example:  kernel-builder init relu --name my-org/relu --backends cpu,cuda\n"
               "          cd relu && kernel-builder build\n"
               "\n"
               "Exit codes: 0 written, 1 the files could not be written, 2 a bad name, backend or "
               "framework, or files in the way.";
    }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"PATH", "", "Directory of the new kernel; it may exist", &options_.path, true},
                {"--name",
                 "OWNER/REPO",
                 "Repository it is published to; default: the directory's name, and no repository",
                 &options_.name},
                {"--framework", "NAME", "torch, torch-noarch or tvm-ffi", &options_.framework},
                {"--backends", "LIST", "Comma list, or 'all'", &options_.backends},
                {"--license", "ID", "Licence as the registry names it", &options_.license},
                {"--overwrite", "", "Replace files that exist", &options_.overwrite},
                {"--dry-run", "", "Only list the files", &options_.dry_run}};
    }

    ExitCode run(const Services& services) override {
        const sys::Path directory = (services.current_directory / options_.path).lexically_normal();
        Diagnostics diagnostics;
        if (options_.path.empty()) {
            diagnostics.error("missing-path",
                              {},
                              "the directory of the new kernel has no name",
                              {"'.' is the current one"});
            render_diagnostics(diagnostics, {}, services.terminal);
            return ExitCode::usage;
        }
        const auto input = resolve(options_, directory, diagnostics);
        auto files = input ? generate::scaffold(*input, diagnostics) : std::nullopt;
        if (!files) {
            render_diagnostics(diagnostics, {}, services.terminal);
            return ExitCode::usage;
        }
        if (options_.dry_run) {
            print_files(*files, services.terminal);
            return ExitCode::ok;
        }
        return write(services, directory, *files);
    }

private:
    void print_files(const std::vector<FileImage>& files, Terminal& terminal) const {
        for (const FileImage& file : files) {
            terminal.out((sys::Path{options_.path} / file.path.text()).string() + "\n");
        }
    }

    ExitCode write(const Services& services,
                   const sys::Path& directory,
                   const std::vector<FileImage>& files) const {
        auto existing = project::existing_files(services.fs, directory, files);
        if (!existing) {
            render_error(existing.error(), services.terminal);
            return exit_code_for(existing.error(), ExitCode::failed);
        }
        if (!existing->empty() && !options_.overwrite) {
            return refuse(*existing, services.terminal);
        }
        const auto done =
            project::write_new_files(services.fs, directory, files, project::Force::yes);
        if (!done) {
            render_error(done.error(), services.terminal);
            return exit_code_for(done.error(), ExitCode::failed);
        }
        print_files(files, services.terminal);
        services.terminal.err(fmt::format("next:  cd {} && kernel-builder build\n"
                                          "       kernel-builder check-builds\n",
                                          generate::quote_shell(options_.path)));
        return ExitCode::ok;
    }

    ExitCode refuse(const std::vector<std::string>& existing, Terminal& terminal) const {
        std::string text =
            fmt::format("error: {} already there in '{}':\n",
                        counted(existing.size(), "file") + (existing.size() == 1 ? " is" : " are"),
                        escape_control(options_.path));
        for (const std::string& path : existing) {
            text += fmt::format("  {}\n", path);
        }
        terminal.err(text + "note: nothing was written; '--overwrite' replaces these files\n");
        return ExitCode::usage;
    }

    InitOptions options_;
};

} // namespace

std::unique_ptr<Command> make_init() {
    return std::make_unique<Init>();
}

} // namespace kb::cli
