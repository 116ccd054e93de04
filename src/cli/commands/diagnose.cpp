// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/diagnose.hpp"

#include "base/text.hpp"
#include "build/inspect.hpp"
#include "build/loading.hpp"
#include "cli/commands/variants.hpp"
#include "cli/render.hpp"
#include "document/json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::cli {

namespace {

/// The answer for one library.
struct Diagnosis {
    std::string variant{};
    std::string library{};
    std::vector<build::Obstacle> obstacles{};
};

build::InspectOptions tables_only() {
    return {.paths = build::InspectOptions::Paths::skip};
}

std::optional<backend::Variant> variant_named(const std::string& name) {
    const auto parsed = backend::VariantName::parse(name);
    return parsed ? std::optional{parsed->variant()} : std::nullopt;
}

Diagnosis diagnose_library(const check::Library& library,
                           const project::VariantDir& variant,
                           const build::HostFacts& facts,
                           const Services& services) {
    build::LoadQuestion question{.library = &library, .variant = variant_named(variant.name)};
    if (const auto metadata = project::read_metadata(services.fs, variant)) {
        question.archs = metadata->archs;
    }
    std::vector<build::HostLibrary> libraries;
    if (library.object) {
        const sys::Path directory = (variant.path / library.path).parent_path();
        libraries = build::read_host_libraries(services.fs, facts, *library.object, directory);
    }
    return {.variant = variant.name,
            .library = library.path,
            .obstacles = build::find_obstacles(question, facts, libraries)};
}

/// A variant without a library loads wherever Python does, if it is meant to have none.
Diagnosis diagnose_python_alone(const project::VariantDir& variant) {
    const auto name = variant_named(variant.name);
    Diagnosis out{.variant = variant.name};
    if (!name || name->framework != backend::FrameworkId::torch_noarch) {
        out.obstacles.push_back({.cause = "library",
                                 .text = "it holds no shared library",
                                 .next = "build or download it again"});
    }
    return out;
}

/// The variant directory that holds a library, by its name.
project::VariantDir holder_of(const sys::Path& file) {
    const sys::Path directory = file.parent_path();
    return {.name = directory.filename().string(), .path = directory};
}

Result<std::vector<Diagnosis>>
diagnose_file(const sys::Path& path, const build::HostFacts& facts, const Services& services) {
    check::Library library{.path = path.filename().string()};
    auto object = build::inspect_file(path, tables_only());
    if (object) {
        library.object = std::move(*object);
    } else {
        library.unread_reason = object.error().to_text();
    }
    return std::vector{diagnose_library(library, holder_of(path), facts, services)};
}

Result<std::vector<Diagnosis>> diagnose_variants(const project::Discovery& found,
                                                 const build::HostFacts& facts,
                                                 const Services& services) {
    std::vector<Diagnosis> out;
    for (const project::VariantDir& variant : found.variants) {
        KB_TRY(const std::vector<check::Library> libraries,
               build::inspect_libraries(services.fs, variant.path, tables_only()));
        for (const check::Library& library : libraries) {
            out.push_back(diagnose_library(library, variant, facts, services));
        }
        if (libraries.empty()) {
            out.push_back(diagnose_python_alone(variant));
        }
    }
    return out;
}

void render_text(const std::vector<Diagnosis>& diagnoses, Terminal& terminal) {
    for (const Diagnosis& diagnosis : diagnoses) {
        const bool both = !diagnosis.variant.empty() && !diagnosis.library.empty();
        std::string text = diagnosis.variant + (both ? "/" : "") + diagnosis.library;
        text = escape_control(text);
        text += diagnosis.obstacles.empty() ? ": should load here\n" : ": does not load here\n";
        for (const build::Obstacle& obstacle : diagnosis.obstacles) {
            text += fmt::format("  {} [{}]\n", escape_control(obstacle.text), obstacle.cause);
            if (!obstacle.next.empty()) {
                text += fmt::format("    next: {}\n", escape_control(obstacle.next));
            }
        }
        terminal.out(text);
    }
}

document::Node to_json(const std::vector<Diagnosis>& diagnoses, const build::HostFacts& facts) {
    const auto text_of = [](const std::optional<Version>& version) {
        return version ? document::Node{version->to_text()} : document::Node{};
    };
    document::Node items = document::Node::array();
    for (const Diagnosis& diagnosis : diagnoses) {
        document::Node obstacles = document::Node::array();
        for (const build::Obstacle& obstacle : diagnosis.obstacles) {
            obstacles.push(document::Node::table({{"cause", obstacle.cause},
                                                  {"text", escape_control(obstacle.text)},
                                                  {"next", escape_control(obstacle.next)}}));
        }
        items.push(document::Node::table({{"variant", diagnosis.variant},
                                          {"library", diagnosis.library},
                                          {"loads", diagnosis.obstacles.empty()},
                                          {"obstacles", std::move(obstacles)}}));
    }
    return document::Node::table(
        {{"schema", "kernel-builder/diagnosis/1"},
         {"host",
          document::Node::table({{"python", text_of(facts.python)},
                                 {"torch", text_of(facts.torch)},
                                 {"cuda", text_of(facts.torch_cuda)},
                                 {"driver", facts.nvidia_driver},
                                 {"devices", document::Node::strings(facts.devices)}})},
         {"libraries", std::move(items)}});
}

} // namespace

ExitCode diagnose(const DiagnoseRequest& request, const Services& services) {
    const sys::Path path = resolve_directory(request.what, services);
    const auto info = services.fs.stat(path);
    if (!info) {
        services.terminal.err(fmt::format(
            "error: there is no '{}' here\n"
            "note: WHAT is a library, a variant or a directory of variants; download a repository "
            "first\n",
            escape_control(request.what)));
        return ExitCode::usage;
    }
    std::optional<project::Discovery> found;
    if (info->type == sys::FileType::directory) {
        const auto variants = find_variants(request.what, services);
        if (!variants) {
            return ExitCode::usage;
        }
        found = *variants;
    }
    const build::HostFacts facts = build::read_host_facts(
        services.fs, services.processes, services.environment, request.python);
    const auto diagnoses =
        found ? diagnose_variants(*found, facts, services) : diagnose_file(path, facts, services);
    if (!diagnoses) {
        render_error(diagnoses.error(), services.terminal);
        return ExitCode::failed;
    }
    if (request.json) {
        services.terminal.out(document::write_json(to_json(*diagnoses, facts)));
    } else {
        render_text(*diagnoses, services.terminal);
    }
    const bool all = std::ranges::all_of(
        *diagnoses, [](const Diagnosis& diagnosis) { return diagnosis.obstacles.empty(); });
    return all ? ExitCode::ok : ExitCode::failed;
}

} // namespace kb::cli
