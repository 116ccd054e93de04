# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts: sourced, not run. Everything that a fresh Debian machine needs is named here, once.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

build_packages=(g++ cmake ninja-build ccache pkg-config git ca-certificates
  libcli11-dev libtomlplusplus-dev libfmt-dev libcurl4-openssl-dev nlohmann-json3-dev libssl-dev libarchive-dev
  libsqlite3-dev libboost-dev)
run_packages=(bubblewrap ninja-build ccache python3 python3-pip python3-venv xz-utils)
test_packages=(catch2 lld mold python3-dev binutils git-lfs curl jq clang-tidy clang-format debootstrap)

say() { printf '%s\n' "$*" >&2; }

# Installs what is missing, as root; says what it does. Without root it names the command.
install_packages() {
  local missing=() p
  for p in "$@"; do dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing: ${missing[*]}"
  if [ "$(id -u)" != 0 ]; then say "error: run as root: apt-get install -y --no-install-recommends ${missing[*]}"; return 1; fi
  # Several runs on one machine wait for each other instead of failing on apt's lock.
  local apt=(apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  "${apt[@]}" update >&2
  DEBIAN_FRONTEND=noninteractive "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null 2>"${TMPDIR:-/tmp}/kb-apt.$$" ||
    { cat "${TMPDIR:-/tmp}/kb-apt.$$" >&2; return 1; }
  rm -f "${TMPDIR:-/tmp}/kb-apt.$$"
}

jobs() { printf '%s' "${KERNEL_BUILDER_JOBS:-$(nproc)}"; }

# build_preset PRESET [TARGET...]: configure when needed, build; output only on failure.
build_preset() {
  local preset=$1 log; shift
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
  log=$(mktemp)
  if (cd "$top" && cmake --preset "$preset" && cmake --build --preset "$preset" -j "$(jobs)" ${1:+--target "$@"}) >"$log" 2>&1; then
    rm -f "$log"
  else
    tail -n 60 "$log" >&2; say "error: the $preset build failed, whole log: $log"; return 1
  fi
}
