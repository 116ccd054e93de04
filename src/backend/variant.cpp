// SPDX-License-Identifier: Apache-2.0
#include "backend/variant.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

namespace kb::backend {

namespace {

using Parts = std::span<const std::string_view>;

constexpr std::string_view kStableAbi = "torch-stable-abi";

struct ComputePrefix {
    BackendId id;
    std::string_view prefix;
};

constexpr std::array<ComputePrefix, 4> kVersionedPrefixes{{
    {BackendId::cann, "cann"},
    {BackendId::cuda, "cu"},
    {BackendId::rocm, "rocm"},
    {BackendId::xpu, "xpu"},
}};

std::string_view prefix_of(BackendId id) {
    for (const ComputePrefix& row : kVersionedPrefixes) {
        if (row.id == id) {
            return row.prefix;
        }
    }
    return to_text(id);
}

/// Digits that stand together: the client reads the first one as the major version and the rest
/// as the minor one (torch, tvm-ffi).
std::optional<Version> parse_major_first(std::string_view digits) {
    if (digits.size() < 2) {
        return std::nullopt;
    }
    const auto major = parse_unsigned(digits.substr(0, 1));
    const auto minor = parse_unsigned(digits.substr(1));
    if (!major || !minor) {
        return std::nullopt;
    }
    return Version{{*major, *minor}};
}

/// The client's pattern is greedy: the last digit is the minor version (compute versions), so
/// "cu126" is 12.6 and "cu1210" is 121.0.
std::optional<Version> parse_minor_last(std::string_view digits) {
    if (digits.size() < 2) {
        return std::nullopt;
    }
    const auto major = parse_unsigned(digits.substr(0, digits.size() - 1));
    const auto minor = parse_unsigned(digits.substr(digits.size() - 1));
    if (!major || !minor) {
        return std::nullopt;
    }
    return Version{{*major, *minor}};
}

bool parse_compute(std::string_view text, Variant& variant) {
    for (const BackendId id :
         {BackendId::cpu, BackendId::metal, BackendId::neuron, BackendId::tpu}) {
        if (text == to_text(id)) {
            variant.backend = id;
            variant.backend_version = Version{};
            return true;
        }
    }
    for (const ComputePrefix& row : kVersionedPrefixes) {
        if (text.starts_with(row.prefix)) {
            const auto version = parse_minor_last(text.substr(row.prefix.size()));
            if (version) {
                variant.backend = row.id;
                variant.backend_version = *version;
                return true;
            }
        }
    }
    return false;
}

bool parse_arch_parts(Parts parts, Variant& variant) {
    if (parts.size() != 3 || !parse_compute(parts[0], variant)) {
        return false;
    }
    const auto platform = parse_platform(fmt::format("{}-{}", parts[1], parts[2]));
    if (!platform) {
        return false;
    }
    variant.platform = *platform;
    return true;
}

std::optional<Variant> parse_stable_abi(Parts parts, std::string_view text) {
    // "torch", "stable", "abi211", compute, cpu, os
    if (parts.size() != 6) {
        return std::nullopt;
    }
    const std::size_t head = parts[0].size() + parts[1].size() + parts[2].size() + 2;
    const auto version =
        parse_major_first(text.substr(kStableAbi.size(), head - kStableAbi.size()));
    Variant variant{.framework = FrameworkId::torch_stable_abi};
    if (!version || !parse_arch_parts(parts.subspan(3), variant)) {
        return std::nullopt;
    }
    variant.framework_version = *version;
    return variant;
}

std::optional<Variant> parse_noarch(std::string_view name) {
    Variant variant{.framework = FrameworkId::torch_noarch};
    if (name == "universal") {
        variant.universal = true;
        return variant;
    }
    // The client asks for CANN by the name of its torch device.
    const auto backend = name == "npu" ? BackendId::cann : parse_backend(name);
    if (!backend) {
        return std::nullopt;
    }
    variant.backend = *backend;
    return variant;
}

std::optional<Variant> parse_torch(Parts parts) {
    const auto version = parse_major_first(parts[0].substr(std::string_view{"torch"}.size()));
    if (!version) {
        return std::nullopt;
    }
    const bool tagged = parts.size() > 1 && (parts[1] == "cxx11" || parts[1] == "cxx98");
    Variant variant{.framework = FrameworkId::torch, .framework_version = *version};
    if (!parse_arch_parts(parts.subspan(tagged ? 2 : 1), variant)) {
        return std::nullopt;
    }
    return variant;
}

std::optional<Variant> parse_tvm_ffi(Parts parts) {
    const auto version = parse_major_first(parts[1].substr(std::string_view{"ffi"}.size()));
    Variant variant{.framework = FrameworkId::tvm_ffi};
    if (!version || !parse_arch_parts(parts.subspan(2), variant)) {
        return std::nullopt;
    }
    variant.framework_version = *version;
    return variant;
}

std::optional<Variant> parse_variant(std::string_view text) {
    const std::vector<std::string_view> pieces = split(text, '-');
    const Parts parts{pieces};
    if (text.starts_with(kStableAbi)) {
        return parse_stable_abi(parts, text);
    }
    if (parts.size() == 2 && parts[0] == "torch") {
        return parse_noarch(parts[1]);
    }
    if (parts.size() > 1 && parts[0] == "tvm" && parts[1].starts_with("ffi")) {
        return parse_tvm_ffi(parts);
    }
    if (parts[0].starts_with("torch")) {
        return parse_torch(parts);
    }
    return std::nullopt;
}

std::string compute_text(const Variant& variant) {
    if (!is_versioned(variant.backend)) {
        return std::string{to_text(variant.backend)};
    }
    return fmt::format("{}{}{}",
                       prefix_of(variant.backend),
                       variant.backend_version.major(),
                       variant.backend_version.minor());
}

std::string framework_text(const Variant& variant) {
    const Version& version = variant.framework_version;
    switch (variant.framework) {
    case FrameworkId::torch:
        return fmt::format("torch{}{}{}",
                           version.major(),
                           version.minor(),
                           variant.platform.os == Os::linux ? "-cxx11" : "");
    case FrameworkId::torch_stable_abi:
        return fmt::format("{}{}{}", kStableAbi, version.major(), version.minor());
    case FrameworkId::tvm_ffi:
        return fmt::format("tvm-ffi{}{}", version.major(), version.minor());
    case FrameworkId::torch_noarch:
        break;
    }
    return "torch";
}

} // namespace

std::optional<VariantName> VariantName::of(const Variant& variant) {
    if (variant.framework == FrameworkId::torch_noarch) {
        const std::string_view backend =
            variant.universal ? std::string_view{"universal"} : to_text(variant.backend);
        return VariantName{fmt::format("torch-{}", backend), variant};
    }
    const bool spellable = variant.framework_version.major() < 10 &&
                           (!is_versioned(variant.backend) || variant.backend_version.minor() < 10);
    if (!spellable) {
        return std::nullopt;
    }
    return VariantName{
        fmt::format(
            "{}-{}-{}", framework_text(variant), compute_text(variant), to_text(variant.platform)),
        variant};
}

std::optional<VariantName> VariantName::parse(std::string_view text) {
    auto variant = parse_variant(text);
    if (!variant) {
        return std::nullopt;
    }
    return VariantName{std::string{text}, std::move(*variant)};
}

std::string_view to_text(FrameworkId id) {
    constexpr std::array<std::string_view, 4> kNames{
        "torch", "torch-stable-abi", "torch-noarch", "tvm-ffi"};
    return kNames[std::to_underlying(id)];
}

std::string_view to_text(Cpu cpu) {
    return cpu == Cpu::x86_64 ? "x86_64" : "aarch64";
}

std::string_view to_text(Os os) {
    constexpr std::array<std::string_view, 3> kNames{"linux", "darwin", "windows"};
    return kNames[std::to_underlying(os)];
}

std::string to_text(const Platform& platform) {
    return fmt::format("{}-{}", to_text(platform.cpu), to_text(platform.os));
}

std::optional<Platform> parse_platform(std::string_view text) {
    for (const Cpu cpu : {Cpu::x86_64, Cpu::aarch64}) {
        for (const Os os : {Os::linux, Os::darwin, Os::windows}) {
            const Platform platform{.cpu = cpu, .os = os};
            if (to_text(platform) == text) {
                return platform;
            }
        }
    }
    return std::nullopt;
}

} // namespace kb::backend
