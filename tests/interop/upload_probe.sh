#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# upload_probe.sh KERNEL_BUILDER: our uploader against an independent hub server, with its defects, on loopback.
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/../e2e/lib.sh"

# project DIR BYTES VARIANT...: finished variants with BYTES of noise each, sealed.
project() {
  local dir=$1 bytes=$2 v; shift 2
  for v in "$@"; do
    mkdir -p "$dir/build/$v"
    printf 'x = 1\n' >"$dir/build/$v/__init__.py"
    : >"$dir/build/$v/empty.txt"
    head -c "$bytes" /dev/urandom >"$dir/build/$v/data.bin"
    printf '{"name":"k","id":"_k_x","version":1,"license":"MIT","python-depends":[],"backend":{"type":"%s"},"provenance":{"kernel-builder":{"version":"0.1.0"},"build":{"sandbox":"namespaces"}}}' \
      "${v#torch-}" >"$dir/build/$v/metadata.json"
  done
  "$kb" hash "$dir" >/dev/null
}

# hub NAME [OPT...]: a new server; sets HF_ENDPOINT, $trace and $hub.
hub() {
  local name=$1 port; shift
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  trace=$scratch/$name.trace
  : >"$trace"
  python3 "$here/probe_hub.py" "$port" "$trace" "$@" >"$scratch/$name.log" 2>&1 &
  hub=$!; pids+=("$hub")
  export HF_ENDPOINT=http://127.0.0.1:$port
  until python3 -c "import socket; socket.create_connection(('127.0.0.1', $port), 1)" 2>/dev/null; do sleep 0.05; done
}
# seen PATTERN: how many requests ("METHOD URL STATUS") match.
seen() { python3 -c 'import json, re, sys
print(sum(bool(re.search(sys.argv[2], "%s %s %s" % (j["m"], j["u"], j["st"]))) for j in map(json.loads, open(sys.argv[1]))))' "$trace" "$1"; }
# remote BRANCH: the paths of a branch, as any client lists them.
remote() { curl -s "$HF_ENDPOINT/api/kernels/acme/k/revision/$1" |
  python3 -c 'import json, sys; print("\n".join(sorted(e["rfilename"] for e in json.load(sys.stdin).get("siblings", []))))'; }
# same_bytes DIR VARIANT: what a reader downloads is what lies here.
same_bytes() { curl -sL "$HF_ENDPOINT/kernels/acme/k/resolve/v1/build/$2/data.bin" | cmp - "$1/build/$2/data.bin"; }
up() { "$kb" upload "$1" --repo-id "${repo_id:-acme/k}" -q "${@:2}"; }

export HF_TOKEN=hf_alice
p=$scratch/p
project "$p" 400000 torch-cpu torch-cuda
mkdir -p "$p/benchmarks"; echo b >"$p/benchmarks/benchmark.py"; echo n >"$p/benchmarks/notes.txt"; echo card >"$p/build/CARD.md"
want='.gitattributes
benchmarks/benchmark.py
build/torch-cpu/__init__.py
build/torch-cpu/data.bin
build/torch-cpu/empty.txt
build/torch-cpu/metadata.json
build/torch-cuda/__init__.py
build/torch-cuda/data.bin
build/torch-cuda/empty.txt
build/torch-cuda/metadata.json'

for options in "" "part=100000" "pagesize=2" "lfsmin=10000000" "lfsmin=1" "lie=noerrcode"; do
  hub "new-${options//[^a-z0-9]/-}" $options
  check "[$options] a dry run on a repository that is not there" up "$p" --dry-run
  equal "[$options] it changes nothing" "$(seen '^POST|^PUT')" 0
  check "[$options] a new repository" up "$p" --output-json "$scratch/out.json"
  equal "[$options] all files are there" "$(remote v1)" "$want"
  check "[$options] the same bytes come back" same_bytes "$p" torch-cuda
  check "[$options] the summary says so" grep -q '"status": "uploaded"' "$scratch/out.json"
  equal "[$options] the card is on main" "$(curl -s "$HF_ENDPOINT/kernels/acme/k/resolve/main/README.md")" card
  : >"$trace"
  check "[$options] once more" up "$p" --output-json "$scratch/out.json"
  check "[$options] the summary says that nothing changed" grep -q '"status": "no_changes"' "$scratch/out.json"
  equal "[$options] nothing is sent" "$(seen '^POST|^PUT')" 0
done

cp -r "$p" "$scratch/changed"; echo 'x = 2' >"$scratch/changed/build/torch-cpu/__init__.py"
check_exit 1 'upload-wrong-digest' "a file that its digest does not cover is refused" up "$scratch/changed"
"$kb" hash "$scratch/changed" >/dev/null
check_exit 5 'torch-cpu.*--replace' "a published variant is not replaced silently" up "$scratch/changed"
check "it is with --replace" up "$scratch/changed" --replace
rm "$scratch/changed/build/torch-cpu/empty.txt"; "$kb" hash "$scratch/changed" >/dev/null
check "a file that is gone here goes there" up "$scratch/changed" --replace
equal "and no other" "$(remote v1)" "$(grep -v torch-cpu/empty.txt <<<"$want")"

: >"$trace"
check "a pull request" up "$p" --create-pr --replace --output-json "$scratch/out.json"
check "is named in the summary" grep -q '/kernels/acme/k/discussions/1"' "$scratch/out.json"
equal "and leaves the branch alone" "$(remote v1 | grep -c torch-cpu/empty.txt)" 0

repo_id=acme/other HF_TOKEN=wrong check_exit 5 'does not accept the token' "a wrong token" up "$scratch/changed"
repo_id=acme/other HF_TOKEN='' check_exit 5 'HF_TOKEN' "no token" up "$scratch/changed"
HF_ENDPOINT='' check_exit 2 'endpoint.*HF_ENDPOINT.*config.toml' "no registry named" up "$p"
check_exit 2 '/' "a repository without an owner" "$kb" upload "$p" --repo-id alone

# Two jobs with different variants at once: both are there afterwards, by one commit each.
hub race
project "$scratch/a" 200000 torch-cpu; project "$scratch/b" 200000 torch-cuda
up "$scratch/a" >"$scratch/a.out" 2>&1 & a=$!
up "$scratch/b" >"$scratch/b.out" 2>&1 & b=$!
wait "$a"; ra=$?; wait "$b"; rb=$?
cat "$scratch/a.out" "$scratch/b.out" >"$scratch/out"
equal "two jobs at once both succeed" "$ra $rb" "0 0"
equal "and both variants are there" "$(remote v1 | grep -c data.bin)" 2

# Killed in the middle of the parts: what was confirmed is not sent again.
hub killed part=100000
project "$scratch/big" 60000000 torch-cpu
(exec "$kb" upload "$scratch/big" --repo-id acme/k -q) >/dev/null 2>&1 & victim=$!
until [ "$(seen '^PUT')" -ge 100 ] || ! kill -0 "$victim" 2>/dev/null; do :; done
kill -9 "$victim" 2>/dev/null; wait "$victim" 2>/dev/null
before=$(seen '^PUT')
equal "a killed upload has published nothing" "$(remote v1 | grep -c data.bin)" 0
check "the same command finishes it" up "$scratch/big"
check "the same bytes come back" same_bytes "$scratch/big" torch-cpu
# 600 parts; at most the four streams' parts in flight are repeated.
total=$(seen '^PUT'); echo "        parts before the kill: $before, in all: $total of 600" >"$scratch/out"
if [ "$before" -lt 600 ] && [ "$total" -le 604 ]; then good "only parts in flight are sent twice"; else bad "only parts in flight are sent twice"; fi

kill "$hub"; wait "$hub" 2>/dev/null
check_exit 5 'is the server running there' "a registry that is gone" timeout 300 "$kb" upload "$p" --repo-id acme/k -q
