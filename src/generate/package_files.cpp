// SPDX-License-Identifier: Apache-2.0
#include "generate/package_files.hpp"

#include "base/assert.hpp"
#include "generate/template.hpp"
#include "plan/plan.hpp"

namespace kb::generate {

using backend::BackendId;
using backend::FrameworkId;

namespace {

std::string with_guard(Maturity maturity, std::string text) {
    if (maturity == Maturity::released) {
        return text;
    }
    return std::string{embedded_text("package/experimental.py")} + text;
}

/// noarch kernels state the architectures that their Python code is meant for.
std::optional<std::vector<std::string>> noarch_archs(const config::Config& config, BackendId id) {
    const auto* noarch = std::get_if<config::TorchNoarch>(&config.framework);
    if (noarch == nullptr) {
        return std::nullopt;
    }
    const auto& list = id == BackendId::cuda   ? noarch->cuda_capabilities
                       : id == BackendId::rocm ? noarch->rocm_archs
                                               : std::nullopt;
    if (!list) {
        return std::nullopt;
    }
    std::vector<std::string> archs;
    for (const auto& arch : *list) {
        archs.push_back(arch.value);
    }
    return archs;
}

} // namespace

std::string registration_header() {
    return std::string{embedded_text("package/registration.h")};
}

Maturity maturity_of(const config::ProjectSettings& settings) {
    return settings.experimental ? Maturity::experimental : Maturity::released;
}

std::string ops_module(FrameworkId framework, std::string_view ops_id, Maturity maturity) {
    KB_ASSERT(framework != FrameworkId::torch_noarch, "noarch kernels have no ops id of their own");
    const std::string_view path =
        framework == FrameworkId::tvm_ffi ? "package/ops_tvm_ffi.py" : "package/ops_torch.py";
    return with_guard(maturity, render_embedded(path, {{"ops", std::string{ops_id}}}));
}

std::string
noarch_ops_module(std::string_view module, std::string_view unique_id, Maturity maturity) {
    return with_guard(
        maturity,
        render_embedded("package/ops_noarch.py",
                        {{"module", std::string{module}}, {"unique_id", std::string{unique_id}}}));
}

package::Metadata make_metadata(const MetadataInput& input) {
    const config::Config& config = input.config;
    package::Metadata metadata;
    metadata.name = config.name.text();
    metadata.id = plan::ops_id(config, input.backend, input.unique_id);
    metadata.version = config.version.value;
    metadata.license = config.license.value;
    if (config.upstream) {
        metadata.upstream = config.upstream->value.text();
    }
    if (config.source) {
        metadata.source = config.source->value.text();
    }
    metadata.python_depends = config::python_depends_for(config, input.backend);
    for (const config::KernelDependency& dependency :
         config::kernel_depends_for(config, input.backend)) {
        package::KernelDependency item{.repo_id = dependency.repo_id.value};
        if (dependency.version) {
            item.version = dependency.version->value;
        }
        if (dependency.revision) {
            item.revision = dependency.revision->value;
        }
        metadata.kernel_depends.push_back(std::move(item));
    }
    metadata.backend = std::string{backend::to_text(input.backend)};
    metadata.archs = input.archs ? input.archs : noarch_archs(config, input.backend);
    metadata.provenance = input.provenance;
    metadata.experimental = input.maturity == Maturity::experimental;
    return metadata;
}

} // namespace kb::generate
