// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/mounts.hpp"
#include "backend/rules.hpp"
#include "base/rel_path.hpp"
#include "base/words.hpp"
#include "plan/support_matrix.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::plan {

/// What one compilation is told, before its output has a name. The same facts that the CMake
/// project puts into tables.
/// Its views outlive the call.
struct CompileRequest {
    const RelPath& source;
    /// Folder that the source is read from.
    std::string_view source_root = backend::kSourceMount;
    backend::SourceKind kind = backend::SourceKind::cxx;
    const ToolkitRow& toolkit;
    /// "/usr/bin/g++"
    std::string_view cxx{};
    std::uint32_t cxx_standard = 17;
    /// "-frandom-seed=...".
    std::string_view seed{};
    /// "NAME" or "NAME=value".
    std::vector<std::string> definitions{};
    /// Absolute folders of the project and of toolchains.
    std::span<const std::string> include{};
    std::vector<std::string> system_include{};
    std::span<const std::string> archs{};
    /// The author's flags for this kind of source.
    std::span<const std::string> flags{};
};

/// The compiler with everything but the output: "-c <source>" comes last. Empty for kinds that no
/// toolchain of ours compiles.
[[nodiscard]] Words compile_command(const CompileRequest& request);

/// The step before the compilation of a CUDA source for ROCm: writes these files of the project,
/// translated to HIP, below backend::kTranslatedMount.
[[nodiscard]] Words translate_command(const Version& rocm, const std::vector<RelPath>& files);

struct LinkRequest {
    std::string_view cxx{};
    std::vector<std::string_view> objects{};
    /// Folders with libraries, in search order.
    std::vector<std::string> library_dirs{};
    /// Stubs without content: needed whether a symbol of theirs is used or not.
    std::span<const std::string> needed{};
    /// Needed only if used.
    std::span<const std::string> libraries{};
    std::string output{};
};

[[nodiscard]] Words link_command(const LinkRequest& request);

/// Include folders of torch below its mount.
[[nodiscard]] std::vector<std::string> torch_include(std::string_view mount);

} // namespace kb::plan
