// SPDX-License-Identifier: Apache-2.0
#include "sys/host_limits.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <optional>
#include <sched.h>
#include <string>
#include <thread>
#include <unistd.h>

namespace kb::sys {
namespace {

unsigned affinity_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0) {
        return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
    }
    return std::max(1U, std::thread::hardware_concurrency());
}

std::uint64_t machine_memory() {
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long size = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0
               ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size)
               : 0;
}

std::optional<std::string> read_line(FileSystem& fs, const Path& path) {
    auto text = fs.read_file(path, 4096);
    if (!text) {
        return std::nullopt; // no such controller: no limit from it
    }
    return std::string{trim(*text)};
}

void limit_memory(HostLimits& limits, const std::optional<std::string>& text) {
    // "max" (v2) and a huge number (v1) both mean no limit.
    const auto bytes = text ? parse_unsigned(*text) : std::nullopt;
    if (bytes && *bytes > 0 && (limits.memory_bytes == 0 || *bytes < limits.memory_bytes)) {
        limits.memory_bytes = *bytes;
    }
}

void limit_cpus(HostLimits& limits, std::string_view quota_text, std::string_view period_text) {
    const auto quota = parse_unsigned(quota_text); // nothing for "max" and "-1"
    const auto period = parse_unsigned(period_text);
    if (quota && period && *period > 0) {
        const std::uint64_t whole = std::max<std::uint64_t>(1, *quota / *period);
        limits.cpus = static_cast<unsigned>(std::min<std::uint64_t>(limits.cpus, whole));
    }
}

void apply_directory(FileSystem& fs, const Path& directory, HostLimits& limits) {
    limit_memory(limits, read_line(fs, directory / "memory.max"));
    limit_memory(limits, read_line(fs, directory / "memory.limit_in_bytes"));
    if (const auto cpu = read_line(fs, directory / "cpu.max")) {
        const auto parts = split(*cpu, ' ');
        if (parts.size() == 2) {
            limit_cpus(limits, parts[0], parts[1]);
        }
    }
    const auto quota = read_line(fs, directory / "cpu.cfs_quota_us");
    const auto period = read_line(fs, directory / "cpu.cfs_period_us");
    if (quota && period) {
        limit_cpus(limits, *quota, *period);
    }
}

/// A limit on any ancestor holds too. In a container the path named by /proc may lie outside the
/// mount; then only the root of the mount is left to look at.
void apply_hierarchy(FileSystem& fs,
                     const Path& mount,
                     std::string_view group,
                     HostLimits& limits) {
    Path relative = Path{group}.relative_path().lexically_normal();
    while (!relative.empty() && relative != ".") {
        if (*relative.begin() != "..") {
            apply_directory(fs, mount / relative, limits);
        }
        relative = relative.parent_path();
    }
    apply_directory(fs, mount, limits);
}

} // namespace

HostLimits read_host_limits(FileSystem& fs) {
    HostLimits limits{.cpus = affinity_cpus(), .memory_bytes = machine_memory()};
    const auto groups = fs.read_file("/proc/self/cgroup", 1U << 20U);
    if (!groups) {
        return limits;
    }
    const Path root{"/sys/fs/cgroup"};
    for (const std::string_view line : split(*groups, '\n')) {
        // "0::/user.slice" (v2) or "4:memory:/docker/1234" (v1)
        const std::size_t first = line.find(':');
        const std::size_t second =
            first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) {
            continue;
        }
        const std::string_view controllers = line.substr(first + 1, second - first - 1);
        const std::string_view group = line.substr(second + 1);
        if (controllers.empty()) {
            apply_hierarchy(fs, root, group, limits);
            apply_hierarchy(fs, root / "unified", group, limits);
            continue;
        }
        for (const std::string_view controller : split(controllers, ',')) {
            if (controller == "memory" || controller == "cpu") {
                apply_hierarchy(fs, root / controllers, group, limits);
                apply_hierarchy(fs, root / controller, group, limits);
            }
        }
    }
    return limits;
}

} // namespace kb::sys
