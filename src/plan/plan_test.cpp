// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include "base/text.hpp"
#include "plan/test_world.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <string>

namespace kb::plan {

namespace {

test::World world(std::string_view toml) {
    return test::World{.config = test::config_of(toml)};
}

std::string with(std::string_view toml, std::string_view from, std::string_view to) {
    const std::string text = replace_all(toml, from, to);
    REQUIRE(text != toml);
    return text;
}

/// "source torch" of each TU, sorted.
std::vector<std::string> tu_names(const Plan& plan) {
    std::vector<std::string> names;
    for (const Tu& tu : plan.tus) {
        names.push_back(tu.source.text() + " " + tu.torch.to_text());
    }
    std::ranges::sort(names);
    return names;
}

void add_torch_216(SupportMatrix& matrix, Lock& lock) {
    const Requirement headers{"wheel", "torch", "2.16.0", "include"};
    matrix.torch.push_back(
        {.version = Version{{2, 16}}, .cxx_standard = 20, .requirements = {headers}});
    matrix.rows.push_back({.torch = Version{{2, 16}}, .platforms = {Platform{}}});
    matrix.rows.push_back({.torch = Version{{2, 16}},
                           .backend = BackendId::cuda,
                           .backend_version = Version{{13, 0}},
                           .platforms = {Platform{}}});
    lock = test::lock_for(matrix);
}

std::set<std::string> tu_ids(const Plan& plan) {
    std::set<std::string> ids;
    for (const Tu& tu : plan.tus) {
        ids.insert(tu.id);
    }
    return ids;
}

const Tu& tu_of(const Plan& plan, std::string_view source) {
    const auto found =
        std::ranges::find_if(plan.tus, [&](const Tu& tu) { return tu.source.text() == source; });
    REQUIRE(found != plan.tus.end());
    return *found;
}

bool has(const Words& list, std::string_view word) {
    return std::ranges::find(list, word) != list.end();
}

} // namespace

TEST_CASE("code without torch is compiled once for all torch versions", "[plan]") {
    auto here = world(test::kAotToml);
    const Plan plan = here.plan();
    CHECK(plan.variants.size() == 6);
    CHECK(tu_names(plan) == std::vector<std::string>{"norm_cpu/norm.cpp ",
                                                     "norm_cuda/norm.cu ",
                                                     "torch-ext/torch_binding.cpp 2.11",
                                                     "torch-ext/torch_binding.cpp 2.11",
                                                     "torch-ext/torch_binding.cpp 2.13",
                                                     "torch-ext/torch_binding.cpp 2.13",
                                                     "torch-ext/torch_binding.cpp 2.15",
                                                     "torch-ext/torch_binding.cpp 2.15"});
    const PlanCounts counts = count(plan);
    CHECK(counts.tus_in_all == 12);
    CHECK(counts.tus_distinct == 8);
    CHECK(counts.links == 6);
    CHECK(counts.arch_compiles == 3);
}

TEST_CASE("one more torch version costs bindings and links, for the stable ABI nothing", "[plan]") {
    auto aot = world(test::kAotToml);
    auto stable = world(test::kStableToml);
    const Plan before = aot.plan();
    const Plan stable_before = stable.plan();
    add_torch_216(aot.matrix, aot.lock);
    add_torch_216(stable.matrix, stable.lock);
    const Plan after = aot.plan();
    CHECK(after.variants.size() == before.variants.size() + 2);
    const std::set<std::string> old_ids = tu_ids(before);
    std::size_t added = 0;
    for (const Tu& tu : after.tus) {
        if (!old_ids.contains(tu.id)) {
            ++added;
            CHECK(tu.source.text() == "torch-ext/torch_binding.cpp");
            CHECK(tu.torch == Version{{2, 16}});
        }
    }
    CHECK(added == 2);
    for (const PlannedVariant& variant : before.variants) {
        REQUIRE(after.find(variant.name) != nullptr);
        CHECK(after.find(variant.name)->key.id() == variant.key.id());
    }
    const Plan stable_after = stable.plan();
    CHECK(stable_after.tus == stable_before.tus);
    REQUIRE(stable_after.variants.size() == stable_before.variants.size());
    for (std::size_t i = 0; i < stable_after.variants.size(); ++i) {
        CHECK(stable_after.variants[i].key.id() == stable_before.variants[i].key.id());
        CHECK(stable_after.variants[i].link == stable_before.variants[i].link);
    }
}

TEST_CASE("a changed kernel file recompiles itself and the bindings", "[plan]") {
    auto here = world(test::kAotToml);
    const Plan before = here.plan();
    here.snapshot.files[5] = scan_source(RelPath::literal("norm_cuda/norm.cu"),
                                         "#include \"norm.cuh\"\n__global__ void k() { }\n");
    const Plan after = here.plan();
    CHECK(before.unique_id != after.unique_id);
    CHECK(tu_of(after, "norm_cpu/norm.cpp") == tu_of(before, "norm_cpu/norm.cpp"));
    CHECK(tu_of(after, "norm_cuda/norm.cu").id != tu_of(before, "norm_cuda/norm.cu").id);
    CHECK(tu_of(after, "torch-ext/torch_binding.cpp").id !=
          tu_of(before, "torch-ext/torch_binding.cpp").id);
}

TEST_CASE("a changed header recompiles what reaches it", "[plan]") {
    auto here = world(test::kAotToml);
    const Plan before = here.plan();
    here.snapshot.files[6] = scan_source(RelPath::literal("norm_cuda/norm.cuh"),
                                         "#include \"../norm_common/norm.h\"\nint changed;\n");
    const Plan after = here.plan();
    CHECK(tu_of(after, "norm_cpu/norm.cpp").id == tu_of(before, "norm_cpu/norm.cpp").id);
    CHECK(tu_of(after, "norm_cuda/norm.cu").id != tu_of(before, "norm_cuda/norm.cu").id);
}

TEST_CASE("only what includes torch or names the ops id is told about them", "[plan]") {
    auto here = world(test::kStableToml);
    const Plan plan = here.plan();
    for (const Tu& tu : plan.tus) {
        const std::string command = tu.command.joined(" ");
        CAPTURE(tu.source.text(), command);
        const bool binding = tu.source.text() == "torch-ext/torch_binding.cpp";
        CHECK(command.contains("TORCH_EXTENSION_NAME=_norm_") == binding);
        CHECK(command.contains("/toolchain/torch-2.11/include") == binding);
        CHECK(command.contains("TORCH_TARGET_VERSION=0x020b000000000000") == binding);
        CHECK(command.contains("Py_LIMITED_API=0x03090000") == binding);
        CHECK(command.contains("/toolchain/python") == binding);
        CHECK(has(tu.requirements, "wheel/torch@2.11.0#include") == binding);
        CHECK(has(tu.command, binding ? "-std=c++17" : "-std=c++20"));
        CHECK_FALSE(has(tu.requirements, "stub/manylinux_2_28@1"));
    }
}

TEST_CASE("a CUDA object is made by one call with a fixed keep folder", "[plan]") {
    auto here = world(test::kAotToml);
    const Plan plan = here.plan();
    const Tu& tu = tu_of(plan, "norm_cuda/norm.cu");
    CHECK(tu.keep_dir == "tu/" + tu.id + ".keep");
    CHECK(tu.object == "tu/" + tu.id + ".o");
    CHECK(tu.command[0] == "/toolchain/cuda-13.0/bin/nvcc");
    CHECK(has(tu.command, "--keep"));
    CHECK(has(tu.command, tu.keep_dir));
    CHECK(has(tu.command, "-lineinfo"));
    CHECK(has(tu.command, "-DUSE_CUDA=1"));
    CHECK(has(tu.command, "-gencode=arch=compute_120,code=compute_120"));
    CHECK_FALSE(has(tu.command, "-ffp-contract=off"));
    CHECK(has(tu_of(plan, "norm_cpu/norm.cpp").command, "-ffp-contract=off"));
    CHECK(tu_of(plan, "norm_cpu/norm.cpp").keep_dir.empty());
}

TEST_CASE("a CUDA source of a ROCm section is translated, then compiled for each device",
          "[plan]") {
    std::string toml{test::kStableToml};
    toml = replace_all(toml, "\"cuda\"", "\"rocm\"");
    toml = replace_all(toml,
                       "cuda-capabilities = [\"8.0\", \"9.0\", \"12.0+PTX\"]",
                       "rocm-archs = [\"gfx942\", \"gfx90a\"]");
    auto here = world(toml);
    here.selection.rocm = VersionSet::parse("5.7").value();
    const Plan plan = here.plan();
    REQUIRE(plan.variants.size() == 1);
    const PlannedVariant& rocm = plan.variants.front();
    CHECK(rocm.name.text() == "torch-stable-abi211-rocm57-x86_64-linux");
    CHECK(rocm.promises.archs == std::vector<std::string>{"gfx90a", "gfx942"});
    CHECK(rocm.promises.device_code == backend::DeviceCode::hsaco);
    CHECK(rocm.promises.libraries ==
          Words{"libtorch.so", "libtorch_cpu.so", "libtorch_hip.so", "libamdhip64.so"});
    const std::string link = rocm.link.command.joined(" ");
    CHECK(link.contains("-L/toolchain/rocm-5.7/stubs"));
    CHECK(link.contains("-ltorch_hip -Wl,--as-needed -lamdhip64"));

    const Tu& tu = tu_of(plan, "norm_cuda/norm.cu");
    CHECK(tu.before.joined(" ") == "/toolchain/rocm-5.7/bin/cuda-to-hip-1 /src /work/hip "
                                   "norm_cuda/norm.cu norm_common/norm.h norm_cuda/norm.cuh");
    const std::string command = tu.command.joined(" ");
    CHECK(command.starts_with("/toolchain/rocm-5.7/bin/clang++ -no-canonical-prefixes -x hip "
                              "--rocm-path=/toolchain/rocm-5.7 -std=c++20 "));
    CHECK(command.contains("--offload-arch=gfx90a --offload-arch=gfx942"));
    CHECK(command.contains("-c /work/hip/norm_cuda/norm.cu -o tu/" + tu.id + ".o"));
    CHECK(has(tu.requirements, "deb/rocm@5.7"));
    const Tu& binding = tu_of(plan, "torch-ext/torch_binding.cpp");
    CHECK(binding.before.empty());
    CHECK(binding.command[0] == "/usr/bin/g++");
    CHECK(has(binding.command, "-D__HIP_PLATFORM_AMD__=1"));
    CHECK(has(binding.command, "/toolchain/rocm-5.7/include"));

    // What is called .hip is HIP already.
    for (SourceFile& file : here.snapshot.files) {
        if (file.path.text() == "norm_cuda/norm.cu") {
            file.path = RelPath::literal("norm_cuda/norm.hip");
        }
    }
    here.config = test::config_of(replace_all(toml, "norm.cu\"", "norm.hip\""));
    const Plan own = here.plan();
    const Tu& hip = tu_of(own, "norm_cuda/norm.hip");
    CHECK(hip.before.empty());
    CHECK(has(hip.command, "/src/norm_cuda/norm.hip"));
    CHECK_FALSE(hip.command.joined(" ").contains("/work/hip"));
}

TEST_CASE("a variant links its TUs against stubs and promises what it may need", "[plan]") {
    auto here = world(test::kStableToml);
    const Plan plan = here.plan();
    const PlannedVariant& cuda = plan.variants.back();
    CHECK(cuda.name.text() == "torch-stable-abi211-cu130-x86_64-linux");
    CHECK(cuda.link.output ==
          "link/torch-stable-abi211-cu130-x86_64-linux/" + cuda.ops_id + ".abi3.so");
    const std::string command = cuda.link.command.joined(" ");
    CHECK(command.contains("-L/toolchain/stubs -L/toolchain/torch-2.11/stubs"));
    CHECK(command.contains(
        "-Wl,--no-as-needed -ltorch -ltorch_cpu -ltorch_cuda -Wl,--as-needed -lcudart"));
    CHECK(cuda.tus.size() == 2);
    CHECK(cuda.promises.archs == std::vector<std::string>{"8.0", "9.0", "12.0+PTX"});
    CHECK(cuda.promises.libc_policy == "manylinux_2_28");
    CHECK(cuda.promises.torch_stable_abi == Version{{2, 11}});
    CHECK_FALSE(cuda.promises.torch);
    CHECK(cuda.promises.python_abi == Version{{3, 9}});
    CHECK(cuda.promises.libraries ==
          Words{"libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so", "libcudart.so"});
    CHECK(plan.variants.front().promises.archs.empty());
    CHECK(plan.variants.front().promises.device_code == backend::DeviceCode::none);
}

TEST_CASE("the ops id comes from the content of the sources alone", "[plan]") {
    auto here = world(test::kAotToml);
    const std::string id = unique_id(here.config, here.snapshot);
    CHECK(id.size() == 10);
    CHECK(ops_id(here.config, BackendId::cpu, id) == "_norm_cpu_" + id);
    const std::string commented = "# a comment\n" + std::string{test::kAotToml};
    CHECK(unique_id(test::config_of(commented), here.snapshot) == id);
    // A generated header belongs to the tool, not to the kernel.
    SourceSnapshot other = here.snapshot;
    other.files[2].sha256 = digest::sha256("another template");
    CHECK(unique_id(here.config, other) == id);
    other.package[1].sha256 = digest::sha256("another layer");
    CHECK(unique_id(here.config, other) != id);
    const auto flags = test::config_of(with(test::kAotToml, "-lineinfo", "-G"));
    CHECK(unique_id(flags, here.snapshot) != id);
}

TEST_CASE("the order of lists in the input does not matter", "[plan]") {
    auto here = world(test::kAotToml);
    const std::string expected = write_plan(here.plan());
    std::mt19937 random{20261130};
    for (int round = 0; round < 10; ++round) {
        std::ranges::shuffle(here.snapshot.files, random);
        std::ranges::shuffle(here.snapshot.package, random);
        std::ranges::shuffle(here.lock.entries, random);
        std::ranges::shuffle(here.matrix.rows, random);
        std::ranges::shuffle(here.matrix.torch, random);
        std::ranges::shuffle(here.matrix.toolkits, random);
        CHECK(write_plan(here.plan()) == expected);
    }
}

TEST_CASE("plans of the reference kernels stay as they are", "[plan][golden]") {
    auto aot = world(test::kAotToml);
    kb::test::golden("plan/aot.json", write_plan(aot.plan()));
    auto stable = world(test::kStableToml);
    kb::test::golden("plan/stable.json", write_plan(stable.plan()));
}

TEST_CASE("a plan reads back as what was written", "[plan][json]") {
    for (const std::string_view toml : {test::kAotToml, test::kStableToml}) {
        auto here = world(toml);
        const std::string text = write_plan(here.plan());
        const auto back = parse_plan(text);
        REQUIRE(back.has_value());
        CHECK(write_plan(*back) == text);
    }
}

TEST_CASE("a plan that was changed by hand is refused", "[plan][json]") {
    auto here = world(test::kStableToml);
    const std::string text = write_plan(here.plan());
    const auto [from, to] = GENERATE(table<std::string, std::string>({
        {"kernel-builder/plan/1", "kernel-builder/plan/2"},
        {"\"kind\": \"cxx\"", "\"kind\": \"c\""},
        {"\"libc-policy\"", "\"libc\""},
        {"\"name\": \"torch-stable-abi211-cpu", "\"name\": \"torch-stable-abi-cpu"},
        {"\"tool\": \"0.1.0\"", "\"tool\": \"0.2.0\""},
        {"\"source\": \"norm_cpu/norm.cpp\"", "\"source\": \"../norm.cpp\""},
        {"\"wheel/torch@2.11.0#include\"\n", "\"torch\"\n"},
    }));
    CAPTURE(from);
    const std::string changed = replace_all(text, from, to);
    REQUIRE(changed != text);
    const auto back = parse_plan(changed);
    REQUIRE_FALSE(back.has_value());
    CHECK(back.error().code == ErrorCode::corrupt);
}

TEST_CASE("what the lock does not hold is listed, the plan is made all the same", "[plan]") {
    auto here = world(test::kStableToml);
    CHECK(here.plan().missing.empty());
    std::erase_if(here.lock.entries,
                  [](const LockEntry& entry) { return entry.id.starts_with("wheel/nvidia"); });
    const Plan plan = here.plan();
    CHECK(plan.missing.size() == 5);
    CHECK(plan.missing.front().name == "nvidia-cuda-cccl");
    const auto wanted = requirements(here.config, here.matrix, here.selection);
    CHECK(plan.requirements == wanted);
    CHECK(wanted.size() == 9);
}

TEST_CASE("a new digest in the lock gives new keys where it is used", "[plan]") {
    auto here = world(test::kStableToml);
    const Plan before = here.plan();
    for (LockEntry& entry : here.lock.entries) {
        if (entry.id.starts_with("wheel/nvidia-cuda-nvcc")) {
            entry.sha256 = digest::sha256("another nvcc");
        }
    }
    const Plan after = here.plan();
    CHECK(after.variants[0].key.id() == before.variants[0].key.id());
    CHECK(after.variants[1].key.id() != before.variants[1].key.id());
    const std::string difference =
        digest::difference(before.variants[1].key.lines, after.variants[1].key.lines);
    CHECK(difference.contains("requires:wheel/nvidia-cuda-nvcc@13.0.88"));
    CHECK(difference.contains("tu:norm_cuda/norm.cu"));
    CHECK_FALSE(difference.contains("package:"));
}

TEST_CASE("mistakes that touch a chosen variant are errors with their place", "[plan]") {
    const auto [from, to, expected] = GENERATE(table<std::string, std::string, std::string>({
        {"norm_cpu/norm.cpp",
         "norm_cpu/nrom.cpp",
         "build.toml:14:8: error: there is no file 'norm_cpu/nrom.cpp' [missing-source]"},
        {"\"norm_cpu/norm.cpp\"",
         "\"norm_cuda/norm.cu\"",
         "'norm_cuda/norm.cu' is nothing that the CPU backend compiles [wrong-source-kind]"},
        {"\"norm_cpu/norm.cpp\"", "\"../norm.cpp\"", "there is no file '../norm.cpp'"},
        {"[\"8.0\", \"9.0\", \"12.0+PTX\"]",
         "[\"5.0\"]",
         "section 'norm_cuda' has no architecture left for CUDA 13.0: empty set of capabilities"},
        {"cuda-flags =",
         "cuda-minver = \"13.2\"\ncuda-flags =",
         "CUDA 13.0 is older than the cuda-minver of every section [no-section-left]"},
        {"cxx-flags =",
         "include = [\"/usr/include\"]\ncxx-flags =",
         "'/usr/include' is not a folder of the project [bad-path]"},
    }));
    CAPTURE(from, to);
    auto here = world(with(test::kAotToml, from, to));
    CHECK_FALSE(here.try_plan());
    std::string all;
    for (const auto& item : here.diagnostics.items()) {
        all += to_text(item) + "\n";
    }
    CAPTURE(all);
    CHECK(all.find(expected) != std::string::npos);
}

TEST_CASE("a mistake in a section that is not selected hurts nobody", "[plan]") {
    auto here = world(with(test::kAotToml, "norm_cuda/norm.cu\"", "norm_cuda/gone.cu\""));
    CHECK_FALSE(here.try_plan());
    here.selection.backends = {BackendId::cpu};
    CHECK(here.plan().variants.size() == 3);
}

TEST_CASE("an architecture that a toolkit leaves out is a warning at its place", "[plan]") {
    auto here = world(with(test::kAotToml, "\"12.0+PTX\"", "\"7.0\", \"12.0+PTX\""));
    const Plan plan = here.plan();
    REQUIRE(here.diagnostics.items().size() == 1);
    CHECK_THAT(to_text(here.diagnostics.items().front()),
               Catch::Matchers::StartsWith(
                   "build.toml:20:36: warning: '7.0' is left out of the variants for "
                   "CUDA 13.0: CUDA 13.0 cannot compile it [refused-architecture]"));
    CHECK(plan.variants.back().sections.front().choice.refused.size() == 1);
}

TEST_CASE("a selection that matches nothing says what there is", "[plan]") {
    auto here = world(test::kAotToml);
    const auto message = [&](std::string name) {
        here.selection.variants = {std::move(name)};
        CHECK_FALSE(here.try_plan());
        REQUIRE(here.diagnostics.items().size() == 1);
        return to_text(here.diagnostics.items().front());
    };
    CHECK(message("torch215-cxx11-cu130-x86_64-linus")
              .contains("did you mean 'torch215-cxx11-cu130-x86_64-linux'?"));
    CHECK(message("torch213-cxx11-cu126-x86_64-linux")
              .contains("cannot be built: CUDA 12.6: no nvcc of this version can be fetched"));
}

TEST_CASE("a file of two sections is compiled once with what both say", "[plan]") {
    auto here = world(std::string{test::kAotToml} + R"(
[kernel.more]
backend = "cuda"
depends = []
cuda-capabilities = ["10.0"]
cuda-flags = ["--use_fast_math"]
src = ["norm_cuda/norm.cu"]
)");
    const Plan plan = here.plan();
    const Tu& tu = tu_of(plan, "norm_cuda/norm.cu");
    CHECK(tu.archs == std::vector<std::string>{"8.0", "9.0", "10.0", "12.0+PTX"});
    CHECK(has(tu.command, "-lineinfo"));
    CHECK(has(tu.command, "--use_fast_math"));
}

TEST_CASE("a flag with a line end is an error with its section", "[plan]") {
    auto here = world(with(test::kAotToml,
                           "backend = \"cuda\"\ndepends = []",
                           "backend = \"cuda\"\ndepends = []\ncxx-flags = [\"a\\nb\"]"));
    CHECK_FALSE(here.try_plan());
    REQUIRE(here.diagnostics.items().size() == 1);
    CHECK(to_text(here.diagnostics.items().front()).contains("control character"));
}

TEST_CASE("native dependencies bring their folders and needs", "[plan]") {
    auto here = world(with(test::kAotToml,
                           "backend = \"cuda\"\ndepends = []",
                           "backend = \"cuda\"\ndepends = [\"torch\", \"cutlass_3_6\"]"));
    const Plan plan = here.plan();
    const Tu& tu = tu_of(plan, "norm_cuda/norm.cu");
    CHECK(has(tu.command, "/toolchain/cutlass-3.6/include"));
    CHECK(has(tu.requirements, "wheel/nvidia-cutlass@3.6.0.0#include"));
    CHECK_FALSE(has(tu.command, "/toolchain/torch-2.11/include"));
}

TEST_CASE("a toolkit that brings its own host compiler is given it", "[plan]") {
    auto here = world(test::kAotToml);
    here.selection.cuda = VersionSet::parse("11.8").value();
    here.selection.torch = VersionSet::parse("2.7").value();
    const Plan plan = here.plan();
    const Tu& tu = tu_of(plan, "norm_cuda/norm.cu");
    CHECK(has(tu.command, "/toolchain/cuda-11.8/bin/nvcc"));
    CHECK(has(tu.command, "-ccbin=/usr/bin/g++-11"));
    CHECK(has(tu.command, "-std=c++17"));
    CHECK(has(tu.requirements, "deb/host-gcc@11"));
}

TEST_CASE("a noarch variant is planned without anything to compile", "[plan]") {
    auto here = world(R"([general]
name = "silu"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cuda", "cpu"]

[torch-noarch]
)");
    const Plan plan = here.plan();
    CHECK(plan.tus.empty());
    CHECK(plan.requirements.empty());
    REQUIRE(plan.variants.size() == 2);
    CHECK(plan.variants[0].name.text() == "torch-cpu");
    CHECK(plan.variants[0].link.output.empty());
    CHECK(plan.variants[0].ops_id.starts_with("_silu_cpu_"));
    CHECK(parse_plan(write_plan(plan)).has_value());
}

} // namespace kb::plan
