// SPDX-License-Identifier: Apache-2.0
#include "generate/script_files.hpp"

#include "backend/mounts.hpp"
#include "base/assert.hpp"
#include "base/text.hpp"
#include "generate/host_paths.hpp"
#include "generate/quote.hpp"
#include "generate/template.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace kb::generate {

using backend::VariantName;
using plan::PlannedVariant;
using plan::Tu;

namespace {

std::string shell_words(const Words& words) {
    std::string text;
    for (const std::string_view word : words) {
        text += text.empty() ? "" : " ";
        text += quote_shell(word);
    }
    return text;
}

std::string source_path(const RelPath& path, std::string_view view) {
    return quote_ninja_path(fmt::format("{}{}/{}", view, backend::kSourceMount, path.text()));
}

/// The words as they run: at fixed places, or below the view.
std::string command_line(const Words& command, std::string_view view) {
    return quote_ninja_value(shell_words(view.empty() ? command : host_command(command, view)));
}

/// "CUDA relu.cu 9.0,10.0"
std::string description(const Tu& tu) {
    std::string text =
        fmt::format("{} {}", backend::to_text(tu.kind), escape_control(tu.source.text()));
    if (!tu.archs.empty()) {
        text += " [" + join(tu.archs, ",") + "]";
    }
    return text;
}

std::string tu_edge(const Tu& tu, std::string_view view) {
    const std::string_view rule = !tu.keep_dir.empty() ? "compile_keep"
                                  : !tu.before.empty() ? "compile_after"
                                                       : "compile";
    std::string text = fmt::format(
        "build {}: {} {}", quote_ninja_path(tu.object), rule, source_path(tu.source, view));
    if (!tu.headers.empty()) {
        text += " |";
        for (const RelPath& header : tu.headers) {
            text += ' ' + source_path(header, view);
        }
    }
    text += "\n  command_line = " + command_line(tu.command, view) + '\n';
    if (!tu.before.empty()) {
        text += "  before = " + command_line(tu.before, view) + '\n';
    }
    if (!tu.keep_dir.empty()) {
        text += "  keep = " + quote_ninja_value(quote_shell(tu.keep_dir)) + '\n';
    }
    text += "  what = " + quote_ninja_value(description(tu)) + '\n';
    return text;
}

std::string variant_edges(const PlannedVariant& variant, const ScriptInput& input) {
    const std::string name = quote_ninja_path(variant.name.text());
    if (variant.link.output.empty()) {
        return fmt::format("build {}: phony\n", name); // noarch: nothing is compiled
    }
    const std::string output = quote_ninja_path(variant.link.output);
    std::string text = fmt::format("build {}: link", output);
    for (const std::string_view id : variant.tus) {
        text += ' ' + quote_ninja_path(input.plan.tu(id).object);
    }
    text += "\n  command_line = " + command_line(variant.link.command, input.view) + '\n';
    text += "  what = " + quote_ninja_value(variant.name.text()) + '\n';
    text += fmt::format("build {}: phony {}\n", name, output);
    return text;
}

std::vector<const PlannedVariant*> chosen_variants(const ScriptInput& input) {
    std::vector<const PlannedVariant*> chosen;
    for (const PlannedVariant& variant : input.plan.variants) {
        if (std::ranges::find(input.variants, variant.name) != input.variants.end()) {
            chosen.push_back(&variant);
        }
    }
    KB_ASSERT(chosen.size() == input.variants.size(), "the variants are those of the plan, once");
    return chosen;
}

std::string ninja_file(const ScriptInput& input, const std::vector<const PlannedVariant*>& chosen) {
    std::set<std::string> needed;
    for (const PlannedVariant* variant : chosen) {
        needed.insert(variant->tus.begin(), variant->tus.end());
    }
    std::string text{embedded_text("script/head.ninja")};
    for (const Tu& tu : input.plan.tus) {
        if (needed.contains(tu.id)) {
            text += '\n' + tu_edge(tu, input.view);
        }
    }
    for (const PlannedVariant* variant : chosen) {
        text += '\n' + variant_edges(*variant, input);
    }
    text += "\ndefault";
    for (const PlannedVariant* variant : chosen) {
        text += ' ' + quote_ninja_path(variant->name.text());
    }
    return text + '\n';
}

/// `place` as the name of a shell variable: "/toolchain/cuda-13.0" -> "root_toolchain_cuda_13_0".
std::string shell_name(std::string_view place) {
    std::string text = "root";
    for (const char c : place) {
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        text += plain ? c : '_';
    }
    return text;
}

std::vector<std::string> names_of(const std::vector<const PlannedVariant*>& variants) {
    std::vector<std::string> names;
    for (const PlannedVariant* variant : variants) {
        names.push_back(variant->name.text());
    }
    return names;
}

std::string host_script(const ScriptInput& input,
                        const std::vector<const PlannedVariant*>& chosen) {
    std::string environment;
    for (const auto& [name, value] : hermetic_environment()) {
        if (name != "PATH" && name != "HOME" && name != "TMPDIR") {
            environment += fmt::format("  {}={} \\\n", name, quote_shell(value));
        }
    }
    environment +=
        "  PATH=\"$view/bin:/usr/bin:/bin\" HOME=\"$here/tmp\" TMPDIR=\"$here/tmp\" \\\n";
    return render_embedded("script/build_host.sh",
                           {{"kernel", input.plan.kernel},
                            {"level", input.level},
                            {"variants", names_of(chosen)},
                            {"view", escape_control(input.view)},
                            {"quoted_view", quote_shell(input.view)},
                            {"environment", environment}});
}

std::string build_script(const ScriptInput& input,
                         const std::vector<const PlannedVariant*>& chosen) {
    std::vector<ScriptMount> mounts = input.mounts;
    std::ranges::sort(mounts);
    std::string defaults;
    std::string cases;
    std::string binds;
    for (const ScriptMount& mount : mounts) {
        const std::string name = shell_name(mount.place);
        defaults += fmt::format("{}={}\n", name, quote_shell(mount.directory));
        cases += fmt::format("    {}=*) {}=${{1#*=}} ;;\n", quote_shell(mount.place), name);
        binds += fmt::format("  --ro-bind \"${}\" {} \\\n", name, quote_shell(mount.place));
    }
    std::string environment;
    for (const auto& [name, value] : hermetic_environment()) {
        environment += fmt::format("  --setenv {} {} \\\n", name, quote_shell(value));
    }
    return render_embedded("script/build.sh",
                           {{"kernel", input.plan.kernel},
                            {"variants", names_of(chosen)},
                            {"defaults", defaults},
                            {"cases", cases},
                            {"binds", binds},
                            {"environment", environment}});
}

} // namespace

