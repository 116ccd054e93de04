#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Building: what is compiled when, equal bytes, interruption, the script without our binary, offline.
. "$(dirname "$0")/lib.sh"
cd "$scratch"
cpu=torch-stable-abi211-cpu-x86_64-linux cuda=torch-stable-abi211-cu130-x86_64-linux
"$kb" init k --name me/tiny --backends cpu,cuda >/dev/null
# One architecture keeps nvcc short; the whole list is built by the examples.
sed -i 's/^\(backend = "cuda"\)/\1\ncuda-capabilities = ["9.0"]/' k/build.toml
compiled() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["compiled"])' "$1"; }
check "CPU and CUDA variants build in the sandbox" build k --matrix --no-cache
check "they pass check-abi as manylinux_2_28" "$kb" check-abi k
check "they pass check-builds" "$kb" check-builds k
check "the card for the registry is filled in" grep -q 'me/tiny' k/build/CARD.md
build k --matrix --json >again.json 2>/dev/null
equal "a second build compiles nothing" "$(compiled again.json)" 0
touch k/tiny_cpu/relu.cpp; build k --matrix --json >again.json 2>/dev/null
equal "a new time on a source is no change" "$(python3 -c 'import json; print(len(json.load(open("again.json"))["up-to-date"]))')" 2
rm -rf "k/build/$cpu"; build k --matrix --no-cache --json >again.json 2>/dev/null
equal "a removed package is made again without compiling" "$(compiled again.json)" 0
echo changed >"k/build/$cpu/layers.py"
check "an edited package is noticed" sh -c "'$kb' build k --matrix --dry-run | grep -q 'changed after the build'"
check "and made again" build k --matrix
check_not "the edit is gone" grep -q changed "k/build/$cpu/layers.py"
# Equal bytes: another directory, another time, other process ids.
mkdir -p other/place; cp -r k other/place/k2; rm -rf other/place/k2/.kernel-builder other/place/k2/build
check "the same sources build elsewhere" build other/place/k2 --matrix --no-cache
same_tree "every file of both packages is equal, metadata.json included" k/build other/place/k2/build
if [ "$(id -u)" = 0 ]; then
  # Somebody else on a machine whose store others fill: nothing of the store or its cache may be written.
  somebody() { chown -R 65534:65534 "$1" && chmod a+rx "$scratch" && setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$scratch/$1" GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' "$kb" build "$1" --matrix --offline; }
  mkdir -p other/user; cp -r k other/user/k3; rm -rf other/user/k3/.kernel-builder other/user/k3/build
  check "another user builds from a store that is not his" somebody other/user/k3
  same_tree "with the same bytes" k/build other/user/k3/build
fi
rm -rf k/build; build k --matrix >/dev/null 2>&1 # the script is that of the last run: both variants
cp "k/.kernel-builder/work/link/$cuda/"*.so with.so; rm -rf "k/.kernel-builder/work/link" k/.kernel-builder/work/tu
check "build.sh works without kernel-builder" env PATH=/usr/bin:/bin sh k/.kernel-builder/work/build.sh "$cuda"
check "and makes the same bytes" cmp with.so "k/.kernel-builder/work/link/$cuda/$(basename "k/build/$cuda/"*.so)"
# Steps that succeed are heard when they warn.
cp -r other/place/k2 loud; rm -rf loud/.kernel-builder loud/build
printf 'static int loud(int x) { if (x < 1U) return 1; }\nint louder(int x) { return loud(x); }\n' >>loud/tiny_cpu/relu.cpp
check_exit 0 "relu.cpp:[0-9]+:[0-9]+: warning: " "a compiler's warning is shown" build loud --backend cpu --no-cache
# A commit that touches one kernel file compiles that file and the bindings (they carry the ops id).
echo '// changed' >>other/place/k2/tiny_cpu/relu.cpp; build other/place/k2 --matrix --no-cache --json >one.json 2>/dev/null
equal "one changed CPU source compiles it and the two bindings" "$(compiled one.json)" 3
# Killed in the middle: finished objects stay.
cp -r k killed; rm -rf killed/.kernel-builder killed/build
"$kb" build killed --matrix --no-cache ${from[@]+"${from[@]}"} >kill.log 2>&1 & victim=$!
for _ in $(seq 600); do ls killed/.kernel-builder/work/tu/*.o >/dev/null 2>&1 && break; kill -0 $victim 2>/dev/null || break; sleep 0.1; done
kill -9 $victim 2>/dev/null; wait $victim 2>/dev/null
check_not "a killed build published nothing half" sh -c 'ls -d killed/build/*/ 2>/dev/null | while read d; do [ -f "$d/metadata.json" ] || exit 0; done; exit 1'
check "the next build finishes" build killed --matrix --no-cache
same_tree "with the same bytes" k/build killed/build
"$kb" build other/place/k2 --matrix >/dev/null 2>&1
if [ "$(id -u)" = 0 ]; then
  rm -rf k/.kernel-builder k/build
  check "without a network route --offline builds from the store" unshare --net -- "$kb" build k --matrix --offline
  same_tree "with the same bytes" k/build killed/build
fi
# --dry-run foresees what a build takes, from what one before took.
rm -rf killed/build killed/.kernel-builder/work killed/.kernel-builder/stage
"$kb" build killed --matrix --no-cache --dry-run --json >foreseen.json 2>/dev/null
check_not "--dry-run writes nothing" test -e killed/build -o -e killed/.kernel-builder/work
build killed --matrix --no-cache --json >done.json 2>/dev/null
check "steps and bytes of a build are foreseen, its CPU time roughly" python3 - foreseen.json done.json killed <<'PY'
import json, pathlib, sys
said, did, root = json.load(open(sys.argv[1]))["prediction"], json.load(open(sys.argv[2])), pathlib.Path(sys.argv[3])
sizes = lambda *globs: sum(p.stat().st_size for g in globs for p in root.glob(g) if p.is_file())
package, disk = sizes("build/*/**/*"), sizes("build/*/**/*", ".kernel-builder/work/tu/*.o", ".kernel-builder/work/link/*/*.so")
took = [line.split("\t") for line in (root / ".kernel-builder/record/peaks").read_text().splitlines()]
cpu, peaks = sum(int(f[2]) for f in took) / 1000, sorted((int(f[1]) for f in took), reverse=True)
print(said, package, disk, cpu, peaks)
assert said["compilations"] == did["compiled"] and said["links"] == 2
assert said["unmeasured"] <= 1  # a step that ended just before the kill above left an object and no measure
assert abs(said["upload-bytes"] / package - 1) < 0.01 and abs(said["disk-bytes"] / disk - 1) < 0.25
assert 0.5 < said["cpu-seconds"] / cpu < 2 and peaks[0] * 0.75 < said["peak-bytes"]
PY
# Sources that were committed after the build: the package says so from the next build on.
"$kb" init told --name me/told --framework torch-noarch --backends cpu >/dev/null 2>&1
git -C told init -q && git -C told add -A && git -C told -c user.name=t -c user.email=t@t commit -qm one
echo '# more' >>told/torch-ext/told/layers.py; build told >/dev/null 2>&1
check_exit 1 "uncommitted" "a build of changed sources is known as one" "$kb" verify told --require-clean
git -C told -c user.name=t -c user.email=t@t commit -qam two; build told >/dev/null 2>&1
check "after the commit the next build makes it clean" "$kb" verify told --require-clean
check_exit 0 "0 built, 1 up to date" "and then it stays" build told
# --check-reproducible: equal for a CPU kernel; what makes a difference is named.
"$kb" init again --name me/again --backends cpu >/dev/null 2>&1
check_exit 0 "two builds gave the same bytes" "--check-reproducible: a CPU kernel gives the same bytes twice" build again --check-reproducible
check_not "and leaves the project as it was" test -e again/build
build again --check-reproducible --json >twice.json 2>/dev/null
equal "as JSON" "$(python3 -c 'import json; d=json.load(open("twice.json")); print(d["schema"], d["reproducible"], d["differences"])')" "kernel-builder/reproducible/1 True []"
# Steps before the one below, so that there is a log.
for n in 1 2 3 4; do echo "int again_step_$n;" >"again/again_cpu/step$n.cpp"; sed -i "s,^  \"again_cpu/relu.cpp\",  \"again_cpu/step$n.cpp\"\,\n&," again/build.toml; done
# The log of the build, with times of the steps before, is the one thing in the sandbox that differs from run to run.
cat >>again/torch-ext/torch_binding.cpp <<'CPP'
__asm__(".section .stamp,\"a\"\n.incbin \"/work/.ninja_log\"\n.previous\n");
CPP
export TMPDIR=$scratch/tmp; mkdir -p "$TMPDIR"
check_exit 1 "abi3.so' differs in section '.stamp' from byte" "what embeds the time of the build is named with file and section" build again --check-reproducible -j 2
check "both variants are kept to look at" sh -c "ls '$TMPDIR'/kernel-builder-twice-*/a/build/*/metadata.json"
unset TMPDIR
# kernel-builder.toml: a kernel that says that it is experimental.
"$kb" init trial --name me/trial --framework torch-noarch --backends cpu >/dev/null 2>&1
printf 'schema = "kernel-builder/project/1"\nexperimental = true\n' >trial/kernel-builder.toml
check "an experimental kernel builds" build trial
check "its metadata say so" sh -c 'grep -q "\"experimental\": true" trial/build/*/metadata.json'
check_exit 1 "KERNELS_EXPERIMENTAL=1" "importing it needs the user's word" env PYTHONPATH="$(echo trial/build/*/)" python3 -B -c 'import importlib.util,sys,glob; s=importlib.util.spec_from_file_location("_ops", glob.glob("trial/build/*/_ops.py")[0]); m=importlib.util.module_from_spec(s); s.loader.exec_module(m)'
sed -i 's/true/false/' trial/kernel-builder.toml
check_exit 0 "what it is built from changed" "a changed word is a changed build key" "$kb" build trial --dry-run
echo 'experimetal = true' >>trial/kernel-builder.toml
check_exit 3 "kernel-builder.toml:3:1: error: .*experimetal" "a key that is read by nobody is an error" "$kb" build trial --dry-run
start=$(date +%s%N); "$kb" build k --matrix >/dev/null 2>&1; "$kb" build k --matrix >/dev/null 2>&1; end=$(date +%s%N)
echo "two no-op builds took $(((end - start) / 1000000)) ms"
