// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sys/process.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kb::sandbox {

enum class Access : std::uint8_t { read_only, read_write };

/// A directory of the host and its place inside.
struct Mount {
    sys::Path host{};
    std::string inside{};
    Access access = Access::read_only;
};

/// A link made inside: "/bin" -> "usr/bin".
struct Link {
    std::string inside{};
    std::string target{};
};

/// What a confined process sees. Nothing else of the host is there at levels with mounts: no
/// `/proc`, no network, no environment but this one, user 1000 on host "kbuild".
struct SandboxSpec {
    std::vector<Mount> mounts{};
    std::vector<Link> links{};
    sys::EnvironmentMap environment{};
    std::string working_directory = "/";
    std::vector<std::string> argv{};
};

} // namespace kb::sandbox
