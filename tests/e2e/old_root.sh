#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Libraries built on this machine load where glibc is 2.31: in a Debian 11 root, by its own loader, with stub libraries in
# the place of torch's (only their names are needed to resolve DT_NEEDED; lazy symbols stay unresolved).
. "$(dirname "$0")/lib.sh"
cd "$scratch"
if [ "$(id -u)" != 0 ]; then echo "SKIPPED: a Debian 11 root needs root"; exit; fi
root=$state/bullseye
mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1)
[ -n "$mirror" ] || mirror=$(sed -n 's/^deb \(\[[^]]*\] \)*\([^ ]*\) .*/\2/p' /etc/apt/sources.list 2>/dev/null | head -n 1)
if [ ! -x "$root/usr/bin/python3" ]; then
  rm -rf "$root"
  check "a Debian 11 root is made" debootstrap --variant=minbase --include=python3-minimal,libstdc++6 bullseye "$root" "$mirror"
fi
rm -rf "$root/k"; mkdir -p "$root/k"
for library in "$state"/examples/*/build/*/*.so; do
  variant=$(basename "$(dirname "$library")"); kernel=$(basename "$(dirname "$(dirname "$(dirname "$library")")")")
  cp "$library" "$root/k/$kernel-$variant.so"
done
# Empty libraries under the names that the kernels need besides the C and C++ runtime.
mkdir -p "$root/k/stubs"
for name in $(for f in "$root"/k/*.so; do readelf -dW "$f" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'; done | sort -u | grep -E '^lib(torch|c10|cud)'); do
  gcc -shared -nostdlib -x c /dev/null -Wl,-soname,"$name" -o "$root/k/stubs/$name"
done
cat >"$root/k/load.py" <<'P'
import _ctypes, os, sys
# RTLD_LAZY: functions of torch are not there; everything of glibc and libstdc++ is versioned and checked at load.
for name in sorted(os.listdir("/k")):
    if name.endswith(".so"):
        try:
            _ctypes.dlopen("/k/" + name, 1)
            print("loaded", name)
        except OSError as error:
            text = str(error)
            # A data symbol of torch (vtable, type info) is resolved eagerly even when lazy: not glibc's business.
            if "undefined symbol" in text and "GLIBC" not in text:
                print("loaded up to torch's data symbols", name)
            else:
                print("NOT LOADED", name, text)
P
chroot "$root" env LD_LIBRARY_PATH=/k/stubs python3 /k/load.py >"$scratch/loaded" 2>&1
while IFS= read -r line; do case $line in loaded*) good "$line" ;; *) bad "$line" ;; esac; done <"$scratch/loaded"
equal "all 12 were tried" "$(grep -c loaded "$scratch/loaded")" 12
