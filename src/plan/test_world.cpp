// SPDX-License-Identifier: Apache-2.0
#include "plan/test_world.hpp"

#include "document/toml.hpp"
#include "support/catch.hpp"

#include <set>

namespace kb::plan::test {

const std::string_view kAotToml = R"([general]
name = "norm"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]

[torch]
src = ["torch-ext/torch_binding.cpp", "torch-ext/torch_binding.h"]

[kernel.norm_cpu]
backend = "cpu"
depends = []
src = ["norm_cpu/norm.cpp", "norm_common/norm.h"]
cxx-flags = ["-ffp-contract=off"]

[kernel.norm_cuda]
backend = "cuda"
depends = []
cuda-capabilities = ["8.0", "9.0", "12.0+PTX"]
cuda-flags = ["-lineinfo"]
src = ["norm_cuda/norm.cu", "norm_cuda/norm.cuh", "norm_common/norm.h"]
)";

const std::string_view kStableToml = R"([general]
name = "norm"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]

[torch]
stable-abi = "2.11"
src = ["torch-ext/torch_binding.cpp", "torch-ext/torch_binding.h"]

[kernel.norm_cpu]
backend = "cpu"
depends = []
src = ["norm_cpu/norm.cpp", "norm_common/norm.h"]

[kernel.norm_cuda]
backend = "cuda"
depends = []
cuda-capabilities = ["8.0", "9.0", "12.0+PTX"]
src = ["norm_cuda/norm.cu", "norm_cuda/norm.cuh", "norm_common/norm.h"]
)";

config::Config config_of(std::string_view toml) {
    Diagnostics diagnostics;
    const auto root = document::parse_toml(toml, Origin{"build.toml"}, diagnostics);
    REQUIRE(root);
    auto config = config::read(*root, diagnostics);
    for (const auto& item : diagnostics.items()) {
        UNSCOPED_INFO(to_text(item));
    }
    REQUIRE(config);
    return std::move(*config);
}

SourceSnapshot snapshot_of(const std::vector<std::pair<std::string, std::string>>& files) {
    SourceSnapshot snapshot;
    for (const auto& file : files) {
        snapshot.files.push_back(scan_source(RelPath::literal(file.first), file.second));
    }
    return snapshot;
}

SourceSnapshot norm_snapshot() {
    SourceSnapshot snapshot = snapshot_of({
        {"torch-ext/torch_binding.cpp",
         "#include \"torch_binding.h\"\n#include \"registration.h\"\n#include <torch/library.h>\n"
         "TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {}\n"},
        {"torch-ext/torch_binding.h", "#include \"../norm_common/norm.h\"\n"},
        {"torch-ext/registration.h", "#include <Python.h>\n"},
        {"norm_common/norm.h", "#include <cstdint>\n"},
        {"norm_cpu/norm.cpp", "#include \"../norm_common/norm.h\"\nint x;\n"},
        {"norm_cuda/norm.cu", "#include \"norm.cuh\"\n__global__ void k() {}\n"},
        {"norm_cuda/norm.cuh", "#include \"../norm_common/norm.h\"\n"},
    });
    snapshot.files[2].generated = true;
    snapshot.package = {{RelPath::literal("__init__.py"), digest::sha256("init")},
                        {RelPath::literal("layers.py"), digest::sha256("layers")}};
    return snapshot;
}

Lock lock_for(const SupportMatrix& matrix) {
    std::set<Requirement> all(matrix.python.begin(), matrix.python.end());
    const auto add = [&](const auto& rows) {
        for (const auto& row : rows) {
            all.insert(row.requirements.begin(), row.requirements.end());
        }
    };
    add(matrix.torch);
    add(matrix.tvm_ffi);
    add(matrix.toolkits);
    add(matrix.hosts);
    add(matrix.dependencies);
    Lock lock;
    for (const Requirement& requirement : all) {
        lock.entries.push_back(
            {.id = requirement.id(),
             .file = "file-of-" + requirement.name.substr(requirement.name.find('/') + 1),
             .platform = "x86_64-linux",
             .size = 1,
             .sha256 = digest::sha256(requirement.id())});
    }
    return lock;
}

std::optional<Plan> World::try_plan() {
    diagnostics = Diagnostics{};
    return make({.config = config,
                 .matrix = matrix,
                 .snapshot = snapshot,
                 .lock = lock,
                 .selection = selection,
                 .tool_version = "0.1.0",
                 .lock_origin = "default"},
                diagnostics);
}

Plan World::plan() {
    auto plan = try_plan();
    for (const auto& item : diagnostics.items()) {
        UNSCOPED_INFO(to_text(item));
    }
    REQUIRE(plan);
    return std::move(*plan);
}

} // namespace kb::plan::test
