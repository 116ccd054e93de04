// SPDX-License-Identifier: Apache-2.0
#include "sandbox/confine.hpp"

namespace kb::sandbox {

namespace {

/// $1 root, then mounts "ro|rw HOST INSIDE" up to "--", links "TARGET INSIDE" up to "--", working
/// directory, environment "NAME=VALUE" up to "--", command. The mounts live in the mount namespace
/// of this process and go with it.
constexpr std::string_view kScript = R"(set -e
root=$1; shift
mount --make-rprivate /
mount -t tmpfs none "$root"
while [ "$1" != -- ]; do
  mkdir -p "$root$3"; mount --bind "$2" "$root$3"
  [ "$1" = rw ] || mount -o remount,bind,ro "$root$3"
  shift 3
done; shift
while [ "$1" != -- ]; do ln -s "$1" "$root$2"; shift 2; done; shift
mkdir -p "$root/tmp" "$root/dev" "$root/home"; chmod 1777 "$root/tmp"
for device in null zero full random urandom; do : >"$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
directory=$1; shift
exec chroot "$root" /usr/bin/env -i -C "$directory" "$@")";

} // namespace

std::vector<std::string> chroot_arguments(const SandboxSpec& spec, const sys::Path& scratch) {
    std::vector<std::string> out{
        "--mount", "--", "/bin/sh", "-c", std::string{kScript}, "sh", scratch.string()};
    for (const Mount& mount : spec.mounts) {
        out.insert(
            out.end(),
            {mount.access == Access::read_only ? "ro" : "rw", mount.host.string(), mount.inside});
    }
    out.emplace_back("--");
    for (const Link& link : spec.links) {
        out.insert(out.end(), {link.target, link.inside});
    }
    out.insert(out.end(), {"--", spec.working_directory});
    for (const auto& [name, value] : spec.environment) {
        out.push_back(name + "=" + value);
    }
    out.insert(out.end(), spec.argv.begin(), spec.argv.end());
    return out;
}

} // namespace kb::sandbox
