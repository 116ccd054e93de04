// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/variant.hpp"
#include "base/version.hpp"
#include "check/check.hpp"
#include "sys/file_system.hpp"
#include "sys/process.hpp"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kb::build {

/// A library of this machine that the loader would take for a name.
struct HostLibrary {
    std::string name{};
    std::string path{};
    /// What it needs itself.
    std::vector<std::string> needed{};
    /// Names of symbol versions that it has, "GLIBC_2.36".
    std::set<std::string> versions{};
    std::set<std::string> exports{};
};

/// What decides here whether a kernel loads. Absent: not there, or it could not be found out.
struct HostFacts {
    backend::Platform platform{};
    std::optional<Version> python{};
    std::optional<Version> torch{};
    /// CUDA that this torch was built for.
    std::optional<Version> torch_cuda{};
    /// Where libraries are looked for first: torch's own, its packages', LD_LIBRARY_PATH.
    std::vector<std::string> library_directories{};
    bool nvidia_driver = false;
    /// Compute capabilities of the devices, "9.0".
    std::vector<std::string> devices{};
    /// Why Python or torch told nothing, one line; empty when they did.
    std::string python_problem{};
};

/// Asks `python` in a child (its version, torch, devices) and the machine.
[[nodiscard]] HostFacts read_host_facts(sys::FileSystem& fs,
                                        sys::ProcessRunner& processes,
                                        const sys::EnvironmentMap& environment,
                                        const std::string& python);

/// The libraries that loading `library` (a file in `directory`) would bring in, found where the
/// loader and torch look, each once, those that they need included. A name that is not found is
/// left out.
[[nodiscard]] std::vector<HostLibrary> read_host_libraries(sys::FileSystem& fs,
                                                           const HostFacts& facts,
                                                           const binfmt::SharedObject& object,
                                                           const sys::Path& directory);

/// One reason why it does not load.
struct Obstacle {
    /// "platform", "python", "torch", "cuda", "driver", "arch", "library", "version", "symbol".
    std::string cause{};
    std::string text{};
    std::string next{};

    bool operator==(const Obstacle&) const = default;
};

struct LoadQuestion {
    const check::Library* library = nullptr;
    /// From the directory's name.
    std::optional<backend::Variant> variant{};
    /// From the metadata.
    std::optional<std::vector<std::string>> archs{};
};

/// PURE. In the order in which a person would mend them; nothing when it should load.
[[nodiscard]] std::vector<Obstacle> find_obstacles(const LoadQuestion& question,
                                                   const HostFacts& facts,
                                                   const std::vector<HostLibrary>& libraries);

} // namespace kb::build
