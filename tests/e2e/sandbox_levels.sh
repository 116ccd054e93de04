#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every sandbox level that this machine has builds the same kernel when it is asked for by name; what a weaker one made
# is marked, and used by no stronger one.
. "$(dirname "$0")/lib.sh"
cd "$scratch"
"$kb" init k --name me/tiny --backends cpu >/dev/null
rm -rf k/.git
variant=torch-stable-abi211-cpu-x86_64-linux
library() { echo "$1/build/$variant/"*.so; }
level_of() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["provenance"]["build"]["sandbox"])' "$1/build/$variant/metadata.json"; }
for level in namespaces chroot landlock plain; do
  cp -r k "at-$level"
  if [ $level = chroot ] && [ "$(id -u)" != 0 ]; then echo "SKIPPED: level chroot needs root"; continue; fi
  check "level $level builds" build "at-$level" --sandbox $level --no-cache
  check "at $level: check-abi passes" "$kb" check-abi "at-$level"
  equal "at $level: metadata name the level" "$(level_of "at-$level")" $level
  check "at $level: the record names it" grep -q "\"sandbox\": \"$level\"" "at-$level/.kernel-builder/record/$variant.json"
  check_not "at $level: no path of this machine is in the library" grep -qaF "$scratch" "$(library "at-$level")"
  check_not "at $level: nor one of the store" grep -qaF "$KERNEL_BUILDER_STORE" "$(library "at-$level")"
  check "at $level: the library has the bytes of level namespaces" cmp "$(library at-namespaces)" "$(library "at-$level")"
  check_not "at $level: a second build has nothing to do" sh -c "'$kb' build 'at-$level' --sandbox $level 2>&1 | grep -q compiling"
  if [ $level != namespaces ]; then
    check_exit 1 "upload-weak-sandbox" "at $level: upload wants a flag" "$kb" upload "at-$level" --repo-id me/tiny --dry-run
    check_exit 0 "built at sandbox level '$level'" "at $level: the default level builds it again, and says why" "$kb" build "at-$level" --dry-run
  fi
done
# The script of a weak level needs neither kernel-builder nor a sandbox program.
work=at-plain/.kernel-builder/work-plain
rm -rf $work/link $work/tu/*.o
check "build.sh of level plain works without kernel-builder" env -i PATH=/usr/bin:/bin sh $work/build.sh
check "and makes the same bytes" cmp "$(library at-plain)" $work/link/$variant/*.so
# From weak to strong: nothing of the weak one is linked.
build at-plain --no-cache --json >strong.json 2>/dev/null
equal "after plain, namespaces compiles every unit" "$(python3 -c 'import json; d=json.load(open("strong.json")); print(d["units"] - d["compiled"])')" 0
equal "and marks it so" "$(level_of at-plain)" namespaces
# Rules of landlock: a compiler that writes elsewhere is stopped, one that stays is not.
check "confine lets a command write where it may" "$kb" confine --writable "$scratch/k" --working-directory "$scratch/k" -- sh -c 'echo x >inside && echo x >/dev/null'
check_not "and nowhere else" "$kb" confine --writable "$scratch/k" --working-directory "$scratch/k" -- sh -c "echo x >'$scratch/outside'"
check_not "not in /tmp either" "$kb" confine --writable "$scratch/k" --working-directory / -- sh -c "echo x >/tmp/kernel-builder-outside.\$\$"
# Names of folders that a shell would take apart.
mkdir -p "a b/it's"; cp -r k "a b/it's/k"
check "a folder with a space and a quote builds at level plain" build "a b/it's/k" --sandbox plain
check "with the same bytes" cmp "$(library at-namespaces)" "a b/it's/k/build/$variant/"*.so
ln -s "$scratch/k" linked; rm -rf linked/.kernel-builder linked/build
check "so does a project behind a link" build linked --sandbox plain --no-cache
check "with the same bytes again" cmp "$(library at-namespaces)" "k/build/$variant/"*.so
