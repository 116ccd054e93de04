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
    /// Of the device that its torch uses; cpu without one.
    backend::BackendId backend = backend::BackendId::cpu;
    /// Version of its torch, without the local part.
    Version torch{};
};

/// PURE. The variant in `names` to load there, by the rule of a build for this machine; variants of
/// another torch, and of a newer stable ABI, are none. Nothing when none is left.
[[nodiscard]] std::optional<std::size_t> loadable_variant(std::span<const std::string> names,
                                                          const PythonFacts& python);

/// Version in torch/version.py of the package directory `torch`.
[[nodiscard]] Result<Version> read_torch_version(sys::FileSystem& fs, const sys::Path& torch);

/// A folder for PYTHONPATH in which `variant` (absolute) is the package `module`. It is made below
/// `cache` once for each pair, and holds a link, so that it shows what the next build publishes.
[[nodiscard]] Result<sys::Path> make_importable(sys::FileSystem& fs,
                                                const sys::Path& cache,
                                                const std::string& module,
                                                const sys::Path& variant);

} // namespace kb::build