std::span<const std::pair<std::string_view, std::string_view>> hermetic_environment() {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kEnvironment{{
        {"HOME", "/home"},
        {"LANG", "C"},
        {"LC_ALL", "C"},
        {"PATH", "/usr/bin"},
        {"SOURCE_DATE_EPOCH", "315532800"},
        {"TMPDIR", "/tmp"},
        {"TZ", "UTC"},
        {"ZERO_AR_DATE", "1"},
    }};
    return kEnvironment;
}

std::vector<std::pair<std::string, std::string>> host_environment(std::string_view view,
                                                                  std::string_view work) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const auto& [name, value] : hermetic_environment()) {
        out.emplace_back(name, value);
        if (name == "PATH") {
            out.back().second = fmt::format("{}/bin:/usr/bin:/bin", view);
        } else if (name == "HOME" || name == "TMPDIR") {
            out.back().second = fmt::format("{}/tmp", work);
        }
    }
    return out;
}

std::vector<FileImage> script_files(const ScriptInput& input) {
    const std::vector<const PlannedVariant*> chosen = chosen_variants(input);
    return {
        {RelPath::literal("build.ninja"), ninja_file(input, chosen), FileMode::regular},
        {RelPath::literal("build.sh"),
         input.view.empty() ? build_script(input, chosen) : host_script(input, chosen),
         FileMode::executable},
    };
}

} // namespace kb::generate
