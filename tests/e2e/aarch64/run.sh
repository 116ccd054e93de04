#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh VARIANT STORE SCRATCH: loads the library of an aarch64 variant under qemu-user and calls its relu_cpu. Compiler and C
# library are those of the store; torch is a library without content that has the names which the variant wants.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
library=$(realpath "$1"/*.so) store=$(realpath "$2")
mkdir -p "$3" && cd "$3"
(apt-get -q -o APT::Sandbox::User=root download qemu-user-static && dpkg-deb -x qemu-user-static_*.deb .) >/dev/null
root=$(dirname "$(dirname "$(ls "$store"/root/*/bin/aarch64-linux-gnu-g++ | head -n 1)")")
# The compiler of the store at its own place.
cross() { unshare --map-root-user --mount --propagation private sh -c 'mount --bind "$0" /usr && cd "$1" && shift && exec "$@"' "$root" "$PWD" "$@"; }
readelf -W --dyn-syms "$library" | awk '$7 == "UND" && $8 !~ /@/ && $5 == "GLOBAL" {print "int " $8 "(void) { return 0; }"}' |
  grep -v ' _Z\| __' >torch.c
cp "$here/main.cpp" "$library" .
for name in torch torch_cpu; do cross aarch64-linux-gnu-gcc -shared -fPIC -Wl,-soname,lib$name.so -o lib$name.so torch.c; done
cross aarch64-linux-gnu-g++ -O1 -std=c++17 -o main main.cpp -ldl
usr/bin/qemu-aarch64-static -L "$root/aarch64-linux-gnu" -E LD_LIBRARY_PATH="$PWD:$root/aarch64-linux-gnu/lib" ./main "./$(basename "$library")"
