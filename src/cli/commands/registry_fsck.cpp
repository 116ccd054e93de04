// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/commands/table.hpp"
#include "cli/render.hpp"
#include "document/json.hpp"
#include "registry/fsck.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Reads the whole registry: the database, every ref down to its files, the hash of every content.
Changes nothing and may run beside a serving one. Contents that nothing names are counted, not
complained about: a killed upload leaves them.

Exit codes: 0 sound, 2 wrong options, 5 something is missing or altered, or it cannot be read.

Example:
  kernel-builder registry fsck --root /srv/kernels --json)";

document::Node to_json(const registry::FsckReport& report) {
    return document::Node::table({{"schema", document::Node{"kernel-builder/registry-fsck/1"}},
                                  {"repositories", document::Node{report.repositories}},
                                  {"refs", document::Node{report.refs}},
                                  {"commits", document::Node{report.commits}},
                                  {"trees", document::Node{report.trees}},
                                  {"files", document::Node{report.files}},
                                  {"blobs", document::Node{report.blobs}},
                                  {"unreferenced-blobs", document::Node{report.unreferenced_blobs}},
                                  {"temporaries", document::Node{report.temporaries}},
                                  {"problems", document::Node::strings(report.problems)}});
}

class RegistryFsck final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "registry fsck"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Check that a registry holds what it says";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"--root", "DIR", "directory of the registry", &root_},
                {"--json", "", "the report as JSON", &json_}};
    }

    ExitCode run(const Services& services) override {
        if (!root_) {
            services.terminal.err("error: --root DIR must be given\n");
            return ExitCode::usage;
        }
        const auto report = registry::fsck(services.fs, services.current_directory / *root_);
        if (!report) {
            render_error(report.error(), services.terminal);
            return exit_code_for(report.error(), ExitCode::remote);
        }
        if (json_) {
            services.terminal.out(document::write_json(to_json(*report)));
        } else {
            services.terminal.out(to_text(*report));
        }
        return report->problems.empty() ? ExitCode::ok : ExitCode::remote;
    }

private:
    static std::string to_text(const registry::FsckReport& report) {
        std::string text;
        for (const std::string& problem : report.problems) {
            text += fmt::format("problem: {}\n", escape_control(problem));
        }
        text += fmt::format("{} repositories, {} refs, {} commits, {} trees, {} files, {} blobs\n",
                            report.repositories,
                            report.refs,
                            report.commits,
                            report.trees,
                            report.files,
                            report.blobs);
        text += fmt::format("{} blobs that nothing names, {}\n",
                            report.unreferenced_blobs,
                            counted(report.temporaries, "temporary file"));
        text +=
            report.problems.empty() ? "sound\n" : counted(report.problems.size(), "problem") + "\n";
        return text;
    }

    std::optional<std::string> root_{};
    bool json_ = false;
};

} // namespace

std::unique_ptr<Command> make_registry_fsck() {
    return std::make_unique<RegistryFsck>();
}

} // namespace kb::cli
