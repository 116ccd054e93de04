#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lock, fetch and the store from the outside: reports, offline, bundles, wrong locks, altered files, damage.
. "$(dirname "$0")/lib.sh"
cd "$scratch"
unset PIP_INDEX_URL PIP_EXTRA_INDEX_URL
export KERNEL_BUILDER_STORE=$scratch/store PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_FIND_LINKS=$scratch/mirror
tiny=$repo/tests/e2e/tiny_toolchain.py
wheel=apache_tvm_ffi-0.1.15.post2-py3-none-any.whl deb=gcc-12_12.2.0-14_amd64.deb
"$kb" init p --name me/tiny --framework tvm-ffi --backends cpu >/dev/null 2>&1
python3 "$tiny" bundle p
field() { python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(d[sys.argv[2]] if not isinstance(d[sys.argv[2]], list) else len(d[sys.argv[2]]))' "$@"; }
pinned() { python3 -c 'import json,sys; print(next(e["sha256"] for e in json.load(open("p/build.lock"))["entries"] if e["file"] == sys.argv[1]))' "$1"; }
nothing_stored() { [ -z "$(ls store/tree store/tmp store/pkg 2>/dev/null | grep -v ':$')" ]; }

# lock
"$kb" lock p --offline --json >report.json 2>/dev/null
equal "a complete lock is unchanged, and --json says so" "$(field report.json schema) $(field report.json changed) $(field report.json entries)" "kernel-builder/lock-report/1 False 3"
check "--check agrees" "$kb" lock p --offline --check
cp p/build.lock good.lock
python3 -c 'import json; d=json.load(open("p/build.lock")); d["entries"]=[e for e in d["entries"] if "wheel" not in e["id"]]; json.dump(d, open("p/build.lock", "w"))'
cp p/build.lock short.lock
check_exit 1 "would change" "--check of a lock that lacks an entry ends with 1" "$kb" lock p --from bundle --check
same_tree "and writes nothing" p/build.lock short.lock
check_exit 4 "does not pin 'wheel/apache-tvm-ffi" "build does not guess what the lock lacks" "$kb" build p --offline
check_exit 0 "^\+ wheel/apache-tvm-ffi" "lock prints what it adds" "$kb" lock p --from bundle --dry-run
check "lock writes it" "$kb" lock p --offline
check_exit 0 "unchanged" "a second lock changes nothing" "$kb" lock p --offline

# Locks that cannot be read: exit 3, the place, nothing fetched and nothing written.
refused() { # NAME PATTERN
  cp p/build.lock bad.lock
  for command in lock fetch; do check_exit 3 "$2" "$command: $1" "$kb" "$command" p --offline; done
  same_tree "the lock is left as it was" p/build.lock bad.lock
}
sed 's,kernel-builder/lock/1,kernel-builder/lock/9,' good.lock >p/build.lock
refused "a lock of another schema says what to run" "not of schema 'kernel-builder/lock/1'.*kernel-builder lock"
head -c 200 good.lock >p/build.lock
refused "a truncated lock has a line" "build.lock.*line|build.lock:[0-9]+"
sed 's/"sha256": "./"sha256": "x/' good.lock >p/build.lock
refused "a digest that is none is named" "sha256"
sed "s,\"file\": \"$deb\",\"file\": \"../$deb\"," good.lock >p/build.lock
refused "a path is no file name" "is not a file name"
rm p/build.lock; mkdir p/build.lock
for command in lock fetch; do check_exit 3 "build.lock" "$command: a lock that is a directory" "$kb" "$command" p --offline; done
rmdir p/build.lock; cp good.lock p/build.lock
check "nothing came into the store" nothing_stored

# fetch
check_exit 4 "the store has no .*network is switched off.*--from" "--offline with nothing says what is missing" "$kb" fetch p --offline
mkdir half; cp "bundle/$wheel" half
check_exit 4 "the store has no 'deb/gcc-12@12.2.0-14#gcc-12'" "a bundle that lacks a file is no bundle" "$kb" fetch p --offline --from half
check_exit 4 "no-such-directory|the store has no" "a bundle that is not there" "$kb" fetch p --offline --from no-such-directory
"$kb" fetch p --offline --from bundle --json >report.json 2>err.txt
equal "a bundle fills the store without a network" "$(field report.json schema) $(field report.json fetched) $(field report.json present)" "kernel-builder/fetch/1 2 1"
"$kb" fetch p --offline --json >report.json 2>/dev/null
equal "what is there is not fetched again" "$(field report.json fetched) $(field report.json bytes)" "0 0"
check "--export of a bundle from a bundle" "$kb" fetch p --offline --from bundle --export copy
same_tree "has the same files" bundle copy
check_exit 4 "cannot be exported offline" "the store alone is no bundle" "$kb" fetch p --offline --export other
check "the store is whole" "$kb" store verify

# What a mirror serves is not what is pinned.
for kind in altered truncated; do
  rm -rf store mirror && mkdir mirror && cp -r bundle/. mirror
  if [ $kind = altered ]; then
    python3 -c "import sys; sys.path.insert(0, '$(dirname "$tiny")'); import tiny_toolchain as t; t.wheel('mirror/$wheel', 'int altered;\n')"
  else
    head -c 300 "bundle/$wheel" >"mirror/$wheel"
  fi
  found=$(sha256sum <"mirror/$wheel" | cut -d' ' -f1)
  message="$wheel.*$(pinned "$wheel") is pinned, $found was found; nothing was stored.*another mirror"
  check_exit 4 "$message" "$kind wheel in a directory: file, both digests, next step" "$kb" fetch p --offline --from mirror
  check_not "the wheel is not in the store" sh -c 'ls store/pkg | grep tvm'
  rm -rf store; mkdir debs; cp "bundle/$deb" debs
  if [ $kind = truncated ]; then message="pip could not fetch 'apache-tvm-ffi==0.1.15.post2'.*--from"; fi
  check_exit 4 "$message" "$kind wheel from pip's index: the same, or pip's own words" "$kb" fetch p --from debs
  check_not "the wheel is not in the store" sh -c 'ls store/pkg | grep tvm'
  equal "no temporary file is left" "$(ls store/tmp)" ""
  cp "bundle/$wheel" mirror
  check "with the right file the next run works" "$kb" fetch p --from debs
  check "and the store is whole" "$kb" store verify
  rm -rf debs
done
rm -rf store; cp "bundle/$deb" mirror; printf x >>"mirror/$deb"
check_exit 4 "$deb.*$(pinned "$deb") is pinned, $(sha256sum <"mirror/$deb" | cut -d' ' -f1) was found" "altered deb: file and both digests" "$kb" fetch p --offline --from mirror
check_exit 4 "is not the file that the lock pins" "build says the same" "$kb" build p --offline --from mirror
check_not "no package appeared" test -e p/build
check_not "the deb is not in the store" sh -c 'ls store/pkg | grep gcc'

# Damage in the store.
rm -rf store; "$kb" fetch p --offline --from bundle >/dev/null 2>&1
header=$(find store/tree -name tiny.h) object=$(find store/obj -samefile "$(find store/tree -name tiny.h)")
flip() { # FILE: one byte of the object, and so of every tree that shares it
  chmod u+w "$1"; printf X | dd of="$1" bs=1 seek=2 conv=notrunc 2>/dev/null; chmod u-w "$1"
}
flip "$object"
check_exit 4 "tree/[0-9a-f]{64}: 'usr/include/tiny.h' has changed" "store verify names the tree and the file" "$kb" store verify
"$kb" store verify --json >report.json 2>/dev/null
equal "as JSON too" "$(field report.json schema) $(field report.json findings)" "kernel-builder/store-verify/1 1"
check_exit 4 "'tree/[0-9a-f]{64}' was damaged \('usr/include/tiny.h' has changed\).*kernel-builder fetch" "build refuses a damaged toolchain and says what to run" "$kb" build p --offline
check_exit 0 "fetched deb/gcc-12" "the next fetch makes it anew" "$kb" fetch p --offline --from bundle
equal "with the right bytes" "$(cat "$header")" "int tiny;"
check "and the store is whole" "$kb" store verify
touch -d @315532800 stamp; flip "$(find store/obj -samefile "$header")"; touch -r stamp "$header"
check_exit 4 "'usr/include/tiny.h' has changed" "damage that keeps the time is found by reading" "$kb" store verify
check_exit 0 "1 damaged tree taken away" "store verify --repair takes it away" "$kb" store verify --repair
check_exit 0 "fetched deb/gcc-12" "and the next fetch makes it anew" "$kb" fetch p --offline --from bundle
equal "with the right bytes" "$(cat "$header")" "int tiny;"
