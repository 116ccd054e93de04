// SPDX-License-Identifier: Apache-2.0
#include "generate/project_files.hpp"

#include "base/text.hpp"
#include "generate/cmake_tables.hpp"
#include "generate/quote.hpp"
#include "generate/template.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::generate {

using backend::BackendId;

namespace {

struct Row {
    std::string_view path{};
    std::string_view source{};
};

// Copied as they are: everything that differs between kernels is in CMakeLists.txt.
constexpr Row kTorchRows[] = {
    {"cmake/add_build_metadata.py", "project/common/cmake/add_build_metadata.py"},
    {"cmake/build-variants.cmake", "project/torch/cmake/build-variants.cmake"},
    {"cmake/compile-metal.cmake", "project/torch/cmake/compile-metal.cmake"},
    {"cmake/get_gpu_lang.cmake", "project/torch/cmake/get_gpu_lang.cmake"},
    {"cmake/get_gpu_lang.py", "project/torch/cmake/get_gpu_lang.py"},
    {"cmake/hipify.py", "project/torch/cmake/hipify.py"},
    {"cmake/kernel.cmake", "project/common/cmake/kernel.cmake"},
    {"cmake/metallib_to_header.py", "project/torch/cmake/metallib_to_header.py"},
    {"cmake/utils.cmake", "project/torch/cmake/utils.cmake"},
};
constexpr Row kTvmFfiRows[] = {
    {"cmake/add_build_metadata.py", "project/common/cmake/add_build_metadata.py"},
    {"cmake/build-variants.cmake", "project/tvm-ffi/cmake/build-variants.cmake"},
    {"cmake/cuda/detect-cuda-capability.py",
     "project/tvm-ffi/cmake/cuda/detect-cuda-capability.py"},
    {"cmake/kernel.cmake", "project/common/cmake/kernel.cmake"},
    {"cmake/utils.cmake", "project/tvm-ffi/cmake/utils.cmake"},
};

void add(std::vector<FileImage>& files, std::string_view path, std::string content) {
    files.push_back({RelPath::literal(path), std::move(content), FileMode::regular});
}

std::vector<std::string> data_extensions(const config::Config& config) {
    std::vector<std::string> extensions;
    for (const std::string& extension : config::python_extensions(config)) {
        if (extension != "py") {
            extensions.push_back(extension);
        }
    }
    return extensions;
}

std::string quoted_list_of(const std::vector<std::string>& items,
                           std::string (*quote)(std::string_view),
                           std::string_view separator) {
    std::vector<std::string> quoted;
    for (const std::string& item : items) {
        quoted.push_back(quote(item));
    }
    return join(quoted, separator);
}

std::string version_or_empty(const std::optional<Version>& version) {
    return version ? version->to_text() : std::string{};
}

std::vector<std::string> backend_names(const config::Config& config) {
    std::vector<std::string> names;
    for (const BackendId id : config::distinct_backends(config)) {
        names.emplace_back(backend::to_text(id));
    }
    return names;
}

/// 3.9 -> 0x03090000.
std::string limited_api(const Version& python) {
    return fmt::format("0x{:02x}{:02x}0000", python.major(), python.minor());
}

std::string cmake_lists(const ProjectInput& input, std::string_view source) {
    const config::Config& config = input.config;
    std::vector<std::string> extensions = data_extensions(config);
    extensions.insert(extensions.begin(), "py");
    return render_embedded(
        source,
        {{"name", config.name.text()},
         {"name_cmake", quote_cmake(config.name.text())},
         {"module_cmake", quote_cmake(config.name.module_name())},
         {"unique_id_cmake", quote_cmake(input.unique_id)},
         {"package_extensions", quoted_list_of(extensions, quote_cmake_item, " ")},
         {"backends", join(backend_names(config), " ")},
         {"py_limited_api", limited_api(input.matrix.python_abi)},
         {"torch_minver", version_or_empty(config::min_torch_version(config))},
         {"torch_maxver", version_or_empty(config::max_torch_version(config))},
         {"cuda_minver", version_or_empty(config::min_backend_version(config, BackendId::cuda))},
         {"cuda_maxver", version_or_empty(config::max_backend_version(config, BackendId::cuda))},
         {"tables", cmake_tables(input)},
         {"dependencies", cmake_dependencies(input)},
         {"binding", cmake_binding(config)},
         {"components", cmake_components(config)}});
}

std::string setup_py(const ProjectInput& input, std::string_view source) {
    const config::Config& config = input.config;
    return render_embedded(
        source,
        {{"name_py", quote_python(config.name.text())},
         {"module_py", quote_python(config.name.module_name())},
         {"unique_id_py", quote_python(input.unique_id)},
         {"extension_dir_py", quote_python(config::extension_dir(config))},
         {"backends_py", quoted_list_of(backend_names(config), quote_python, ", ")},
         {"data_extensions_py", quoted_list_of(data_extensions(config), quote_python, ", ")}});
}

std::vector<std::string> pip_packages(const config::Strings& names, BackendId id) {
    std::vector<std::string> packages;
    for (const auto& name : names) {
        const config::PythonDependency* row = config::find_python_dependency(name.value, id);
        packages.push_back(quote_toml(row != nullptr ? row->pip_package : name.value));
    }
    return packages;
}

/// One extra a backend that has Python dependencies of its own.
std::string optional_dependencies(const config::Config& config) {
    std::string text;
    for (const auto& [id, table] : config.backend_tables) {
        const std::vector<std::string> packages = pip_packages(table.python_depends, id);
        if (!packages.empty()) {
            text += fmt::format("{} = [{}]\n", backend::to_text(id), join(packages, ", "));
        }
    }
    return text.empty() ? text : "\n[project.optional-dependencies]\n" + text;
}

std::string pyproject(const ProjectInput& input) {
    const config::Config& config = input.config;
    std::vector<std::string> dependencies;
    std::vector<std::string> build_requires;
    if (std::holds_alternative<config::Torch>(config.framework)) {
        build_requires.push_back(quote_toml("torch"));
        dependencies.push_back(quote_toml("torch"));
    } else if (std::holds_alternative<config::TvmFfi>(config.framework)) {
        build_requires.push_back(quote_toml("apache-tvm-ffi"));
    } else {
        dependencies.push_back(quote_toml("torch>=2.8"));
    }
    std::ranges::copy(pip_packages(config.python_depends, BackendId::cpu),
                      std::back_inserter(dependencies));
    return render_embedded(
        "project/common/pyproject.toml",
        {{"build_requires", build_requires},
         {"cmake", !std::holds_alternative<config::TorchNoarch>(config.framework)},
         {"dependencies", dependencies},
         {"name_toml", quote_toml(config.name.text())},
         {"optional_dependencies", optional_dependencies(config)}});
}

void add_metadata(const ProjectInput& input, std::vector<FileImage>& files) {
    for (const BackendId id : backend::kAllBackends) {
        const package::Metadata metadata = make_metadata({.config = input.config,
                                                          .backend = id,
                                                          .unique_id = input.unique_id,
                                                          .archs = std::nullopt,
                                                          .provenance = input.provenance,
                                                          .maturity = input.maturity});
        add(files,
            fmt::format("metadata-{}.json", backend::to_text(id)),
            package::write_metadata(metadata));
    }
}

template <std::size_t N>
void add_compiled(const ProjectInput& input,
                  std::string_view folder,
                  const Row (&rows)[N],
                  std::vector<FileImage>& files) {
    for (const Row& row : rows) {
        add(files, row.path, std::string{embedded_text(row.source)});
    }
    const auto framework = std::holds_alternative<config::TvmFfi>(input.config.framework)
                               ? backend::FrameworkId::tvm_ffi
                               : backend::FrameworkId::torch;
    // The backend is known when the project is configured.
    add(files, "cmake/_ops.py.in", ops_module(framework, "@KB_OPS@", input.maturity));
    add(files,
        "CMakeLists.txt",
        cmake_lists(input, fmt::format("project/{}/CMakeLists.txt", folder)));
    add(files, "setup.py", setup_py(input, "project/common/setup.py"));
}

} // namespace

std::vector<FileImage> project_files(const ProjectInput& input) {
    std::vector<FileImage> files;
    const config::Config& config = input.config;
    add(files, "pyproject.toml", pyproject(input));
    add_metadata(input, files);
    if (std::holds_alternative<config::Torch>(config.framework)) {
        add_compiled(input, "torch", kTorchRows, files);
        add(files, kRegistrationHeader, registration_header());
    } else if (std::holds_alternative<config::TvmFfi>(config.framework)) {
        add_compiled(input, "tvm-ffi", kTvmFfiRows, files);
    } else {
        add(files, "setup.py", setup_py(input, "project/torch-noarch/setup.py"));
        add(files,
            fmt::format("torch-ext/{}/_ops.py", config.name.module_name()),
            noarch_ops_module(config.name.module_name(), input.unique_id, input.maturity));
    }
    std::ranges::sort(files, {}, &FileImage::path);
    return files;
}

} // namespace kb::generate
