// SPDX-License-Identifier: Apache-2.0
#include "sandbox/confine.hpp"

namespace kb::sandbox {

std::vector<std::string> bwrap_arguments(const SandboxSpec& spec) {
    // --unshare-all includes the network. There is no --proc: process ids and host facts would leak
    // into objects.
    std::vector<std::string> out{"--unshare-all",
                                 "--die-with-parent",
                                 "--new-session",
                                 "--clearenv",
                                 "--uid",
                                 "1000",
                                 "--gid",
                                 "1000",
                                 "--hostname",
                                 "kbuild"};
    for (const Mount& mount : spec.mounts) {
        out.insert(out.end(),
                   {mount.access == Access::read_only ? "--ro-bind" : "--bind",
                    mount.host.string(),
                    mount.inside});
    }
    for (const Link& link : spec.links) {
        out.insert(out.end(), {"--symlink", link.target, link.inside});
    }
    out.insert(out.end(), {"--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/home"});
    for (const auto& [name, value] : spec.environment) {
        out.insert(out.end(), {"--setenv", name, value});
    }
    out.insert(out.end(), {"--chdir", spec.working_directory, "--"});
    out.insert(out.end(), spec.argv.begin(), spec.argv.end());
    return out;
}

} // namespace kb::sandbox
