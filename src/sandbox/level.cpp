// SPDX-License-Identifier: Apache-2.0
#include "sandbox/level.hpp"

#include "base/text.hpp"
#include "sandbox/landlock.hpp"
#include "sys/environment.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <utility>

namespace kb::sandbox {

namespace {

constexpr std::array<std::pair<Level, std::string_view>, 4> kNames{
    {{Level::plain, "plain"},
     {Level::landlock, "landlock"},
     {Level::chroot, "chroot"},
     {Level::namespaces, "namespaces"}}};

Probe run_probe(Level level,
                std::string_view package,
                sys::ProcessRunner& processes,
                const sys::EnvironmentMap& environment,
                std::vector<std::string> argv) {
    const std::string name = argv.front();
    sys::ProcessSpec spec{.argv = std::move(argv)};
    spec.environment = sys::EnvironmentMap{
        {"PATH", sys::lookup(environment, "PATH").value_or("/usr/bin:/bin")}, {"LC_ALL", "C"}};
    const Result<sys::ProcessResult> result = processes.run(spec);
    if (!result) {
        return {.level = level,
                .reason =
                    result.error().code == ErrorCode::not_found
                        ? fmt::format("'{}' is not installed (apt-get install {})", name, package)
                        : result.error().to_text()};
    }
    if (!result->status.ok()) {
        return {.level = level,
                .reason = escape_control(
                    trim(result->err.empty() ? result->status.to_text() : result->err))};
    }
    return {.level = level, .is_available = true};
}

} // namespace

std::string_view to_text(Level level) {
    for (const auto& [value, name] : kNames) {
        if (value == level) {
            return name;
        }
    }
    return "plain";
}

std::optional<Level> parse_level(std::string_view text) {
    for (const auto& [value, name] : kNames) {
        if (name == text) {
            return value;
        }
    }
    return std::nullopt;
}

bool has_fixed_paths(Level level) {
    return level >= Level::chroot;
}

bool is_inside_chroot(sys::FileSystem& fs) {
    // The root of process 1 is ours unless we were moved; without /proc or rights nothing can be
    // said.
    const auto ours = fs.stat("/");
    const auto first = fs.stat("/proc/1/root/");
    return ours && first && (ours->inode != first->inode || ours->device != first->device);
}

Probe probe(Level level,
            sys::FileSystem& fs,
            sys::ProcessRunner& processes,
            const sys::EnvironmentMap& environment) {
    switch (level) {
    case Level::namespaces: {
        Probe out = run_probe(level,
                              "bubblewrap",
                              processes,
                              environment,
                              {"bwrap",
                               "--unshare-all",
                               "--die-with-parent",
                               "--ro-bind",
                               "/",
                               "/",
                               "--dev",
                               "/dev",
                               "true"});
        if (!out.is_available && is_inside_chroot(fs)) {
            out.reason += "; this process lives in a chroot, where the kernel refuses new user "
                          "namespaces: enter the root by pivot_root, or ask for --sandbox chroot";
        }
        return out;
    }
    case Level::chroot:
        if (::geteuid() != 0) {
            return {.level = level, .reason = "only root can make mounts and enter a chroot"};
        }
        return run_probe(level,
                         "util-linux",
                         processes,
                         environment,
                         {"unshare", "--mount", "--", "chroot", "/", "/bin/true"});
    case Level::landlock: {
        const int abi = landlock_abi();
        return {.level = level,
                .is_available = abi > 0,
                .reason = abi > 0 ? std::string{} : "this kernel has no landlock"};
    }
    case Level::plain:
        break;
    }
    return {.level = Level::plain, .is_available = true};
}

std::string describe(const std::vector<Probe>& probes) {
    std::string out;
    for (const Probe& p : probes) {
        out += fmt::format("{}: {}\n", to_text(p.level), p.is_available ? "available" : p.reason);
    }
    return out;
}

} // namespace kb::sandbox
