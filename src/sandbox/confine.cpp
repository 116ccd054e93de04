// SPDX-License-Identifier: Apache-2.0
#include "sandbox/confine.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

namespace kb::sandbox {

namespace {

Result<std::string>
program(std::string_view name, std::string_view package, const ConfineTools& tools) {
    const auto found = sys::find_program(name, tools.path_variable);
    if (!found) {
        return Error{.code = ErrorCode::unsupported,
                     .message = fmt::format("'{}' is not installed, which this sandbox level "
                                            "needs; install it with: apt-get install {}",
                                            name,
                                            package)};
    }
    return found->string();
}

/// A new, empty session keyring: namespaces do not have one of their own, and keys of the caller
/// (of a file system, of a login) would be readable inside. A kernel without keyrings has nothing
/// to leave; one whose filter forbids the call forbids it inside too. Async-signal-safe.
int leave_keyring() {
    constexpr int kJoinSessionKeyring = 1;
    if (::syscall(SYS_keyctl, kJoinSessionKeyring, nullptr) >= 0 || errno == ENOSYS ||
        errno == EPERM) {
        return 0;
    }
    return errno;
}

Result<sys::ProcessSpec>
confine_process(const SandboxSpec& spec, Level level, const ConfineTools& tools) {
    sys::ProcessSpec out;
    switch (level) {
    case Level::namespaces: {
        KB_TRY(const std::string bwrap, program("bwrap", "bubblewrap", tools));
        out.argv = bwrap_arguments(spec);
        out.argv.insert(out.argv.begin(), bwrap);
        break;
    }
    case Level::chroot: {
        KB_TRY(const std::string unshare, program("unshare", "util-linux", tools));
        out.argv = chroot_arguments(spec, tools.scratch);
        out.argv.insert(out.argv.begin(), unshare);
        break;
    }
    case Level::landlock:
        out.argv = {tools.self.string(), "confine"};
        for (const Mount& mount : spec.mounts) {
            if (mount.access == Access::read_write) {
                out.argv.insert(out.argv.end(), {"--writable", mount.host.string()});
            }
        }
        out.argv.insert(out.argv.end(), {"--working-directory", spec.working_directory, "--"});
        out.argv.insert(out.argv.end(), spec.argv.begin(), spec.argv.end());
        out.environment = spec.environment;
        return out;
    case Level::plain:
        out.argv = spec.argv;
        out.environment = spec.environment;
        out.working_directory = spec.working_directory;
        return out;
    }
    // The confining program itself gets nothing of our environment; what is inside is in its
    // arguments.
    out.environment = sys::EnvironmentMap{{"PATH", tools.path_variable}, {"LC_ALL", "C"}};
    return out;
}

} // namespace

Result<sys::ProcessSpec> confine(const SandboxSpec& spec, Level level, const ConfineTools& tools) {
    KB_TRY(sys::ProcessSpec out, confine_process(spec, level, tools));
    out.before_exec = leave_keyring;
    return out;
}

} // namespace kb::sandbox
