// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sys/file_system.hpp"
#include "sys/process.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::sandbox {

/// Weakest first, so that `<` means "weaker than".
enum class Level : std::uint8_t { plain, landlock, chroot, namespaces };

inline constexpr std::array<Level, 4> kLevels{
    Level::namespaces, Level::chroot, Level::landlock, Level::plain};

[[nodiscard]] std::string_view to_text(Level level);
[[nodiscard]] std::optional<Level> parse_level(std::string_view text);
/// True for levels that give every process the same paths on every machine.
[[nodiscard]] bool has_fixed_paths(Level level);

/// Whether a level works on this machine; `reason` is the kernel's or the program's own words when
/// it does not.
struct Probe {
    Level level = Level::plain;
    bool is_available = false;
    std::string reason{};
};

/// Tries one level with a harmless command.
[[nodiscard]] Probe probe(Level level,
                          sys::FileSystem& fs,
                          sys::ProcessRunner& processes,
                          const sys::EnvironmentMap& environment);
/// All levels, strongest first, a line each: "namespaces: available", "chroot: ...".
[[nodiscard]] std::string describe(const std::vector<Probe>& probes);
/// True when this process lives in a plain chroot, where the kernel refuses user namespaces.
[[nodiscard]] bool is_inside_chroot(sys::FileSystem& fs);

} // namespace kb::sandbox
