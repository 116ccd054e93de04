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

/// Libraries of torch that an extension may be linked with.
constexpr std::array<std::string_view, 6> kTorchLibraries{"libc10.so",
                                                          "libc10_cuda.so",
                                                          "libtorch.so",
                                                          "libtorch_cpu.so",
                                                          "libtorch_cuda.so",
                                                          "libtorch_python.so"};

bool is_torch(const Requirement& requirement) {
    return requirement.provider == "wheel" && requirement.name == "torch";
}

bool is_tvm_ffi(const Requirement& requirement) {
    return requirement.provider == "wheel" && requirement.name == "apache-tvm-ffi";
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
};

store::RootLink link(std::string_view path, std::string target) {
    return {.path = RelPath::literal(path), .target = std::move(target)};
}

MountRule rule_of(const Requirement& requirement) {
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
    if (requirement.name.starts_with("nvidia-")) {
        const std::string major = requirement.version.substr(0, requirement.version.find('.'));
        return {.links = {link("lib/libcudart.so", "libcudart.so." + major),
                          link("lib64", "lib"),
                          // Where nvcc -dlto looks for it.
                          link("nvvm/lib64/libnvvm.so.4", "../../lib/libnvvm.so.4"),
                          link("nvvm/lib64/libnvvm.so", "../../lib/libnvvm.so.4")}};
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
    Result<TreeRef> baseline_stubs(const Requirement& requirement);
    Result<TreeRef> framework_stubs(const Requirement& requirement,
                                    std::span<const StubLibrary> libraries);

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
    // Fetched here too: a caller that wants only the headers of torch gets stubs with them.
    KB_TRY(const auto wanted, entries(kCompiler));
    KB_TRY(fetch(wanted, store_, machine_, options_));
    RootRecipe recipe{.name = kCompiler.id()};
    KB_TRY(add_trees(kCompiler, recipe));
    return store_.compose(recipe);
}

Result<TreeRef> Composer::baseline_stubs(const Requirement& requirement) {
    KB_TRY(const auto wanted, entries(requirement));
    const auto table = embedded_data(wanted.front().file);
    const auto compat = embedded_data("compat.c");
    KB_ASSERT(table && compat, "fetch() compared the data with the lock");
    KB_TRY(const auto libraries, parse_stub_table(*table));
    KB_TRY(const TreeRef gcc, compiler());
    return generate_tree(requirement.id(),
                         baseline_stub_sources(libraries, *compat),
                         gcc,
                         store_,
                         machine_,
                         confinement_);
}

Result<TreeRef> Composer::framework_stubs(const Requirement& requirement,
                                          std::span<const StubLibrary> libraries) {
    KB_TRY(const TreeRef gcc, compiler());
    return generate_tree(fmt::format("stub/{}@{}", requirement.name, requirement.version),
                         framework_stub_sources(libraries),
                         gcc,
                         store_,
                         machine_,
                         confinement_);
}

Result<Root> Composer::compose(const std::string& mount, const std::vector<Requirement>& parts) {
    RootRecipe recipe{.name = mount};
    for (const Requirement& requirement : parts) {
        if (requirement.provider == "stub") {
            KB_TRY(const TreeRef stubs, baseline_stubs(requirement));
            recipe.parts.push_back({.tree = stubs.digest});
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

Result<std::string> mount_of(const Requirement& requirement) {
    const auto version = Version::parse(requirement.version);
    if (requirement.provider == "deb" && requirement.name == "gcc") {
        return std::string{backend::kHostMount};
    }
    if (requirement.provider == "deb" && requirement.name == "python-headers") {
        return std::string{backend::kPythonMount};
    }
    if (requirement.provider == "stub") {
        return std::string{backend::kStubsMount};
    }
    if (version && is_torch(requirement)) {
        return backend::torch_mount(*version);
    }
    if (version && requirement.provider == "wheel" && requirement.name.starts_with("nvidia-")) {
        return backend::cuda_mount(*version);
    }
    if (is_tvm_ffi(requirement)) {
        // "0.1.15.post2": only the first two numbers name the place.
        const auto parts = split(requirement.version, '.');
        if (const auto short_version =
                Version::parse(fmt::format("{}.{}", parts[0], parts.size() > 1 ? parts[1] : "0"))) {
            return backend::tvm_ffi_mount(*short_version);
        }
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
