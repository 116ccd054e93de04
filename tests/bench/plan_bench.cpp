// SPDX-License-Identifier: Apache-2.0
// Plans a matrix of 100 torch versions and 100 toolkits, the worst case: nothing is shared but the
// device code. Prints the best of nine runs (or as many as given) in CPU time; the bar is 100 ms
// for 10,000 variants in a release build. Not a test: a clock decides nothing there.
#include "base/text.hpp"
#include "document/toml.hpp"
#include "plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

constexpr std::string_view kToml = R"([general]
name = "norm"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]

[torch]
src = ["torch-ext/torch_binding.cpp", "torch-ext/torch_binding.h"]

[kernel.norm_cuda]
backend = "cuda"
depends = []
cuda-capabilities = ["8.0", "9.0", "12.0+PTX"]
src = ["norm_cuda/norm.cu", "norm_cuda/norm.cuh"]
)";

kb::plan::SupportMatrix big_matrix() {
    using namespace kb;
    plan::SupportMatrix matrix = plan::default_support_matrix();
    const plan::ToolkitRow model =
        *plan::find_toolkit(matrix, backend::BackendId::cuda, Version{{13, 0}});
    const plan::FrameworkRow torch_model = matrix.torch.back();
    matrix.rows.clear();
    matrix.torch.clear();
    for (std::uint64_t t = 0; t < 100; ++t) {
        plan::FrameworkRow torch = torch_model;
        torch.version = Version{{2, 100 + t}};
        matrix.torch.push_back(torch);
        for (std::uint64_t c = 0; c < 100; ++c) {
            const Version cuda{{20 + c / 10, c % 10}};
            if (t == 0) {
                plan::ToolkitRow toolkit = model;
                toolkit.version = cuda;
                matrix.toolkits.push_back(toolkit);
            }
            matrix.rows.push_back({.torch = torch.version,
                                   .backend = backend::BackendId::cuda,
                                   .backend_version = cuda,
                                   .platforms = {backend::Platform{}}});
        }
    }
    return matrix;
}

} // namespace

int main(int argc, char** argv) {
    using namespace kb;
    Diagnostics diagnostics;
    const auto root = document::parse_toml(kToml, Origin{"build.toml"}, diagnostics);
    const auto config = root ? config::read(*root, diagnostics) : std::nullopt;
    if (!config) {
        return 1;
    }
    const plan::SupportMatrix matrix = big_matrix();
    plan::SourceSnapshot snapshot;
    const auto add = [&](const char* path, const char* text) {
        snapshot.files.push_back(plan::scan_source(RelPath::literal(path), text));
    };
    add("torch-ext/torch_binding.cpp", "#include <torch/library.h>\nTORCH_EXTENSION_NAME\n");
    add("torch-ext/torch_binding.h", "");
    add("norm_cuda/norm.cu", "#include \"norm.cuh\"\n");
    add("norm_cuda/norm.cuh", "");
    const plan::Lock lock;
    const plan::Selection selection;
    const int runs = argc > 1 ? std::atoi(argv[1]) : 9;
    double best = 1e9;
    std::size_t variants = 0;
    std::size_t tus = 0;
    for (int run = 0; run < runs; ++run) {
        const std::clock_t begin = std::clock();
        const auto plan = plan::make({.config = *config,
                                      .matrix = matrix,
                                      .snapshot = snapshot,
                                      .lock = lock,
                                      .selection = selection},
                                     diagnostics);
        const double took = 1000.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
        if (!plan) {
            return 1;
        }
        best = std::min(best, took);
        variants = plan->variants.size();
        tus = plan->tus.size();
    }
    fmt::print("planned {} variants with {} distinct TUs in {:.1f} ms CPU\n", variants, tus, best);
    return 0;
}
