// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.hpp"
#include "base/version.hpp"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kb::backend {

enum class FrameworkId : std::uint8_t { torch, torch_stable_abi, torch_noarch, tvm_ffi };
enum class Cpu : std::uint8_t { x86_64, aarch64 };
enum class Os : std::uint8_t { linux, darwin, windows };

struct Platform {
    Cpu cpu = Cpu::x86_64;
    Os os = Os::linux;
    auto operator<=>(const Platform&) const = default;
};

/// One thing to ship. `framework_version`: torch or ABI or tvm-ffi version, two components (empty
/// for noarch); `backend_version`: two components for versioned backends, else empty.
struct Variant {
    FrameworkId framework = FrameworkId::torch;
    Version framework_version{};
    BackendId backend = BackendId::cpu;
    Version backend_version{};
    Platform platform{};
    /// Historic "torch-universal": any backend. Noarch only; read, never chosen.
    bool universal = false;

    bool operator==(const Variant&) const = default;
};

/// The directory name of a variant, as upstream's clients parse it (reference: format/variants.md
/// section 1): "torch213-cxx11-cu130-x86_64-linux", "torch-stable-abi211-cpu-x86_64-linux",
/// "torch-cuda".
class VariantName {
public:
    /// Of no variant; text() is "".
    VariantName() = default;
    /// Nothing when the variant cannot be spelt in the grammar (a minor version of 10 or more of a
    /// versioned backend, a torch major of two digits).
    [[nodiscard]] static std::optional<VariantName> of(const Variant& variant);
    /// Nothing unless the whole text is a name that a client would parse; accepts also historic
    /// spellings (cxx98, no ABI tag, universal).
    [[nodiscard]] static std::optional<VariantName> parse(std::string_view text);

    [[nodiscard]] const std::string& text() const { return text_; }

    [[nodiscard]] const Variant& variant() const { return variant_; }

    auto operator<=>(const VariantName& other) const { return text_ <=> other.text_; }

    bool operator==(const VariantName& other) const { return text_ == other.text_; }

private:
    VariantName(std::string text, Variant variant)
        : text_{std::move(text)}, variant_{std::move(variant)} {}

    std::string text_{};
    Variant variant_{};
};

[[nodiscard]] std::string_view to_text(FrameworkId id);
[[nodiscard]] std::string_view to_text(Cpu cpu);
[[nodiscard]] std::string_view to_text(Os os);
/// "x86_64-linux"
[[nodiscard]] std::string to_text(const Platform& platform);
[[nodiscard]] std::optional<Platform> parse_platform(std::string_view text);

} // namespace kb::backend
