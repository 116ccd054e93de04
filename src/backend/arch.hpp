// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.hpp"

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::backend {

/// One CUDA architecture as build.toml writes it: "9.0", "9.0a", "10.0f", "12.0+PTX".
struct CudaArch {
    std::uint32_t major = 0;
    std::uint32_t minor = 0;
    /// 'a' (this chip alone), 'f' (its family) or '\0'.
    char suffix = '\0';
    bool ptx = false;

    /// "9.0a+PTX"
    [[nodiscard]] std::string to_text() const;
    /// "90a": what follows "sm_" and "compute_".
    [[nodiscard]] std::string number() const;

    auto operator<=>(const CudaArch&) const = default;
};

/// Grammar only: digits "." digits, an optional 'a' or 'f', an optional "+PTX".
[[nodiscard]] std::optional<CudaArch> parse_cuda_arch(std::string_view text);

/// Why a text names no architecture of a backend, for a diagnostic.
struct ArchProblem {
    std::string message{};
    std::vector<std::string> notes{};
};

/// Nothing when some hardware of the backend's vendor was ever called so, whatever a toolkit makes
/// of it. Backends without architectures refuse every text.
[[nodiscard]] std::optional<ArchProblem> check_arch(BackendId backend, std::string_view text);

/// What one toolkit can do, as the support matrix says.
struct ToolkitArchs {
    /// Built when a section names no architectures, in the toolkit's order ("7.5", "12.1+PTX").
    std::vector<std::string> builds{};
    /// Everything its compiler accepts, without "+PTX"; empty: the same as `builds`.
    std::vector<std::string> compiles{};
    /// How messages call it: "CUDA 13.0".
    std::string name{};
};

struct RefusedArch {
    std::string arch{};
    /// Lower case, one line: "CUDA 13.0 cannot compile it".
    std::string reason{};

    auto operator<=>(const RefusedArch&) const = default;
};

/// Which device code a section gets. `kept` is sorted without duplicates and is the promise that
/// the checks compare the binary with; each requested architecture is in `kept` or in `refused`.
/// Empty `kept`: nothing is left, which the caller reports as an error.
struct ArchChoice {
    std::vector<std::string> kept{};
    std::vector<RefusedArch> refused{};

    bool operator==(const ArchChoice&) const = default;
};

/// `requested` empty: the whole list of the toolkit. Otherwise first what the compiler does not
/// know is refused, then the rest goes through the loose intersection of the format
/// (docs/build-toml.md, cuda-capabilities). Texts that are no architecture are refused as well.
[[nodiscard]] ArchChoice choose_cuda_archs(std::span<const std::string> requested,
                                           const ToolkitArchs& toolkit);
/// Plain membership, sorted as text.
[[nodiscard]] ArchChoice choose_rocm_archs(std::span<const std::string> requested,
                                           const ToolkitArchs& toolkit);

/// Architectures that vendors ever used, without "+PTX".
[[nodiscard]] std::span<const std::string_view> known_cuda_archs();
[[nodiscard]] std::span<const std::string_view> known_rocm_archs();

} // namespace kb::backend
