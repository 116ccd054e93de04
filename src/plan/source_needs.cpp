// SPDX-License-Identifier: Apache-2.0
#include "plan/source_needs.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <map>

namespace kb::plan {

namespace {

void append_values(std::vector<std::string>& to, const config::Strings& list) {
    for (const auto& item : list) {
        to.push_back(item.value);
    }
}

/// Include folders of each source; a source of two sections has those of both.
using IncludeDirs = std::map<std::string, std::vector<std::string>>;

void add_sources(IncludeDirs& sources, const config::Strings& src, const config::Strings& include) {
    std::vector<std::string> dirs;
    for (const auto& item : include) {
        if (auto dir = source_path(item.value)) {
            dirs.push_back(std::move(*dir));
        }
    }
    for (const auto& item : src) {
        if (const auto path = source_path(item.value)) {
            std::vector<std::string>& all = sources[*path];
            all.insert(all.end(), dirs.begin(), dirs.end());
        }
    }
}

} // namespace

SourceNeeds needs_of(const Reach& reach, backend::FrameworkId framework) {
    const bool tvm = framework == backend::FrameworkId::tvm_ffi;
    return {.framework = tvm ? reach.tvm_ffi : reach.torch,
            .python = !tvm && (reach.python || reach.torch),
            .ops = reach.ops};
}

std::uint32_t
cxx_standard(const SourceNeeds& needs, const FrameworkRow& framework, const ToolkitRow& toolkit) {
    return needs.framework ? framework.cxx_standard : toolkit.cxx_standard;
}

std::vector<std::string> device_flags(const config::Section& section) {
    using enum backend::BackendId;
    std::vector<std::string> flags;
    if (section.backend.value == cuda) {
        append_values(flags, section.cuda_flags);
    } else if (section.backend.value == rocm) {
        append_values(flags, section.cxx_flags);
        append_values(flags, section.hip_flags);
    } else if (section.backend.value == xpu) {
        append_values(flags, section.cxx_flags);
        append_values(flags, section.sycl_flags);
    }
    return flags;
}

std::vector<std::string> common_include(const SourceSnapshot& snapshot) {
    const bool has_csrc = std::ranges::any_of(snapshot.files, [](const SourceFile& file) {
        return file.path.text().starts_with("csrc/");
    });
    return has_csrc ? std::vector<std::string>{"csrc"} : std::vector<std::string>{};
}

std::optional<std::string> source_path(std::string_view text) {
    std::string path;
    for (const std::string_view part : split(text, '/')) {
        if (part.empty() || part == ".") {
            continue;
        }
        if (part == "..") {
            return std::nullopt;
        }
        path += path.empty() ? "" : "/";
        path += part;
    }
    return text.starts_with('/') ? std::nullopt : std::optional{path};
}

std::vector<DeclaredSource> declared_sources(const config::Config& config,
                                             const SourceSnapshot& snapshot,
                                             backend::BackendId backend) {
    IncludeDirs sources;
    add_sources(sources, config::binding_src(config), config::binding_include(config));
    for (const config::Section* section : config::sections_of(config, backend)) {
        add_sources(sources, section->src, section->include);
    }
    const IncludeGraph graph{snapshot};
    const std::vector<std::string> common = common_include(snapshot);
    const backend::FrameworkId framework = config::framework_for(config, backend);
    std::vector<DeclaredSource> declared;
    for (auto& [path, dirs] : sources) {
        Reach reach{.torch = true, .python = true, .tvm_ffi = true, .ops = true};
        if (const SourceFile* file = graph.find(path)) {
            dirs.insert(dirs.end(), common.begin(), common.end());
            reach = graph.reach(*file, dirs);
        }
        declared.push_back({.path = path, .needs = needs_of(reach, framework)});
    }
    return declared;
}

} // namespace kb::plan
