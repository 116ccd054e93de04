#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bad input gets an error that names file, place, cause and next step, and leaves nothing half-written.
. "$(dirname "$0")/lib.sh"
cd "$scratch"
"$kb" init good --name me/good --backends cpu >/dev/null
copy() { rm -rf work; cp -r good work; }
check_exit 3 "init" "no build.toml names the command that makes one" "$kb" build --dry-run home
copy; echo '[general' >work/build.toml
check_exit 3 "^work/build.toml:1:" "a syntax error has line and column" "$kb" build --dry-run work
copy; printf '\377\376' >work/build.toml
check_exit 3 "build.toml" "bytes that are no text" "$kb" build --dry-run work
copy; : >work/build.toml
check_exit 3 "general" "an empty build.toml" "$kb" build --dry-run work
copy; head -c 5000000 /dev/zero | tr '\0' '#' >work/build.toml
check_exit 3 "build.toml" "a huge build.toml" "$kb" build --dry-run work
copy; sed -i 's/^license/licence/' work/build.toml
check_exit 3 "did you mean 'license'" "a misspelt key has a suggestion" "$kb" build --dry-run work
copy; rm work/build.toml; mkfifo work/build.toml
check_exit 3 "is a pipe" "a pipe in the place of build.toml is not waited for" timeout 20 "$kb" build --dry-run work
copy; echo '{{ repo_id' >>work/CARD.md
check_exit 3 "^CARD.md:[0-9]+" "a mistake in the card is said before anything is compiled" "$kb" build work
check_not "and nothing was built" test -e work/build
check_exit 2 "nowhere" "a path that is not there is the command line's fault" "$kb" check-builds nowhere
copy; rm work/good_cpu/relu.cpp
check_exit 3 "relu.cpp" "a missing source is named" "$kb" build work
check_not "nothing was built from it" test -e work/build
copy; echo 'int x = "no";' >>work/good_cpu/relu.cpp
check_exit 1 "relu.cpp:[0-9]+" "a compile error shows the compiler's words" build work
check_not "a failed variant leaves no package" test -e work/build/torch-stable-abi211-cpu-x86_64-linux
sed -i '$d' work/good_cpu/relu.cpp
check "after the mistake is mended the build goes on" build work
copy; mkdir work/.kernel-builder; echo mine >work/.kernel-builder/precious
check_exit 4 "not made by kernel-builder" "somebody else's .kernel-builder is left alone" build work
equal "its content is still there" "$(cat work/.kernel-builder/precious)" mine
copy; mkdir -p work/build/torch-stable-abi211-cpu-x86_64-linux; echo mine >work/build/torch-stable-abi211-cpu-x86_64-linux/precious
check_exit 4 "move it away" "a foreign directory in the place of a variant is not replaced" build work
equal "its content is still there" "$(cat work/build/torch-stable-abi211-cpu-x86_64-linux/precious)" mine
copy; echo '{"schema":"x"}' >work/build.lock
check_exit 4 "build.lock" "a malformed lock is named" "$kb" build work
check_exit 2 "namespaces" "an unknown sandbox level lists the known ones" "$kb" build good --sandbox none
check_exit 4 "apt-get install bubblewrap|not available" "a missing sandbox program is named" env PATH="$scratch/empty:$(dirname "$(command -v git)")/none" "$kb" build good
copy; KERNEL_BUILDER_STORE=$scratch/empty-store check_exit 4 "network is switched off.*kernel-builder fetch" "offline with an empty store says what is missing" "$kb" build work --offline
if [ "$(id -u)" = 0 ] && mkdir -p small && mount -t tmpfs -o size=300k none small 2>/dev/null; then
  cp -r good small/work
  check_not "a full disk fails" build small/work
  check_not "and leaves no half package" sh -c 'ls small/work/build/*/*.so'
  umount -l small
else
  echo "SKIPPED: a full disk needs root and a mount"
fi
