// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/variant.hpp"
#include "config/config.hpp"
#include "plan/include_graph.hpp"
#include "plan/source_snapshot.hpp"
#include "plan/support_matrix.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::plan {

/// What a source is given because it, or a project header that it reaches, asks for it. The one
/// answer that build.ninja and the CMake project print.
struct SourceNeeds {
    /// Headers, definitions and C++ standard of torch or tvm-ffi. Without them code is compiled
    /// alike for all their versions.
    bool framework = false;
    /// Headers and limited API of Python.
    bool python = false;
    /// The name of the operators' library.
    bool ops = false;

    bool operator==(const SourceNeeds&) const = default;
};

[[nodiscard]] SourceNeeds needs_of(const Reach& reach, backend::FrameworkId framework);

/// 17 or 20: the framework's for what includes its headers, else the toolkit's.
[[nodiscard]] std::uint32_t
cxx_standard(const SourceNeeds& needs, const FrameworkRow& framework, const ToolkitRow& toolkit);

/// The section's own flags for device code, before a toolkit's rules leave any out. Unlike the
/// format's first implementation, C++ flags reach HIP and SYCL sources as well.
[[nodiscard]] std::vector<std::string> device_flags(const config::Section& section);

/// Include folders that every source of the extension has after its own: the format's "csrc" where
/// there is one.
[[nodiscard]] std::vector<std::string> common_include(const SourceSnapshot& snapshot);

/// Path below the source root without "./" and a final '/', "" for the root itself; nothing when it
/// leaves the root.
[[nodiscard]] std::optional<std::string> source_path(std::string_view text);

struct DeclaredSource {
    std::string path{};
    SourceNeeds needs{};
};

/// Every source, header or not, that a backend's binding and sections name, sorted by path, each
/// once. One that is not in the snapshot is taken to need everything.
[[nodiscard]] std::vector<DeclaredSource> declared_sources(const config::Config& config,
                                                           const SourceSnapshot& snapshot,
                                                           backend::BackendId backend);

} // namespace kb::plan
