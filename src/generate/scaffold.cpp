// SPDX-License-Identifier: Apache-2.0
#include "generate/scaffold.hpp"

#include "base/assert.hpp"
#include "base/text.hpp"
#include "document/toml.hpp"
#include "generate/quote.hpp"
#include "generate/template.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::generate {

using backend::BackendId;

namespace {

constexpr std::array kTorchBackends{
    BackendId::cpu, BackendId::cuda, BackendId::metal, BackendId::rocm, BackendId::xpu};
constexpr std::array kTvmFfiBackends{BackendId::cpu, BackendId::cuda};

/// When a file belongs to the scaffold: `condition` is a template condition over the values of the
/// scaffold; "<module>" and "<ext>" in `path` are replaced.
struct Row {
    std::string_view condition{};
    std::string_view path{};
    std::string_view source{};
};

constexpr Row kRows[] = {
    {"true", ".gitignore", "init/common/gitignore"},
    {"true", "CARD.md", "init/common/CARD.md"},
    {"true", "README.md", "init/common/README.md"},
    {"true", "benchmarks/benchmark.py", "init/common/benchmark.py"},
    {"true", "tests/conftest.py", "init/common/conftest.py"},
    {"true", "tests/test_<module>.py", "init/common/test_kernel.py"},
    {"torch", "build.toml", "init/torch/build.toml"},
    {"torch", "torch-ext/<module>/__init__.py", "init/torch/__init__.py"},
    {"torch", "torch-ext/torch_binding.cpp", "init/torch/torch_binding.cpp"},
    {"noarch", "build.toml", "init/torch-noarch/build.toml"},
    {"noarch", "torch-ext/<module>/__init__.py", "init/torch-noarch/__init__.py"},
    {"not tvm_ffi", "torch-ext/<module>/layers.py", "init/common/layers.py"},
    {"tvm_ffi", "build.toml", "init/tvm-ffi/build.toml"},
    {"tvm_ffi", "tvm-ffi-ext/<module>/__init__.py", "init/tvm-ffi/__init__.py"},
    {"tvm_ffi", "tvm-ffi-ext/<module>/functions.py", "init/tvm-ffi/functions.py"},
    {"tvm_ffi", "tvm-ffi-ext/<module>/layers.py", "init/tvm-ffi/layers.py"},
    {"tvm_ffi", "tvm-ffi-ext/tvm_ffi_binding.cpp", "init/tvm-ffi/tvm_ffi_binding.cpp"},
    {"not noarch", "<module>_common/relu.h", "init/torch/relu.h"},
    {"not noarch and cpu", "<module>_cpu/float16.h", "init/torch/float16.h"},
    {"not noarch and cpu", "<module>_cpu/relu.cpp", "init/torch/relu_cpu.cpp"},
    {"not noarch and cuda", "<module>_cuda/relu.cu", "init/torch/relu_cuda.cu"},
    {"not noarch and rocm and not cuda", "<module>_cuda/relu.cu", "init/torch/relu_cuda.cu"},
    {"not noarch and metal", "<module>_metal/relu.cpp", "init/torch/relu_metal.cpp"},
    {"not noarch and xpu", "<module>_xpu/relu.cpp", "init/torch/relu_xpu.cpp"},
};

std::optional<std::string> try_render(std::string_view text, const Values& values) {
    Diagnostics diagnostics;
    return render(text, values, {"scaffold"}, diagnostics);
}

bool holds(std::string_view condition, const Values& values) {
    const auto text = try_render(fmt::format("{{% if {} %}}yes{{% endif %}}", condition), values);
    KB_ASSERT(text.has_value(), "the conditions of the scaffold table are well formed");
    return !text->empty();
}

Values scaffold_values(const ScaffoldInput& input, std::span<const BackendId> backends) {
    const std::string& name = input.name.name.text();
    const std::string repo_id = input.name.repo_id.value_or("");
    std::vector<std::string> names;
    std::vector<std::string> quoted;
    Values values{
        {"name", name},
        {"name_toml", quote_toml(name)},
        {"module", input.name.name.module_name()},
        {"repo_id", repo_id},
        {"repo_id_toml", quote_toml(repo_id)},
        {"license_toml", quote_toml(input.license)},
        {"torch", input.framework == ScaffoldFramework::torch},
        {"noarch", input.framework == ScaffoldFramework::torch_noarch},
        {"tvm_ffi", input.framework == ScaffoldFramework::tvm_ffi},
        {"ext",
         std::string{input.framework == ScaffoldFramework::tvm_ffi ? "tvm-ffi-ext" : "torch-ext"}},
    };
    for (const BackendId id : backend::kAllBackends) {
        const bool chosen = std::ranges::find(backends, id) != backends.end();
        values.insert_or_assign(std::string{backend::to_text(id)}, chosen);
        if (chosen) {
            names.emplace_back(backend::to_text(id));
            quoted.push_back(quote_toml(backend::to_text(id)));
        }
    }
    values.insert_or_assign("backends", std::move(names));
    values.insert_or_assign("backends_toml", join(quoted, ", "));
    return values;
}

/// The scaffold's own build.toml must read without a word.
void check_own_config(const FileImage& file) {
    Diagnostics diagnostics;
    const auto tree = document::parse_toml(file.content, {file.path.text()}, diagnostics);
    KB_ASSERT(tree.has_value(), "the scaffold's build.toml is TOML");
    const auto config = config::read(*tree, diagnostics);
    KB_ASSERT(config.has_value() && diagnostics.empty(), "the scaffold's build.toml is in order");
}

bool accept_backends(const ScaffoldInput& input, Diagnostics& diagnostics) {
    const auto possible = scaffold_backends(input.framework);
    bool ok = true;
    for (const BackendId id : input.backends) {
        if (std::ranges::find(possible, id) != possible.end()) {
            continue;
        }
        std::vector<std::string> names;
        for (const BackendId other : possible) {
            names.emplace_back(backend::to_text(other));
        }
        diagnostics.error("backend-without-scaffold",
                          {},
                          fmt::format("a {} kernel for '{}' cannot be built",
                                      to_text(input.framework),
                                      backend::to_text(id)),
                          {fmt::format("backends of a {} kernel: {}",
                                       to_text(input.framework),
                                       quoted_list(names))});
        ok = false;
    }
    return ok;
}

} // namespace

