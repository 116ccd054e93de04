// SPDX-License-Identifier: Apache-2.0
#include "backend/mounts.hpp"
#include "base/text.hpp"
#include "toolchain/embedded_data.hpp"
#include "toolchain/package.hpp"
#include "toolchain/stubs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace kb::toolchain {
namespace {

using backend::Requirement;
using plan::LockEntry;
using store::RootPart;
using store::RootRecipe;
using store::TreeRef;

/// The compiler with which the program makes stubs: every Linux host of the matrix has it.
const Requirement kCompiler{.provider = "deb", .name = "gcc", .version = "12"};
/// What stands beside it for other machines than the one that builds.
const Requirement kCrossCompiler{.provider = "deb", .name = "cross-gcc-aarch64", .version = "12"};
constexpr std::string_view kCrossTools = "aarch64-linux-gnu-";

/// Libraries of torch that an extension may be linked with.
constexpr std::array<std::string_view, 8> kTorchLibraries{"libc10.so",
                                                          "libc10_cuda.so",
                                                          "libc10_hip.so",
                                                          "libtorch.so",
                                                          "libtorch_cpu.so",
                                                          "libtorch_cuda.so",
                                                          "libtorch_hip.so",
                                                          "libtorch_python.so"};

bool is_torch(const Requirement& requirement) {
    return requirement.provider == "wheel" && requirement.name == "torch";
}

bool is_tvm_ffi(const Requirement& requirement) {
    return requirement.provider == "wheel" && requirement.name == "apache-tvm-ffi";
}

/// Stubs of the system's libraries, which have a place of their own; others stand beside the
/// headers of what they stand for.
bool is_baseline(const Requirement& requirement) {
    return requirement.name.starts_with("manylinux_");
}

/// What an extension with these headers is linked with.
std::vector<StubLibrary> framework_libraries(const Requirement& requirement) {
    std::vector<StubLibrary> libraries;
    if (is_torch(requirement)) {
        for (const std::string_view soname : kTorchLibraries) {
            libraries.push_back({.soname = std::string{soname}});
        }
    } else if (is_tvm_ffi(requirement)) {
        libraries.push_back({.soname = "libtvm_ffi.so"});
    }
    return libraries;
}

/// What is the same for every root at a place, whatever parts it has.
struct MountRule {
    std::vector<store::PathRule> moves{};
    std::vector<store::RootLink> links{};
    std::vector<FileImage> files{};
};

store::RootLink link(std::string_view path, std::string target) {
    return {.path = RelPath::literal(path), .target = std::move(target)};
}

/// The profile that nvcc reads beside itself, with places relative to it: Debian's names its own
/// system folders, others a folder of targets. CUDA 13 has CUB and Thrust below cccl/.
constexpr std::string_view kNvccProfile = R"(TOP              = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH            += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES        += "-I$(TOP)/include" "-I$(TOP)/include/cccl" $(_SPACE_)
LIBRARIES       =+ $(_SPACE_) "-L$(TOP)/lib"
)";

FileImage nvcc_profile() {
    return {.path = RelPath::literal("bin/nvcc.profile"), .content = std::string{kNvccProfile}};
}

/// Debian's nvcc in the layout that NVIDIA gives it. Of its programs those that a build runs.
MountRule debian_nvcc() {
    const std::string lib = "usr/lib/nvidia-cuda-toolkit/";
    MountRule rule{.moves = {{lib + "bin/nvcc.profile", std::nullopt},
                             {lib + "bin/cicc", "nvvm/bin/cicc"},
                             {lib + "bin/nvcc", "bin/nvcc"},
                             {lib + "bin/crt/", "bin/crt/"},
                             {lib + "libdevice/", "nvvm/libdevice/"}},
                   .files = {nvcc_profile()}};
    for (const std::string_view program :
         {"bin2c", "cu++filt", "cudafe++", "cuobjdump", "fatbinary", "nvlink", "ptxas"}) {
        rule.moves.push_back({fmt::format("usr/bin/{}", program), fmt::format("bin/{}", program)});
    }
    return rule;
}

