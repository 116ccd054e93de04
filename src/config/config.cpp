// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace kb::config {

namespace {

constexpr std::array<PythonDependency, 6> kPythonDependencies{{
    {.name = "einops", .pip_package = "einops", .import_name = "einops"},
    {.name = "helion", .pip_package = "helion", .import_name = "helion"},
    {.name = "tvm-ffi", .pip_package = "apache-tvm-ffi", .import_name = "tvm_ffi"},
    {.name = "nvidia-cutlass-dsl",
     .pip_package = "nvidia-cutlass-dsl",
     .import_name = "cutlass",
     .backend = BackendId::cuda},
    {.name = "nki", .pip_package = "nki", .import_name = "nki", .backend = BackendId::neuron},
    {.name = "onednn", .pip_package = "onednn-devel", .import_name = "", .backend = BackendId::xpu},
}};

const Strings kNone{};

const BackendTable* table_for(const Config& config, BackendId backend) {
    const auto found = config.backend_tables.find(backend);
    return found == config.backend_tables.end() ? nullptr : &found->second;
}

std::optional<Version> value_of(const std::optional<Located<Version>>& located) {
    return located ? std::optional<Version>{located->value} : std::nullopt;
}

const std::optional<Strings>& pyext_of(const Config& config) {
    return std::visit(
        [](const auto& framework) -> const std::optional<Strings>& { return framework.pyext; },
        config.framework);
}

} // namespace

bool Section::operator==(const Section& other) const {
    const auto fields = [](const Section& s) {
        return std::tie(s.id,
                        s.backend,
                        s.depends,
                        s.src,
                        s.include,
                        s.cxx_flags,
                        s.cuda_capabilities,
                        s.cuda_flags,
                        s.cuda_minver,
                        s.rocm_archs,
                        s.hip_flags,
                        s.sycl_flags);
    };
    return fields(*this) == fields(other);
}

bool same_meaning(const Config& a, const Config& b) {
    const auto fields = [](const Config& c) {
        return std::tie(c.name,
                        c.version,
                        c.license,
                        c.upstream,
                        c.source,
                        c.backends,
                        c.kernel_depends,
                        c.python_depends,
                        c.backend_tables,
                        c.hub,
                        c.framework,
                        c.sections);
    };
    return fields(a) == fields(b);
}

std::vector<BackendId> distinct_backends(const Config& config) {
    std::vector<BackendId> out;
    for (const BackendId backend : backend::kAllBackends) {
        if (lists_backend(config, backend)) {
            out.push_back(backend);
        }
    }
    return out;
}

bool lists_backend(const Config& config, BackendId backend) {
    return std::ranges::find(config.backends, backend, &Located<BackendId>::value) !=
           config.backends.end();
}

std::vector<const Section*> sections_of(const Config& config, BackendId backend) {
    std::vector<const Section*> out;
    for (const Section& section : config.sections) {
        if (section.backend.value == backend) {
            out.push_back(&section);
        }
    }
    return out;
}

std::optional<Version> stable_abi_for(const Config& config, BackendId backend) {
    const auto* torch = std::get_if<Torch>(&config.framework);
    if (torch == nullptr || !torch->stable_abi) {
        return std::nullopt;
    }
    if (torch->stable_abi->all) {
        return torch->stable_abi->all->value;
    }
    const auto found = torch->stable_abi->by_backend.find(backend);
    return found == torch->stable_abi->by_backend.end()
               ? std::nullopt
               : std::optional<Version>{found->second.value};
}

backend::FrameworkId framework_for(const Config& config, BackendId backend) {
    if (std::holds_alternative<TorchNoarch>(config.framework)) {
        return backend::FrameworkId::torch_noarch;
    }
    if (std::holds_alternative<TvmFfi>(config.framework)) {
        return backend::FrameworkId::tvm_ffi;
    }
    return stable_abi_for(config, backend) ? backend::FrameworkId::torch_stable_abi
                                           : backend::FrameworkId::torch;
}

std::vector<KernelDependency> kernel_depends_for(const Config& config, BackendId backend) {
    std::vector<KernelDependency> out = config.kernel_depends;
    if (const BackendTable* table = table_for(config, backend)) {
        out.insert(out.end(), table->kernel_depends.begin(), table->kernel_depends.end());
    }
    return out;
}

std::vector<std::string> python_depends_for(const Config& config, BackendId backend) {
    std::vector<std::string> out;
    const auto append = [&](const Strings& names) {
        std::ranges::transform(names, std::back_inserter(out), &Located<std::string>::value);
    };
    append(config.python_depends);
    // The format reads general.neuron.python-depends but puts it into no metadata.
    const BackendTable* table = table_for(config, backend);
    if (table != nullptr && backend != BackendId::neuron) {
        append(table->python_depends);
    }
    return out;
}

std::optional<Version> min_backend_version(const Config& config, BackendId backend) {
    const BackendTable* table = table_for(config, backend);
    return table == nullptr ? std::nullopt : value_of(table->minver);
}

std::optional<Version> max_backend_version(const Config& config, BackendId backend) {
    const BackendTable* table = table_for(config, backend);
    return table == nullptr ? std::nullopt : value_of(table->maxver);
}

std::optional<Version> min_torch_version(const Config& config) {
    const auto* torch = std::get_if<Torch>(&config.framework);
    return torch == nullptr ? std::nullopt : value_of(torch->minver);
}

std::optional<Version> max_torch_version(const Config& config) {
    const auto* torch = std::get_if<Torch>(&config.framework);
    return torch == nullptr ? std::nullopt : value_of(torch->maxver);
}

std::string_view extension_dir(const Config& config) {
    return std::holds_alternative<TvmFfi>(config.framework) ? "tvm-ffi-ext" : "torch-ext";
}

std::vector<std::string> python_extensions(const Config& config) {
    const std::optional<Strings>& pyext = pyext_of(config);
    if (!pyext) {
        return {"py", "pyi"};
    }
    std::vector<std::string> out;
    std::ranges::transform(*pyext, std::back_inserter(out), &Located<std::string>::value);
    return out;
}

const Strings& binding_include(const Config& config) {
    if (const auto* torch = std::get_if<Torch>(&config.framework)) {
        return torch->include;
    }
    const auto* tvm_ffi = std::get_if<TvmFfi>(&config.framework);
    return tvm_ffi == nullptr ? kNone : tvm_ffi->include;
}

const Strings& binding_src(const Config& config) {
    if (const auto* torch = std::get_if<Torch>(&config.framework)) {
        return torch->src;
    }
    const auto* tvm_ffi = std::get_if<TvmFfi>(&config.framework);
    return tvm_ffi == nullptr ? kNone : tvm_ffi->src;
}

const Strings& binding_cxx_flags(const Config& config) {
    if (const auto* torch = std::get_if<Torch>(&config.framework)) {
        return torch->cxx_flags;
    }
    const auto* tvm_ffi = std::get_if<TvmFfi>(&config.framework);
    return tvm_ffi == nullptr ? kNone : tvm_ffi->cxx_flags;
}

std::string branch_of(const Config& config) {
    return config.hub.branch ? config.hub.branch->value : fmt::format("v{}", config.version.value);
}

std::span<const PythonDependency> known_python_dependencies() {
    return kPythonDependencies;
}

const PythonDependency* find_python_dependency(std::string_view name, BackendId backend) {
    const auto matches = [&](const PythonDependency& row) {
        return row.name == name && (!row.backend || row.backend == backend);
    };
    const auto* found = std::ranges::find_if(kPythonDependencies, matches);
    return found == kPythonDependencies.end() ? nullptr : found;
}

} // namespace kb::config