std::string_view to_text(ScaffoldFramework framework) {
    switch (framework) {
    case ScaffoldFramework::torch:
        return "torch";
    case ScaffoldFramework::torch_noarch:
        return "torch-noarch";
    case ScaffoldFramework::tvm_ffi:
        return "tvm-ffi";
    }
    std::unreachable();
}

std::optional<ScaffoldFramework> parse_scaffold_framework(std::string_view text) {
    for (const auto framework :
         {ScaffoldFramework::torch, ScaffoldFramework::torch_noarch, ScaffoldFramework::tvm_ffi}) {
        if (to_text(framework) == text) {
            return framework;
        }
    }
    return std::nullopt;
}

std::span<const BackendId> scaffold_backends(ScaffoldFramework framework) {
    switch (framework) {
    case ScaffoldFramework::torch:
        return kTorchBackends;
    case ScaffoldFramework::torch_noarch:
        return backend::kAllBackends;
    case ScaffoldFramework::tvm_ffi:
        return kTvmFfiBackends;
    }
    std::unreachable();
}

namespace {

/// Words that are a kernel name by its grammar, but no namespace in C++ or no package in Python.
constexpr std::array kReserved = std::to_array<std::string_view>(
    {"and",      "as",       "asm",     "assert",    "async",    "auto",     "await",   "bool",
     "break",    "builtins", "case",    "catch",     "char",     "class",    "concept", "const",
     "continue", "decltype", "def",     "default",   "del",      "delete",   "do",      "double",
     "elif",     "else",     "enum",    "except",    "explicit", "export",   "extern",  "false",
     "finally",  "float",    "for",     "friend",    "from",     "global",   "goto",    "if",
     "import",   "in",       "inline",  "int",       "is",       "json",     "kernels", "lambda",
     "long",     "math",     "mutable", "namespace", "new",      "none",     "not",     "numpy",
     "operator", "or",       "os",      "pass",      "private",  "public",   "raise",   "requires",
     "return",   "short",    "signed",  "sizeof",    "static",   "std",      "struct",  "switch",
     "sys",      "template", "this",    "throw",     "torch",    "true",     "try",     "typename",
     "union",    "unsigned", "using",   "virtual",   "void",     "volatile", "while",   "with"});

} // namespace

std::optional<ScaffoldName> scaffold_name(std::optional<std::string_view> option,
                                          std::string_view directory,
                                          Diagnostics& diagnostics) {
    ScaffoldName result;
    std::string_view repo;
    if (option) {
        const std::vector<std::string_view> parts = split(*option, '/');
        if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) {
            diagnostics.error(
                "bad-repo-id",
                {},
                fmt::format("'{}' is not of the form OWNER/REPO", escape_control(*option)),
                {"an example: --name my-org/fast-relu"});
            return std::nullopt;
        }
        repo = parts[1];
        result.repo_id = std::string{*option};
    } else {
        std::string_view rest = directory;
        while (rest.size() > 1 && rest.ends_with('/')) {
            rest.remove_suffix(1);
        }
        repo = rest.substr(rest.rfind('/') + 1); // npos + 1 is 0
    }
    const std::string spelt = replace_all(to_lower(repo), "_", "-");
    std::optional<config::KernelName> name = config::KernelName::parse(spelt);
    if (!name) {
        std::vector<std::string> notes = config::KernelName::rules();
        if (!option) {
            notes.emplace_back("the name was taken from the directory; '--name OWNER/REPO' gives "
                               "another one");
        }
        diagnostics.error("bad-kernel-name",
                          {},
                          fmt::format("'{}' is not a kernel name", escape_control(spelt)),
                          std::move(notes));
        return std::nullopt;
    }
    if (std::ranges::find(kReserved, name->module_name()) != kReserved.end()) {
        diagnostics.error("bad-kernel-name",
                          {},
                          fmt::format("'{}' means something else in C++ or Python", spelt),
                          {"the name is a namespace and a package: say what the kernel does, like "
                           "'fast-relu'"});
        return std::nullopt;
    }
    result.name = std::move(*name);
    return result;
}

std::optional<std::vector<FileImage>> scaffold(const ScaffoldInput& input,
                                               Diagnostics& diagnostics) {
    KB_ASSERT(!input.backends.empty(), "the caller chooses at least one backend");
    if (!accept_backends(input, diagnostics)) {
        return std::nullopt;
    }
    const Values values = scaffold_values(input, input.backends);
    const std::string module = input.name.name.module_name();
    std::vector<FileImage> files;
    for (const Row& row : kRows) {
        if (!holds(row.condition, values)) {
            continue;
        }
        FileImage file{RelPath::literal(replace_all(row.path, "<module>", module)), {}, {}};
        // The card is a template itself, which is filled when a package is made.
        file.content = row.path == "CARD.md" ? std::string{embedded_text(row.source)}
                                             : render_embedded(row.source, values);
        if (row.path == "build.toml") {
            check_own_config(file);
        }
        files.push_back(std::move(file));
    }
    std::ranges::sort(files, {}, &FileImage::path);
    return files;
}

} // namespace kb::generate