/// A program of a newer Debian than the sandbox's, started by its own loader with its own
/// libraries. The compiler finds its other parts and starts itself again by the name it is given.
constexpr std::string_view kOwnLoader = R"(#!/bin/sh
here=${{0%/*}}
exec "$here/../lib/ld-linux-x86-64.so.2" --library-path "$here/../lib" --argv0 "$0" "$here/../libexec/{}" "$@"
)";

/// Debian's clang with what it needs for HIP, in the layout of a ROCm installation.
MountRule debian_rocm() {
    const std::string llvm = "usr/lib/llvm-17/";
    // The first rule that a name begins with counts: of the tools one, not the forty around it.
    MountRule rule{.moves = {{llvm + "bin/clang-offload-bundler", "libexec/clang-offload-bundler"},
                             {llvm + "bin/clang-", std::nullopt},
                             {llvm + "bin/clang+", std::nullopt},
                             {llvm + "bin/clang", "libexec/clang"},
                             {llvm + "bin/lld-", std::nullopt},
                             {llvm + "bin/lld", "libexec/lld"},
                             {llvm + "lib/clang/17/include/", "lib/clang/17/include/"},
                             {llvm + "lib/clang/17/amdgcn/", "amdgcn/"},
                             {llvm + "lib/libclang-cpp.so.17", "lib/libclang-cpp.so.17"},
                             {"usr/include/hip/", "include/hip/"},
                             {"usr/lib/x86_64-linux-gnu/cmake/", std::nullopt},
                             {"usr/lib/x86_64-linux-gnu/gconv/", std::nullopt},
                             {"usr/lib/x86_64-linux-gnu/libclang-cpp.so.17", std::nullopt},
                             {"usr/lib/x86_64-linux-gnu/", "lib/"}},
                   .links = {link("stubs/libamdhip64.so", "libamdhip64.so.5")}};
    const auto add = [&](std::string_view path, std::string content) {
        rule.files.push_back({.path = RelPath::literal(path),
                              .content = std::move(content),
                              .mode = FileMode::executable});
    };
    for (const auto& [name, program] :
         {std::pair{"clang++", "clang"},
          std::pair{"lld", "lld"},
          std::pair{"clang-offload-bundler", "clang-offload-bundler"}}) {
        add(fmt::format("bin/{}", name), fmt::format(kOwnLoader, program));
    }
    // The bundler looks for it and never runs it for what is no object file.
    add("bin/llvm-objcopy", "#!/bin/sh\nexec objcopy \"$@\"\n");
    const auto translator = embedded_data("cuda-to-hip-1");
    KB_ASSERT(translator.has_value(), "the translator is compiled in");
    add("bin/cuda-to-hip-1", std::string{*translator});
    return rule;
}

MountRule cuda_wheel_rule(const Requirement& requirement) {
    const std::string major = requirement.version.substr(0, requirement.version.find('.'));
    MountRule rule{.links = {link("lib/libcudart.so",
                                  major == "11" ? "libcudart.so.11.0" : "libcudart.so." + major),
                             link("lib64", "lib")}};
    if (!requirement.name.ends_with("-cu11") && !requirement.name.ends_with("-cu12")) {
        // Where nvcc -dlto looks for it.
        rule.links.push_back(link("nvvm/lib64/libnvvm.so.4", "../../lib/libnvvm.so.4"));
        rule.links.push_back(link("nvvm/lib64/libnvvm.so", "../../lib/libnvvm.so.4"));
    }
    return rule;
}

MountRule rule_of(const Requirement& requirement) {
    if (requirement.provider == "archive" || requirement.provider == "git") {
        return {};
    }
    if (requirement.provider == "conda" || requirement.provider == "host") {
        return {.links = {link("lib64", "lib")}, .files = {nvcc_profile()}};
    }
    if (requirement.provider == "deb" && requirement.name == "cuda-nvcc") {
        return debian_nvcc();
    }
    if (requirement.provider == "deb" && requirement.name == "rocm") {
        return debian_rocm();
    }
    if (requirement.provider == "deb" && requirement.name == "host-gcc") {
        return {.moves = {{"usr/", ""}}};
    }
    if (requirement.provider == "deb" && requirement.name == kCrossCompiler.name) {
        const auto tool = [&](std::string_view name) {
            const std::string program = fmt::format("{}{}", kCrossTools, name);
            return link("bin/" + program, program + "-" + requirement.version);
        };
        return {.moves = {{"usr/", ""}}, .links = {tool("g++"), tool("gcc")}};
    }
    if (requirement.provider == "deb" && requirement.name == "gcc") {
        const std::string suffix = "-" + requirement.version;
        return {.moves = {{"usr/", ""}},
                .links = {link("bin/g++", "g++" + suffix),
                          link("bin/gcc", "gcc" + suffix),
                          link("bin/c++", "g++" + suffix),
                          link("bin/cc", "gcc" + suffix)}};
    }
    if (requirement.provider == "deb") { // python-headers
        const std::string python = "python" + requirement.version;
        // The package has a pyconfig.h that looks for the right one by a path outside the root.
        return {.moves = {{fmt::format("usr/include/{}/pyconfig.h", python), std::nullopt},
                          {fmt::format("usr/include/x86_64-linux-gnu/{}/", python), ""},
                          {fmt::format("usr/include/{}/", python), ""}}};
    }
    if (requirement.name == "nvidia-cutlass") {
        return {};
    }
    if (requirement.name.starts_with("nvidia-")) {
        return cuda_wheel_rule(requirement);
    }
    return {.moves = {{"include/", "include/"}}};
}

class Composer {
public:
    Composer(const plan::Lock& lock,
             const backend::Platform& platform,
             store::Store& store,
             const Machine& machine,
             const FetchOptions& options,
             const Confinement& confinement)
        : lock_{lock},
          platform_{platform},
          store_{store},
          machine_{machine},
          options_{options},
          confinement_{confinement} {}

    Result<Root> compose(const std::string& mount, const std::vector<Requirement>& parts);

private:
    Result<void> add_trees(const Requirement& requirement, RootRecipe& recipe);
    Result<TreeRef> compiler();
    Result<TreeRef> pinned_stubs(const Requirement& requirement);
    Result<TreeRef> framework_stubs(const Requirement& requirement,
                                    std::span<const StubLibrary> libraries);

    [[nodiscard]] bool is_cross() const { return platform_.cpu != backend::Cpu::x86_64; }

    /// What the names of the compiler's programs begin with.
    [[nodiscard]] std::string_view tools() const { return is_cross() ? kCrossTools : ""; }

    [[nodiscard]] Result<std::vector<LockEntry>> entries(const Requirement& requirement) const {
        return select_entries(std::span{&requirement, 1}, lock_, platform_);
    }

    const plan::Lock& lock_;
    const backend::Platform& platform_;
    store::Store& store_;
    const Machine& machine_;
    const FetchOptions& options_;
    const Confinement& confinement_;
};

Result<void> Composer::add_trees(const Requirement& requirement, RootRecipe& recipe) {
    KB_TRY(const auto wanted, entries(requirement));
    const MountRule rule = rule_of(requirement);
    for (const LockEntry& entry : wanted) {
        KB_TRY(const auto tree, find_tree(store_, entry));
        if (!tree) {
            return Error{.code = ErrorCode::not_found,
                         .message = fmt::format("'{}' was removed from the store while it was "
                                                "needed; run the command again",
                                                entry.id)};
        }
        recipe.parts.push_back({.tree = tree->digest, .moves = rule.moves});
    }
    recipe.files.insert(recipe.files.end(), rule.files.begin(), rule.files.end());
    for (const store::RootLink& wanted_link : rule.links) {
        const bool there = std::ranges::any_of(recipe.links, [&](const store::RootLink& other) {
            return other.path == wanted_link.path;
        });
        if (!there) {
            recipe.links.push_back(wanted_link);
        }
    }
    return {};
}

Result<TreeRef> Composer::compiler() {
    RootRecipe recipe{.name = kCompiler.id()};
    std::vector<Requirement> parts{kCompiler};
    if (is_cross()) {
        parts.push_back(kCrossCompiler);
    }
    for (const Requirement& part : parts) {
        // Fetched here too: a caller that wants only the headers of torch gets stubs with them.
        KB_TRY(const auto wanted, entries(part));
        KB_TRY(fetch(wanted, store_, machine_, options_));
        KB_TRY(add_trees(part, recipe));
    }
    return store_.compose(recipe);
}

Result<TreeRef> Composer::pinned_stubs(const Requirement& requirement) {
    KB_TRY(const auto wanted, entries(requirement));
    const auto table = embedded_data(wanted.front().file);
    const auto compat = embedded_data("compat.c");
    KB_ASSERT(table && compat, "fetch() compared the data with the lock");
    KB_TRY(const auto libraries, parse_stub_table(*table));
    KB_TRY(const TreeRef gcc, compiler());
    return generate_tree(requirement.id(),
                         is_baseline(requirement)
                             ? baseline_stub_sources(libraries, *compat, tools())
                             : framework_stub_sources(libraries, tools()),
                         gcc,
                         store_,
                         machine_,
                         confinement_);
}

Result<TreeRef> Composer::framework_stubs(const Requirement& requirement,
                                          std::span<const StubLibrary> libraries) {
    KB_TRY(const TreeRef gcc, compiler());
    return generate_tree(fmt::format("stub/{}@{}", requirement.name, requirement.version),
                         framework_stub_sources(libraries, tools()),
                         gcc,
                         store_,
                         machine_,
                         confinement_);
}

Result<Root> Composer::compose(const std::string& mount, const std::vector<Requirement>& parts) {
    RootRecipe recipe{.name = mount};
    for (const Requirement& requirement : parts) {
        if (requirement.provider == "stub") {
            KB_TRY(const TreeRef stubs, pinned_stubs(requirement));
            recipe.parts.push_back({.tree = stubs.digest});
            if (!is_baseline(requirement)) {
                recipe.parts.back().moves = {{"", "stubs/"}};
            }
            continue;
        }
        KB_TRY(add_trees(requirement, recipe));
        if (const auto libraries = framework_libraries(requirement); !libraries.empty()) {
            KB_TRY(const TreeRef stubs, framework_stubs(requirement, libraries));
            recipe.parts.push_back({.tree = stubs.digest, .moves = {{"", "stubs/"}}});
        }
    }
    KB_TRY(const TreeRef root, store_.compose(recipe));
    return Root{.host = root.path, .mount = mount, .digest = root.digest};
}

} // namespace

namespace {

/// "0.1.15.post2": only the first two numbers name a place.
std::optional<Version> place_version(const Requirement& requirement) {
    if (requirement.slice.starts_with("cuda-")) {
        return Version::parse(requirement.slice.substr(5));
    }
    std::string_view text = requirement.version;
    text.remove_prefix(text.starts_with('v') ? 1 : 0); // tags of git
    const auto parts = split(text, '.');
    return Version::parse(fmt::format("{}.{}", parts[0], parts.size() > 1 ? parts[1] : "0"));
}

std::optional<std::string> deb_mount(const Requirement& requirement, const Version& version) {
    if (requirement.name == "gcc" || requirement.name == "host-gcc" ||
        requirement.name == kCrossCompiler.name) {
        return std::string{backend::kHostMount};
    }
    if (requirement.name == "python-headers") {
        return std::string{backend::kPythonMount};
    }
    if (requirement.name == "cuda-nvcc") {
        return backend::cuda_mount(version);
    }
    if (requirement.name == "rocm") {
        return backend::rocm_mount(version);
    }
    return std::nullopt;
}

std::optional<std::string> wheel_mount(const Requirement& requirement, const Version& version) {
    if (requirement.name == "torch") {
        return backend::torch_mount(version);
    }
    if (requirement.name == "apache-tvm-ffi") {
        return backend::tvm_ffi_mount(version);
    }
    if (requirement.name == "nvidia-cutlass") {
        return backend::dependency_mount("cutlass-" + version.to_text());
    }
    if (requirement.name.starts_with("nvidia-")) {
        return backend::cuda_mount(version);
    }
    return std::nullopt;
}

} // namespace

Result<std::string> mount_of(const Requirement& requirement) {
    std::optional<std::string> mount;
    const auto version = place_version(requirement);
    if (requirement.provider == "stub" && is_baseline(requirement)) {
        mount = backend::kStubsMount;
    } else if (version && requirement.provider == "stub" && requirement.name == "amdhip64") {
        mount = backend::rocm_mount(*version);
    } else if (version && (requirement.provider == "conda" || requirement.provider == "host") &&
               requirement.name == "cuda") {
        mount = backend::cuda_mount(*version);
    } else if (version && (requirement.provider == "git" || requirement.provider == "archive")) {
        // "NVIDIA/cutlass": the owner does not matter inside.
        const std::string& name = requirement.name;
        mount = backend::dependency_mount(
            fmt::format("{}-{}", name.substr(name.rfind('/') + 1), version->to_text()));
    } else if (version && requirement.provider == "deb") {
        mount = deb_mount(requirement, *version);
    } else if (version && requirement.provider == "wheel") {
        mount = wheel_mount(requirement, *version);
    }
    if (mount) {
        return *mount;
    }
    return Error{.code = ErrorCode::unsupported,
                 .message = fmt::format("'{}' has no place in the sandbox", requirement.id())};
}

Result<std::vector<LockEntry>> select_entries(std::span<const Requirement> requirements,
                                              const plan::Lock& lock,
                                              const backend::Platform& platform) {
    std::vector<LockEntry> out;
    std::vector<std::string> missing;
    for (const Requirement& requirement : requirements) {
        const auto found = plan::entries_for(lock, requirement, platform);
        if (found.empty()) {
            missing.push_back(requirement.id());
        }
        for (const LockEntry* entry : found) {
            out.push_back(*entry);
        }
    }
    if (!missing.empty()) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format("the lock does not pin {} for {}: run 'kernel-builder "
                                            "lock'",
                                            quoted_list(missing),
                                            backend::to_text(platform))};
    }
    std::ranges::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

Result<std::vector<Root>> provide(std::span<const Requirement> requirements,
                                  const plan::Lock& lock,
                                  const backend::Platform& platform,
                                  store::Store& store,
                                  const Machine& machine,
                                  const FetchOptions& options,
                                  const Confinement& confinement) {
    KB_TRY(const auto entries, select_entries(requirements, lock, platform));
    KB_TRY(fetch(entries, store, machine, options));
    std::map<std::string, std::vector<Requirement>> by_mount;
    for (const Requirement& requirement : requirements) {
        KB_TRY(const std::string mount, mount_of(requirement));
        by_mount[mount].push_back(requirement);
    }
    Composer composer{lock, platform, store, machine, options, confinement};
    std::vector<Root> roots;
    for (auto& [mount, parts] : by_mount) {
        std::ranges::sort(parts); // the recipe does not depend on the caller's order
        parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
        KB_TRY(Root root, composer.compose(mount, parts));
        roots.push_back(std::move(root));
    }
    return roots;
}

} // namespace kb::toolchain
