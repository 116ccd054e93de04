// SPDX-License-Identifier: Apache-2.0
#include "generate/cmake_tables.hpp"

#include "backend/rules.hpp"
#include "base/text.hpp"
#include "generate/quote.hpp"
#include "plan/plan.hpp"
#include "plan/source_needs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace kb::generate {

using backend::BackendId;
using backend::BackendRules;
using backend::SourceKind;

namespace {

/// Backends that a CMake project may be configured for.
std::vector<BackendId> compiled_backends() {
    std::vector<BackendId> ids;
    for (const BackendId id : backend::kAllBackends) {
        if (backend::has_kernel_sections(id)) {
            ids.push_back(id);
        }
    }
    return ids;
}

/// As plan::make spells them, so that one name means one file. What leaves the project stays as it
/// is: CMake says that it is not there.
std::vector<std::string> paths_of(const config::Strings& list) {
    std::vector<std::string> paths;
    for (const auto& item : list) {
        const std::string path = plan::source_path(item.value).value_or(item.value);
        paths.push_back(path.empty() ? "." : path);
    }
    return paths;
}

std::vector<std::string> values_of(const config::Strings& list) {
    std::vector<std::string> values;
    for (const auto& item : list) {
        values.push_back(item.value);
    }
    return values;
}

template <typename List>
std::string quoted_flags(const List& flags) {
    std::string text;
    for (const auto& flag : flags) {
        text += ' ' + cmake_flag(flag);
    }
    return text;
}

std::string set_line(std::string_view name, std::string_view value) {
    return value.empty() ? fmt::format("set({})\n", name)
                         : fmt::format("set({} {})\n", name, trim(value));
}

/// "  KEYWORD a b" with each value quoted, or nothing.
std::string argument(std::string_view keyword,
                     const std::vector<std::string>& values,
                     std::string (*quote)(std::string_view)) {
    if (values.empty()) {
        return {};
    }
    std::string text = fmt::format("\n  {}", keyword);
    for (const std::string& value : values) {
        text += ' ' + quote(value);
    }
    return text;
}

// The device code of an XPU library is made when it is linked (reference values of the format).
constexpr std::array<std::string_view, 9> kXpuLinkFlags{
    "-Wl,-z,noexecstack",
    "-fsycl",
    "--offload-compress",
    "-foffload-fp32-prec-div",
    "-foffload-fp32-prec-sqrt",
    "-fsycl-targets=spir64_gen,spir64",
    "-Xsycl-target-backend=spir64_gen",
    "-device pvc,xe-lpg,ats-m150 -options -cl-poison-unsupported-fp64-kernels,"
    "-cl-intel-enable-auto-large-GRF-mode,-cl-intel-greater-than-4GB-buffer-required",
    "-fPIC"};

/// "02" "0b" ... : torch's TORCH_TARGET_VERSION for a major and minor version.
std::string target_version(const Version& version) {
    return fmt::format("0x{:02x}{:02x}000000000000", version.major(), version.minor());
}

std::string backend_tables(const config::Config& config, BackendId id) {
    const BackendRules& rules = backend::rules_of(id);
    const std::string_view name = backend::to_text(id);
    std::string text;
    text += set_line(fmt::format("KB_DEFINITIONS_{}", name), quoted_flags(rules.definitions));
    text += set_line(fmt::format("KB_DEVICE_FLAGS_{}", name), quoted_flags(rules.device_flags));
    if (id == BackendId::xpu) {
        text += set_line("KB_LINK_FLAGS_xpu", quoted_flags(kXpuLinkFlags));
    }
    const auto stable = config::stable_abi_for(config, id);
    const auto binding = stable ? backend::TorchBinding::stable : backend::TorchBinding::versioned;
    text += set_line(fmt::format("KB_TORCH_LIBRARIES_{}", name),
                     quoted_flags(rules.torch_libraries(binding)));
    if (stable) {
        text += set_line(fmt::format("KB_STABLE_ABI_{}", name), stable->major_minor().to_text());
        text += set_line(fmt::format("KB_TORCH_TARGET_VERSION_{}", name), target_version(*stable));
    }
    return text;
}

/// Which sources are given the framework, Python and the operators' name.
std::string source_tables(const ProjectInput& input, BackendId id) {
    std::string framework;
    std::string python;
    std::string ops;
    for (const plan::DeclaredSource& source :
         plan::declared_sources(input.config, input.snapshot, id)) {
        const auto path = RelPath::parse(source.path);
        if (path && backend::common_source_kind(*path) == SourceKind::header) {
            continue;
        }
        const std::string item = ' ' + quote_cmake_item(source.path);
        framework += source.needs.framework ? item : "";
        python += source.needs.python ? item : "";
        ops += source.needs.ops ? item : "";
    }
    const std::string_view name = backend::to_text(id);
    return set_line(fmt::format("KB_FRAMEWORK_SOURCES_{}", name), framework) +
           set_line(fmt::format("KB_PYTHON_SOURCES_{}", name), python) +
           set_line(fmt::format("KB_OPS_SOURCES_{}", name), ops);
}

/// The C++ standard of sources without the framework: of the toolkit's row, or for backends whose
/// version the project does not look up, what all their rows can do.
std::string toolkit_standards(const plan::SupportMatrix& matrix, BackendId id) {
    std::vector<const plan::ToolkitRow*> rows;
    for (const plan::ToolkitRow& toolkit : matrix.toolkits) {
        if (toolkit.backend == id) {
            rows.push_back(&toolkit);
        }
    }
    KB_ASSERT(!rows.empty(), "every backend with sections has a toolkit row");
    std::ranges::sort(rows, {}, [](const plan::ToolkitRow* row) { return row->version; });
    std::string text;
    std::uint32_t common = rows.front()->cxx_standard;
    for (const plan::ToolkitRow* row : rows) {
        common = std::min(common, row->cxx_standard);
        if (!row->archs.builds.empty()) {
            text += fmt::format("set(KB_CXX_STANDARD_{}_{} {})\n",
                                backend::to_text(id),
                                row->version.major_minor().to_text(),
                                row->cxx_standard);
        }
    }
    return text.empty() ? fmt::format("set(KB_CXX_STANDARD_{}_ {})\n", backend::to_text(id), common)
                        : text;
}

std::vector<std::string> requested_archs(const config::Section& section) {
    if (section.cuda_capabilities) {
        return values_of(*section.cuda_capabilities);
    }
    if (section.rocm_archs) {
        return values_of(*section.rocm_archs);
    }
    return {};
}

bool names_archs(const config::Section& section) {
    return section.cuda_capabilities.has_value() || section.rocm_archs.has_value();
}

/// A section id as part of a variable's name: any TOML key may be one.
std::string variable_part(std::string_view id) {
    std::string text;
    for (const char c : id) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (plain) {
            text += c;
        } else {
            text += fmt::format("+{:02x}", static_cast<unsigned char>(c));
        }
    }
    return text;
}

