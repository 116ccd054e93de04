// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/arch.hpp"
#include "backend/backend.hpp"
#include "backend/requirement.hpp"
#include "backend/variant.hpp"
#include "base/result.hpp"
#include "base/version.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::plan {

using backend::BackendId;
using backend::Platform;
using backend::Requirement;

/// One version of a framework whose headers kernels are built against.
struct FrameworkRow {
    /// Two components.
    Version version{};
    /// 17 or 20: what its headers need.
    std::uint32_t cxx_standard = 17;
    std::vector<Requirement> requirements{};
    /// Why its headers cannot be had; "" when they can.
    std::string unavailable{};
};

/// One version of a backend's toolkit. Backends without versions have one row without version.
struct ToolkitRow {
    BackendId backend = BackendId::cpu;
    Version version{};
    /// Lists of architectures, and the name for messages ("CUDA 13.0").
    backend::ToolkitArchs archs{};
    /// Newest C++ standard of its device compiler, which torch-free code is compiled with.
    std::uint32_t cxx_standard = 20;
    /// Major versions of g++ that its device compiler accepts as host compiler; absent: any.
    std::optional<Version> host_compiler_min{};
    std::optional<Version> host_compiler_max{};
    /// Major version of the g++ that the toolkit brings for its own use, where it refuses that of
    /// the host: "/usr/bin/g++-11".
    std::optional<Version> host_compiler{};
    /// Platforms that it builds for; empty: any.
    std::vector<Platform> platforms{};
    /// Why only kernels of torch's stable ABI are built with it; "" when all are.
    std::string stable_abi_only{};
    std::vector<Requirement> requirements{};
    std::string unavailable{};
};

/// What is built on and for one platform.
struct HostRow {
    Platform platform{};
    /// Major version of g++.
    Version compiler{};
    /// Its program, in the sandbox of the machine that builds.
    std::string cxx{"/usr/bin/g++"};
    /// Compiled on another kind of machine than it runs on: built only when it is named.
    bool cross = false;
    /// Baseline of the C library that results keep to: "manylinux_2_28".
    std::string libc_policy{};
    std::vector<Requirement> requirements{};
    std::string unavailable{};
};

/// A native library that sections may name in `depends`.
struct DependencyRow {
    /// As in build.toml: "cutlass_3_6".
    std::string name{};
    BackendId backend = BackendId::cuda;
    /// Below the toolchain mount: "cutlass-3.6".
    std::string mount{};
    /// Include folders below the mount.
    std::vector<std::string> include{};
    std::vector<std::string> definitions{};
    std::vector<Requirement> requirements{};
    /// The repository of what comes from elsewhere, for CMake projects, which fetch by themselves.
    std::optional<Requirement> upstream{};
    std::string unavailable{};
};

/// One line of the matrix: a torch version with a toolkit, on some platforms.
struct SupportRow {
    Version torch{};
    BackendId backend = BackendId::cpu;
    Version backend_version{};
    std::vector<Platform> platforms{};
    /// Part of what `build --matrix` makes; other rows are built when they are selected.
    bool in_bundle = true;
    /// A tvm-ffi kernel is built from this row with this version.
    std::optional<Version> tvm_ffi{};
};

/// Everything that is known about what can be built with what: data, with no rule in it.
struct SupportMatrix {
    std::vector<FrameworkRow> torch{};
    std::vector<FrameworkRow> tvm_ffi{};
    std::vector<ToolkitRow> toolkits{};
    std::vector<HostRow> hosts{};
    std::vector<DependencyRow> dependencies{};
    /// Shared by every variant that has a Python entry point.
    std::vector<Requirement> python{};
    /// Oldest Python whose limited API results keep to.
    Version python_abi{};
    std::vector<SupportRow> rows{};
};

/// Reads "kernel-builder/support-matrix/1" strictly: unknown keys, doubled rows, and rows that name
/// a torch or toolkit version without a row of its own are `corrupt`.
[[nodiscard]] Result<SupportMatrix> parse_support_matrix(std::string_view json);
/// The matrix compiled into the program.
[[nodiscard]] const SupportMatrix& default_support_matrix();

/// Rows by name; nullptr when there is none. Versions compare by two components.
[[nodiscard]] const FrameworkRow* find_torch(const SupportMatrix& matrix, const Version& torch);
[[nodiscard]] const FrameworkRow* find_tvm_ffi(const SupportMatrix& matrix, const Version& tvm_ffi);
[[nodiscard]] const ToolkitRow*
find_toolkit(const SupportMatrix& matrix, BackendId backend, const Version& version);
[[nodiscard]] const HostRow* find_host(const SupportMatrix& matrix, const Platform& platform);
[[nodiscard]] const DependencyRow* find_dependency(const SupportMatrix& matrix,
                                                   std::string_view name);

} // namespace kb::plan
