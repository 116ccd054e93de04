// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::plan {

namespace {

void add_list(std::string& text, std::string_view key, const config::Strings& list) {
    for (const auto& item : list) {
        text += fmt::format("{} {}\n", key, item.value);
    }
}

void add_optional_list(std::string& text,
                       std::string_view key,
                       const std::optional<config::Strings>& list) {
    if (list) {
        text += fmt::format("{} given\n", key);
        add_list(text, key, *list);
    }
}

void add_section(std::string& text, const config::Section& section) {
    text += fmt::format("section {} {}\n", section.id.value, to_text(section.backend.value));
    for (const auto& dependency : section.depends) {
        text += fmt::format("depends {}\n", config::to_text(dependency.value));
    }
    add_list(text, "src", section.src);
    add_list(text, "include", section.include);
    add_list(text, "cxx-flags", section.cxx_flags);
    add_list(text, "cuda-flags", section.cuda_flags);
    add_list(text, "hip-flags", section.hip_flags);
    add_list(text, "sycl-flags", section.sycl_flags);
    add_optional_list(text, "cuda-capabilities", section.cuda_capabilities);
    add_optional_list(text, "rocm-archs", section.rocm_archs);
    if (section.cuda_minver) {
        text += fmt::format("cuda-minver {}\n", section.cuda_minver->value.to_text());
    }
}

/// What build.toml says that reaches the library; comments and order of keys do not.
std::string config_lines(const config::Config& config) {
    std::string text =
        fmt::format("name {}\nversion {}\n", config.name.text(), config.version.value);
    for (const BackendId id : config::distinct_backends(config)) {
        text += fmt::format("backend {}", to_text(id));
        if (const auto abi = config::stable_abi_for(config, id)) {
            text += fmt::format(" stable-abi {}", abi->major_minor().to_text());
        }
        text += '\n';
    }
    add_list(text, "binding-src", config::binding_src(config));
    add_list(text, "binding-include", config::binding_include(config));
    add_list(text, "binding-cxx-flags", config::binding_cxx_flags(config));
    for (const config::Section& section : config.sections) {
        add_section(text, section);
    }
    return text;
}

template <typename File>
void add_files(std::string& text, std::string_view key, std::vector<const File*> files) {
    std::ranges::sort(
        files, {}, [](const File* file) -> const std::string& { return file->path.text(); });
    for (const File* file : files) {
        text += fmt::format("{} {} {}\n", key, file->sha256.hex(), file->path.text());
    }
}

} // namespace

std::string unique_id(const config::Config& config, const SourceSnapshot& snapshot) {
    std::string text = "kernel-builder/ops-id/1\n" + config_lines(config);
    std::vector<const SourceFile*> sources;
    for (const SourceFile& file : snapshot.files) {
        if (!file.generated) {
            sources.push_back(&file);
        }
    }
    std::vector<const PackageFile*> package;
    for (const PackageFile& file : snapshot.package) {
        package.push_back(&file);
    }
    add_files(text, "source", std::move(sources));
    add_files(text, "package", std::move(package));
    return digest::sha256(text).hex().substr(0, 10);
}

std::string ops_id(const config::Config& config, BackendId backend, std::string_view unique_id) {
    return fmt::format("_{}_{}_{}", config.name.module_name(), to_text(backend), unique_id);
}

} // namespace kb::plan
