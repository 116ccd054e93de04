// SPDX-License-Identifier: Apache-2.0
#include "cli/selection_options.hpp"

#include "backend/arch.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::cli {

namespace {

plan::VersionSet
versions(std::string_view flag, const std::string& text, Diagnostics& diagnostics) {
    if (text.empty()) {
        return {};
    }
    Result<plan::VersionSet> parsed = plan::VersionSet::parse(text);
    if (!parsed) {
        diagnostics.error("bad-selection", {.file = std::string{flag}}, parsed.error().to_text());
        return {};
    }
    return std::move(parsed).value();
}

std::vector<std::string> items(const std::string& text) {
    std::vector<std::string> out;
    for (const std::string_view item : split(text, ',')) {
        if (!trim(item).empty()) {
            out.emplace_back(trim(item));
        }
    }
    return out;
}

/// A device of any vendor; what nobody ever made would leave nothing, without a word.
std::vector<std::string> devices(const std::string& text, Diagnostics& diagnostics) {
    std::vector<std::string> out = items(text);
    for (const std::string& name : out) {
        const auto cuda = backend::check_arch(backend::BackendId::cuda, name);
        const auto rocm = backend::check_arch(backend::BackendId::rocm, name);
        if (cuda && rocm) {
            const backend::ArchProblem& problem = name.starts_with("gfx") ? *rocm : *cuda;
            diagnostics.error("bad-selection",
                              {.file = "--arch"},
                              escape_control(problem.message),
                              problem.notes);
        }
    }
    return out;
}

} // namespace

std::vector<OptionRow> SelectionOptions::rows() {
    return {
        {.name = "--torch",
         .value = "VERSIONS",
         .help = "torch versions, e.g. 2.13 or '>=2.11,<2.15'",
         .target = &torch},
        {.name = "--cuda",
         .value = "VERSIONS",
         .help = "CUDA versions, e.g. 13.0 or 13.*",
         .target = &cuda},
        {.name = "--rocm", .value = "VERSIONS", .help = "ROCm versions", .target = &rocm},
        {.name = "--arch",
         .value = "ARCHS",
         .help = "devices that must be served, e.g. 9.0,gfx942",
         .target = &arch},
        {.name = "--backend",
         .value = "NAMES",
         .help = "backends, e.g. cpu,cuda",
         .target = &backend},
        {.name = "--platform",
         .value = "NAMES",
         .help = "platforms, e.g. x86_64-linux",
         .target = &platform},
        {.name = "--variant",
         .value = "NAME",
         .help = "exactly this variant (may be given again)",
         .target = &variants},
        {.name = "--latest", .help = "only the newest torch of each backend", .target = &latest},
        {.name = "--all-rows",
         .help = "also what is known but not part of the matrix",
         .target = &all_rows}};
}

bool SelectionOptions::any() const {
    return latest || all_rows || !variants.empty() ||
           !(torch + cuda + rocm + arch + backend + platform).empty();
}

namespace {

void add_platform(plan::Selection& selection, const backend::Variant& variant) {
    const bool noarch = variant.framework == backend::FrameworkId::torch_noarch;
    if (!noarch &&
        std::ranges::find(selection.platforms, variant.platform) == selection.platforms.end()) {
        selection.platforms.push_back(variant.platform);
    }
}

} // namespace

void choose_platform(plan::Selection& selection,
                     const backend::Platform& host,
                     Diagnostics& diagnostics) {
    if (selection.platforms.empty()) {
        selection.platforms = {host};
    } else if (selection.platforms.size() > 1) {
        diagnostics.error("bad-selection",
                          {.file = "--platform"},
                          "one run builds for one platform",
                          {"run it once for each: '--platform x86_64-linux', '--platform "
                           "aarch64-linux'"});
    }
}

std::optional<plan::Selection> resolve(const SelectionOptions& options, Diagnostics& diagnostics) {
    Diagnostics problems;
    plan::Selection out{.torch = versions("--torch", options.torch, problems),
                        .cuda = versions("--cuda", options.cuda, problems),
                        .rocm = versions("--rocm", options.rocm, problems),
                        .archs = devices(options.arch, problems),
                        .variants = options.variants,
                        .latest = options.latest,
                        .bundle_only = !options.all_rows};
    for (const std::string& name : items(options.backend)) {
        if (const auto id = backend::parse_backend(name)) {
            out.backends.push_back(*id);
        } else {
            std::vector<std::string_view> known;
            for (const backend::BackendId candidate : backend::kAllBackends) {
                known.push_back(backend::to_text(candidate));
            }
            problems.error("bad-selection",
                           {.file = "--backend"},
                           fmt::format("'{}' is not a backend", escape_control(name)),
                           suggestion_note(name, known));
        }
    }
    for (const std::string& name : items(options.platform)) {
        if (const auto platform = backend::parse_platform(name)) {
            out.platforms.push_back(*platform);
        } else {
            problems.error("bad-selection",
                           {.file = "--platform"},
                           fmt::format("'{}' is not a platform, write for example 'x86_64-linux'",
                                       escape_control(name)));
        }
    }
    for (const std::string& name : options.variants) {
        const auto variant = backend::VariantName::parse(name);
        if (variant && options.platform.empty()) {
            add_platform(out, variant->variant());
        }
        if (!variant) {
            problems.error(
                "bad-selection",
                {.file = "--variant"},
                fmt::format(
                    "'{}' is not the name of a variant; 'kernel-builder list-variants' prints them",
                    escape_control(name)));
        }
    }
    const bool failed = problems.has_errors();
    diagnostics.append(std::move(problems));
    return failed ? std::nullopt : std::optional{std::move(out)};
}

} // namespace kb::cli
