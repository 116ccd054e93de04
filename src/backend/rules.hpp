// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/arch.hpp"
#include "backend/backend.hpp"
#include "backend/variant.hpp"
#include "base/rel_path.hpp"
#include "base/version.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::backend {

/// What a declared file is to a backend. `header` is never compiled by itself; `other` is not
/// source.
enum class SourceKind : std::uint8_t { header, cxx, cuda, hip, sycl, metal, other };

[[nodiscard]] std::string_view to_text(SourceKind kind);

/// The form in which a finished library carries device code.
enum class DeviceCode : std::uint8_t { none, cubin, hsaco, metallib, spirv };

[[nodiscard]] std::string_view to_text(DeviceCode kind);

/// How a library is tied to torch: against one version's C++ interface, or its stable C interface.
enum class TorchBinding : std::uint8_t { versioned, stable };

/// Everything that is true of one backend and of no single kernel. A row of the table; all
/// functions are pure and total.
struct BackendRules {
    BackendId id = BackendId::cpu;
    /// As people write it: "CUDA".
    std::string_view title{};
    DeviceCode device_code = DeviceCode::none;
    /// Preprocessor definitions of every translation unit: "USE_CUDA=1", "CUDA_KERNEL".
    std::span<const std::string_view> definitions{};
    /// Key of the section's architecture list in build.toml, "" for backends without.
    std::string_view archs_key{};

    SourceKind (*source_kind)(const RelPath& path) = nullptr;
    ArchChoice (*choose_archs)(std::span<const std::string> requested,
                               const ToolkitArchs& toolkit) = nullptr;
    /// Flags that select these architectures, in their order: "-gencode=arch=...",
    /// "--offload-arch=gfx90a".
    std::vector<std::string> (*arch_flags)(std::span<const std::string> archs) = nullptr;
    /// Flags of every device source besides optimisation, standard and architectures.
    std::span<const std::string_view> device_flags{};
    /// Flags removed from an author's device flags for toolkits that do not know them.
    std::vector<std::string> (*usable_flags)(std::span<const std::string> flags,
                                             const Version& toolkit) = nullptr;
    /// Names given to the linker ("torch_cuda" for libtorch_cuda.so), in link order.
    std::vector<std::string> (*torch_libraries)(TorchBinding binding) = nullptr;
    /// Libraries of the toolkit that every variant links: "cudart".
    std::span<const std::string_view> runtime_libraries{};
};

/// All backends, in the order of BackendId.
[[nodiscard]] std::span<const BackendRules> all_rules();
[[nodiscard]] const BackendRules& rules_of(BackendId id);

/// Headers and C++ as every backend sees them: .h .hh .hpp .cuh .inc ... / .c .cc .cpp .cxx.
[[nodiscard]] SourceKind common_source_kind(const RelPath& path);

} // namespace kb::backend
