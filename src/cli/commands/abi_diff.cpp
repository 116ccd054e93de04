// SPDX-License-Identifier: Apache-2.0
#include "check/abi_diff.hpp"

#include "base/text.hpp"
#include "build/inspect.hpp"
#include "check/cxx_names.hpp"
#include "cli/commands/table.hpp"
#include "cli/commands/variants.hpp"
#include "cli/render.hpp"
#include "document/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Compares two builds of a library, A (older) and B: exported and wanted symbols, needed libraries
and symbol versions, schemas of operators as far as they stand in the file, architectures of the
device code, and the size of each section. Writes nothing.

Exit codes: 0 nothing that a user of A relies on is gone, 1 an export, a schema or an architecture
of A is gone, 2 usage.

Examples:
  kernel-builder abi diff old/_k.abi3.so new/_k.abi3.so
  kernel-builder abi diff old.so new.so --json)";

/// Names that are listed of one kind; the rest is counted.
constexpr std::size_t kShown = 20;

struct Kind {
    std::string_view name{};
    const check::NameChanges* changes = nullptr;
};

std::array<Kind, 6> kinds_of(const check::AbiDiff& diff) {
    return {{{"export", &diff.exports},
             {"schema", &diff.schemas},
             {"architecture", &diff.archs},
             {"needed library", &diff.needed},
             {"needed version", &diff.versions},
             {"import", &diff.imports}}};
}

std::string lines_of(char sign, std::string_view kind, const std::vector<std::string>& names) {
    std::string out;
    for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
        out += fmt::format("{} {} {}\n", sign, kind, escape_control(check::readable(names[i])));
    }
    if (names.size() > kShown) {
        out += fmt::format(
            "{} and {} more of this kind; --json lists all\n", sign, names.size() - kShown);
    }
    return out;
}

std::string text_of(const check::AbiDiff& diff) {
    std::string out;
    for (const Kind& kind : kinds_of(diff)) {
        out += lines_of('-', kind.name, kind.changes->removed);
        out += lines_of('+', kind.name, kind.changes->added);
    }
    for (const check::SectionChange& section : diff.sections) {
        const auto change =
            static_cast<std::int64_t>(section.after) - static_cast<std::int64_t>(section.before);
        out += fmt::format("  section {}: {} -> {} bytes ({:+})\n",
                           escape_control(section.name),
                           section.before,
                           section.after,
                           change);
    }
    if (out.empty()) {
        return "no difference\n";
    }
    return out + (diff.breaks() ? "users of the older one lose something\n"
                                : "nothing that users of the older one rely on is gone\n");
}

document::Node to_json(const check::AbiDiff& diff) {
    document::Node out =
        document::Node::table({{"schema", "kernel-builder/abi-diff/1"}, {"breaks", diff.breaks()}});
    constexpr std::array<std::string_view, 6> kKeys{
        "exports", "schemas", "archs", "needed", "versions", "imports"};
    const auto kinds = kinds_of(diff);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        out.set(
            kKeys[i],
            document::Node::table({{"removed", document::Node::strings(kinds[i].changes->removed)},
                                   {"added", document::Node::strings(kinds[i].changes->added)}}));
    }
    document::Node sections = document::Node::array();
    for (const check::SectionChange& section : diff.sections) {
        sections.push(document::Node::table(
            {{"name", section.name}, {"before", section.before}, {"after", section.after}}));
    }
    out.set("sections", std::move(sections));
    return out;
}

class AbiDiffCommand final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "abi diff"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Compare two builds of a library";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{.name = "A",
                 .value = "",
                 .help = "the older library",
                 .target = &a_,
                 .required = true},
                {.name = "B",
                 .value = "",
                 .help = "the newer library",
                 .target = &b_,
                 .required = true},
                {"--json", "", "the difference as JSON", &json_}};
    }

    ExitCode run(const Services& services) override {
        const auto before = build::read_abi(resolve_directory(a_, services));
        const auto after = build::read_abi(resolve_directory(b_, services));
        for (const auto* side : {&before, &after}) {
            if (!*side) {
                render_error(side->error(), services.terminal);
                return ExitCode::usage;
            }
        }
        const check::AbiDiff diff = check::diff_abi(before->side(), after->side());
        services.terminal.out(json_ ? document::write_json(to_json(diff)) : text_of(diff));
        return diff.breaks() ? ExitCode::failed : ExitCode::ok;
    }

private:
    std::string a_{};
    std::string b_{};
    bool json_ = false;
};

} // namespace

std::unique_ptr<Command> make_abi_diff() {
    return std::make_unique<AbiDiffCommand>();
}

} // namespace kb::cli
