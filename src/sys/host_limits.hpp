// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sys/file_system.hpp"

#include <cstdint>

namespace kb::sys {

/// What this process may use: the least of machine, affinity and cgroup (v1 and v2).
struct HostLimits {
    unsigned cpus = 1;
    std::uint64_t memory_bytes = 0;
};

HostLimits read_host_limits(FileSystem& fs);

} // namespace kb::sys