bool is_device(SourceKind kind) {
    return kind == SourceKind::cuda || kind == SourceKind::hip || kind == SourceKind::sycl ||
           kind == SourceKind::metal;
}

/// What each toolkit builds for the section; a toolkit that is left with nothing gets an empty row,
/// which the project reports when it is configured with it. Flags that a toolkit does not know get
/// a row where they are left out.
std::string section_table(const config::Section& section, const plan::SupportMatrix& matrix) {
    const BackendRules& rules = backend::rules_of(section.backend.value);
    const std::vector<std::string> flags = plan::device_flags(section);
    const std::string id = variable_part(section.id.value);
    std::string text;
    for (const plan::ToolkitRow& toolkit : matrix.toolkits) {
        if (toolkit.backend != section.backend.value || toolkit.archs.builds.empty()) {
            continue;
        }
        const backend::ArchChoice choice =
            rules.choose_archs(requested_archs(section), toolkit.archs);
        const std::string version = toolkit.version.major_minor().to_text();
        text += set_line(fmt::format("KB_ARCHS_{}_{}", id, version), quoted_flags(choice.kept));
        const std::vector<std::string> usable = rules.usable_flags(flags, toolkit.version);
        if (usable != flags) {
            text += set_line(fmt::format("KB_FLAGS_{}_{}", id, version), quoted_flags(usable));
        }
    }
    return text;
}

std::string toolkit_versions(const plan::SupportMatrix& matrix, BackendId id) {
    std::vector<Version> versions;
    for (const plan::ToolkitRow& toolkit : matrix.toolkits) {
        if (toolkit.backend == id && !toolkit.archs.builds.empty()) {
            versions.push_back(toolkit.version.major_minor());
        }
    }
    std::ranges::sort(versions);
    std::string text;
    for (const Version& version : versions) {
        text += ' ' + version.to_text();
    }
    return text;
}

std::string framework_tables(std::string_view name, const std::vector<plan::FrameworkRow>& list) {
    std::vector<const plan::FrameworkRow*> rows;
    for (const plan::FrameworkRow& row : list) {
        rows.push_back(&row);
    }
    std::ranges::sort(rows, {}, [](const plan::FrameworkRow* row) { return row->version; });
    std::string names;
    std::string text;
    for (const plan::FrameworkRow* row : rows) {
        const std::string version = row->version.major_minor().to_text();
        names += ' ' + version;
        text += fmt::format("set(KB_CXX_STANDARD_{} {})\n", version, row->cxx_standard);
    }
    return set_line(fmt::format("KB_{}_ROWS", name), names) + text;
}

std::vector<std::string> native_dependencies(const config::Section& section) {
    std::vector<std::string> names;
    for (const auto& dependency : section.depends) {
        if (dependency.value != config::NativeDependency::torch) {
            names.emplace_back(config::to_text(dependency.value));
        }
    }
    return names;
}

