// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.hpp"
#include "backend/variant.hpp"
#include "config/config.hpp"
#include "config/project_settings.hpp"
#include "package/metadata.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::generate {

/// Whether importing the kernel needs KERNELS_EXPERIMENTAL=1.
enum class Maturity : std::uint8_t { released, experimental };

[[nodiscard]] Maturity maturity_of(const config::ProjectSettings& settings);

/// torch-ext/registration.h: the same for every kernel.
[[nodiscard]] std::string registration_header();
/// Where it stands in the source tree.
inline constexpr std::string_view kRegistrationHeader = "torch-ext/registration.h";

/// `_ops.py` of a compiled variant (torch or tvm-ffi); `ops_id` is also the library's stem.
[[nodiscard]] std::string
ops_module(backend::FrameworkId framework, std::string_view ops_id, Maturity maturity);
/// `_ops.py` of a noarch kernel, which finds out its backend when it is imported.
[[nodiscard]] std::string
noarch_ops_module(std::string_view module, std::string_view unique_id, Maturity maturity);

struct MetadataInput {
    const config::Config& config;
    backend::BackendId backend = backend::BackendId::cpu;
    std::string unique_id{};
    /// Of the device code that was found; nothing: as build.toml says for noarch kernels.
    std::optional<std::vector<std::string>> archs{};
    std::optional<package::Provenance> provenance{};
    Maturity maturity = Maturity::released;
};

/// metadata.json of one backend, without digest.
[[nodiscard]] package::Metadata make_metadata(const MetadataInput& input);

} // namespace kb::generate
