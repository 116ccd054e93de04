// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/card.hpp"

#include "cli/render.hpp"
#include "generate/card.hpp"

namespace kb::cli {

namespace {

/// A card is a page; Python files are read for their names only.
constexpr std::uint64_t kMaxBytes = 1UL << 20U;

/// Text of the first of these files that exists, or "".
Result<std::string> first_text(sys::FileSystem& fs, std::initializer_list<sys::Path> paths) {
    for (const sys::Path& path : paths) {
        auto text = fs.read_file(path, kMaxBytes);
        if (text || text.error().code != ErrorCode::not_found) {
            return text;
        }
    }
    return std::string{};
}

} // namespace

FilledCard fill_card(const project::Project& project, const Services& services) {
    const sys::Path root = project.root();
    const sys::Path package = root / project::package_directory(project.config).text();
    const auto card = services.fs.read_file(root / "CARD.md", kMaxBytes);
    const auto init = first_text(services.fs, {package / "__init__.py"});
    const auto layers =
        first_text(services.fs, {package / "layers" / "__init__.py", package / "layers.py"});
    for (const auto* text : {&card, &init, &layers}) {
        if (!*text) {
            render_error(text->error(), services.terminal);
            return {.code = ExitCode::failed};
        }
    }
    Diagnostics diagnostics;
    auto filled = generate::render_card(
        {.config = project.config,
         .card = *card,
         .card_name = "CARD.md",
         .package_init = *init,
         .layers = *layers,
         .has_benchmark = sys::exists(services.fs, root / "benchmarks" / "benchmark.py")},
        diagnostics);
    if (!filled) {
        render_diagnostics(
            diagnostics,
            {{"CARD.md", *card}, {project.text.config_name, project.text.config_text}},
            services.terminal);
        return {.code = ExitCode::configuration};
    }
    return {.text = *std::move(filled)};
}

bool wants_card(const project::Project& project, const Services& services) {
    return project.config.hub.repo_id && sys::exists(services.fs, project.root() / "CARD.md");
}

} // namespace kb::cli
