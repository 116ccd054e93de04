// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "config/decode.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::config {

namespace {

using document::Node;
using document::Reader;

std::vector<Located<NativeDependency>> read_depends(Reader& reader) {
    std::vector<Located<NativeDependency>> out;
    for (const Located<std::string>& text : read_strings(reader, "depends")) {
        if (const auto dependency = parse_native_dependency(text.value)) {
            out.push_back({.value = *dependency, .span = text.span});
            continue;
        }
        const std::span<const std::string_view> known = native_dependency_names();
        std::vector<std::string> notes = suggestion_note(text.value, known);
        const std::vector<std::string> names{known.begin(), known.end()};
        notes.push_back(fmt::format("known dependencies: {}", quoted_list(names)));
        reader.diagnostics().error("unknown-dependency",
                                   text.span,
                                   fmt::format("'depends' in {}: there is no dependency '{}'",
                                               reader.path(),
                                               escape_control(text.value)),
                                   std::move(notes));
    }
    return out;
}

/// The keys that sections of all backends have.
void decode_common(Reader& reader, Section& section) {
    section.depends = read_depends(reader);
    section.src = read_strings(reader, "src");
    section.include = read_strings(reader, "include");
}

void decode_flags(Reader& reader, Section& section) {
    section.cxx_flags = read_strings(reader, "cxx-flags");
    const BackendId backend = section.backend.value;
    if (backend == BackendId::cuda) {
        section.cuda_capabilities = reader.strings("cuda-capabilities");
        section.cuda_flags = read_strings(reader, "cuda-flags");
        section.cuda_minver = read_bound(reader, "cuda-minver");
    }
    if (backend == BackendId::rocm) {
        section.rocm_archs = reader.strings("rocm-archs");
        section.hip_flags = read_strings(reader, "hip-flags");
    }
    if (backend == BackendId::xpu) {
        section.sycl_flags = read_strings(reader, "sycl-flags");
    }
}

std::string path_of(const document::Entry& entry) {
    return fmt::format("[kernel.{}]", key_text(entry.key));
}

/// The backend that a section names, if it may have sections.
std::optional<Located<BackendId>>
section_backend(const Node& node, const std::string& path, Diagnostics& diagnostics) {
    Reader reader{node, path, diagnostics};
    const std::optional<Located<std::string>> text = reader.string("backend");
    if (!text) {
        return std::nullopt;
    }
    std::optional<Located<BackendId>> backend = to_backend(*text, diagnostics);
    if (backend && !backend::has_kernel_sections(backend->value)) {
        diagnostics.error(
            "unknown-backend",
            text->span,
            fmt::format("{}: backend '{}' has no kernel sections", path, text->value),
            {"sections may name 'cpu', 'cuda', 'metal', 'rocm' and 'xpu'; for others put the "
             "Python code under [torch-noarch]"});
        return std::nullopt;
    }
    return backend;
}

Section decode_section(const DecodeContext& context, const document::Entry& entry) {
    Section section{.id = {.value = entry.key, .span = entry.value.key_span},
                    .span = entry.value.span};
    const std::string path = path_of(entry);
    const auto backend = section_backend(entry.value, path, *context.diagnostics);
    Reader reader = open_table(context,
                               TableId::kernel,
                               entry.value,
                               path,
                               backend ? std::optional<BackendId>{backend->value} : std::nullopt);
    if (backend) {
        section.backend = *backend;
    }
    decode_common(reader, section);
    decode_flags(reader, section);
    return section;
}

/// Edition 1: `language` instead of a backend, and "cuda-hipify" means two sections.
std::vector<Section>
decode_v1(const DecodeContext& context, const document::Entry& entry, const Node& all) {
    Section cuda{.id = {.value = entry.key, .span = entry.value.key_span},
                 .backend = {.value = BackendId::cuda, .span = entry.value.span},
                 .span = entry.value.span};
    Reader reader = open_table(context, TableId::kernel, entry.value, path_of(entry));
    decode_common(reader, cuda);
    const auto language =
        reader.string("language")
            .value_or(Located<std::string>{.value = "cuda", .span = entry.value.span});
    cuda.backend.span = language.span;
    Section rocm = cuda;
    cuda.cuda_capabilities = reader.strings("cuda-capabilities");
    rocm.rocm_archs = reader.strings("rocm-archs");
    if (language.value == "cuda") {
        return {std::move(cuda)};
    }
    if (language.value == "metal") {
        cuda.backend.value = BackendId::metal;
        cuda.cuda_capabilities.reset();
        return {std::move(cuda)};
    }
    if (language.value != "cuda-hipify") {
        static constexpr std::string_view kLanguages[] = {"cuda", "cuda-hipify", "metal"};
        context.diagnostics->error(
            "unknown-language",
            language.span,
            fmt::format("{}: there is no language '{}'", path_of(entry), language.value),
            suggestion_note(language.value, kLanguages));
        return {};
    }
    rocm.backend.value = BackendId::rocm;
    rocm.id.value += "_rocm";
    if (all.find(rocm.id.value) != nullptr) {
        context.diagnostics->error(
            "name-clash",
            language.span,
            fmt::format("{} becomes a second section 'kernel.{}', which exists already",
                        path_of(entry),
                        rocm.id.value));
    }
    return {std::move(cuda), std::move(rocm)};
}

} // namespace

std::vector<Section> decode_sections(const DecodeContext& context, const Node& root) {
    std::vector<Section> out;
    Reader reader{root, "build.toml", *context.diagnostics};
    const Node* kernels = reader.table("kernel");
    if (kernels == nullptr) {
        return out;
    }
    for (const document::Entry& entry : kernels->entries()) {
        if (!entry.value.is_table()) {
            context.diagnostics->error("wrong-type",
                                       entry.value.span,
                                       fmt::format("'kernel.{}' must be a table, not {}",
                                                   key_text(entry.key),
                                                   entry.value.kind_text()),
                                       {"a section is written [kernel.NAME]"});
            continue;
        }
        if (context.edition == Edition::v1) {
            std::ranges::move(decode_v1(context, entry, *kernels), std::back_inserter(out));
        } else {
            out.push_back(decode_section(context, entry));
        }
    }
    return out;
}

} // namespace kb::config
