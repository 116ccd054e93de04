// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/variant.hpp"
#include "base/result.hpp"
#include "sys/file_system.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kb::build {

/// What bears on which variant a Python can load.
struct PythonFacts {
    backend::Platform platform{};
    /// Of its torch, without what follows the numbers.
    Version torch{};
    /// What its torch computes with here; cpu without a device that it is built for.
    backend::BackendId backend = backend::BackendId::cpu;
    /// Version of that backend's toolkit, as torch says it.
    std::optional<Version> backend_version{};
};

/// PURE. The variant in `names` to load there, by the rule of a build for this machine; variants of
/// another torch, a newer stable ABI, another device or another major version of its toolkit are
/// none. Nothing when none is left.
[[nodiscard]] std::optional<std::size_t> loadable_variant(std::span<const std::string> names,
                                                          const PythonFacts& python);

/// What torch/version.py of the package directory `torch` says.
struct TorchVersion {
    Version torch{};
    /// Of the toolkit that it was built with; nothing for a build without CUDA.
    std::optional<Version> cuda{};
};

[[nodiscard]] Result<TorchVersion> read_torch_version(sys::FileSystem& fs, const sys::Path& torch);

/// A folder for PYTHONPATH in which `variant` (absolute) is the package `module`. It is made below
/// `cache` once for each pair, and holds a link, so that it shows what the next build publishes.
[[nodiscard]] Result<sys::Path> make_importable(sys::FileSystem& fs,
                                                const sys::Path& cache,
                                                const std::string& module,
                                                const sys::Path& variant);

} // namespace kb::build