std::string component(const config::Section& section) {
    const BackendRules& rules = backend::rules_of(section.backend.value);
    std::vector<std::string> host;
    std::vector<std::string> device;
    std::vector<std::string> headers;
    for (const std::string& source : paths_of(section.src)) {
        const auto path = RelPath::parse(source);
        const SourceKind kind = path ? rules.source_kind(*path) : SourceKind::cxx;
        auto& list = kind == SourceKind::cxx ? host : is_device(kind) ? device : headers;
        list.push_back(source);
    }
    std::string text = fmt::format("kb_kernel({} BACKEND {}",
                                   variable_part(section.id.value),
                                   backend::to_text(section.backend.value));
    if (section.cuda_minver) {
        text += fmt::format(" MIN_TOOLKIT {}", section.cuda_minver->value.to_text());
    }
    text += names_archs(section) ? " FIXED_ARCHS" : "";
    text += argument("DEPENDS", native_dependencies(section), quote_cmake_item);
    text += argument("CXX_SOURCES", host, quote_cmake_item);
    text += argument("CXX_FLAGS", values_of(section.cxx_flags), cmake_flag);
    text += argument("DEVICE_SOURCES", device, quote_cmake_item);
    text += argument("DEVICE_FLAGS", plan::device_flags(section), cmake_flag);
    text += argument("HEADERS", headers, quote_cmake_item);
    text += argument("INCLUDES", paths_of(section.include), quote_cmake_item);
    return text + ")\n";
}

/// GIT <repository> <tag> of a dependency that is fetched from its repository.
std::string fetch_arguments(const plan::DependencyRow& row) {
    std::vector<plan::Requirement> sources = row.requirements;
    if (row.upstream) {
        sources.push_back(*row.upstream);
    }
    for (const plan::Requirement& requirement : sources) {
        if (requirement.provider == "git") {
            return fmt::format("\n  REPOSITORY {} TAG {}", requirement.name, requirement.version);
        }
    }
    return {};
}

} // namespace

std::string cmake_flag(std::string_view flag) {
    std::string escaped;
    for (const char c : flag) {
        switch (c) {
        case ';':
            // Options are split once more after their expressions were evaluated.
            escaped += "\\\\$<SEMICOLON>";
            break;
        case '>':
            escaped += "$<ANGLE-R>";
            break;
        case '"':
        case '\\':
        case '$':
            escaped += '\\';
            escaped += c;
            break;
        default:
            escaped += c;
        }
    }
    return '"' + escaped + '"';
}

std::string cmake_tables(const ProjectInput& input) {
    const bool is_torch = std::holds_alternative<config::Torch>(input.config.framework);
    std::string text = is_torch ? framework_tables("TORCH", input.matrix.torch)
                                : framework_tables("TVM_FFI", input.matrix.tvm_ffi);
    text += set_line("KB_COMMON_INCLUDES", join(plan::common_include(input.snapshot), " "));
    for (const BackendId id : compiled_backends()) {
        if (config::lists_backend(input.config, id) ||
            !config::sections_of(input.config, id).empty()) {
            text += backend_tables(input.config, id);
            text += source_tables(input, id);
            text += toolkit_standards(input.matrix, id);
        }
    }
    for (const BackendId id : {BackendId::cuda, BackendId::rocm}) {
        text += set_line(fmt::format("KB_TOOLKITS_{}", backend::to_text(id)),
                         toolkit_versions(input.matrix, id));
    }
    for (const config::Section& section : input.config.sections) {
        text += section_table(section, input.matrix);
    }
    return text;
}

std::string cmake_binding(const config::Config& config) {
    std::vector<std::string> sources;
    for (const std::string& source : paths_of(config::binding_src(config))) {
        const auto path = RelPath::parse(source);
        if (!path || backend::common_source_kind(*path) != SourceKind::header) {
            sources.push_back(source);
        }
    }
    return "kb_binding(" + argument("SOURCES", sources, quote_cmake_item) +
           argument("INCLUDES", paths_of(config::binding_include(config)), quote_cmake_item) +
           argument("CXX_FLAGS", values_of(config::binding_cxx_flags(config)), cmake_flag) + ")\n";
}

std::string cmake_components(const config::Config& config) {
    std::string text;
    for (const BackendId id : compiled_backends()) {
        for (const config::Section* section : config::sections_of(config, id)) {
            text += "\n# [kernel." + section->id.value + "]\n" + component(*section);
        }
    }
    return text;
}

std::string cmake_dependencies(const ProjectInput& input) {
    std::set<std::pair<BackendId, std::string>> wanted;
    for (const config::Section& section : input.config.sections) {
        for (std::string& name : native_dependencies(section)) {
            wanted.emplace(section.backend.value, std::move(name));
        }
    }
    std::string text;
    for (const auto& [id, name] : wanted) {
        const plan::DependencyRow* row = plan::find_dependency(input.matrix, name);
        text += fmt::format("kb_dependency({} BACKEND {}", name, backend::to_text(id));
        if (row != nullptr) {
            text += fetch_arguments(*row);
            text += argument("INCLUDES", row->include, quote_cmake_item);
            text += argument("DEFINITIONS", row->definitions, cmake_flag);
        }
        text += ")\n";
    }
    return text;
}

} // namespace kb::generate
