# SPDX-License-Identifier: Apache-2.0
# Sourced by the end-to-end scripts: bash SCRIPT KERNEL_BUILDER. Every check prints a line; the last line counts them.
set -uo pipefail
kb=$(realpath "$1")
state=${KB_TEST_STATE:-${TMPDIR:-/tmp}/kernel-builder-tests}
repo=${KB_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd -P)}
mkdir -p "$state"
scratch=$(mktemp -d "$state/e2e.XXXXXX")
passed=0 failed=0 pids=()
# Nothing of the caller's machine decides what a test sees.
export HOME=$scratch/home KERNEL_BUILDER_STORE=${KB_TEST_STORE:-$state/store} HF_ENDPOINT=http://127.0.0.1:9
unset HF_TOKEN XDG_CONFIG_HOME XDG_CACHE_HOME KERNEL_BUILDER_SANDBOX KERNEL_BUILDER_OFFLINE
mkdir -p "$HOME"
from=(); [ -z "${KB_TEST_WHEELS:-}" ] || from=(--from "$KB_TEST_WHEELS")

finish() {
  local p
  for p in ${pids[@]+"${pids[@]}"}; do kill "$p" 2>/dev/null; done
  chmod -R u+w "$scratch" 2>/dev/null; rm -rf "$scratch"
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ] || exit 1
}
trap finish EXIT
good() { passed=$((passed + 1)); echo "ok      $1"; }
bad() { failed=$((failed + 1)); echo "FAILED  $1"; [ ! -s "$scratch/out" ] || sed 's/^/        | /' "$scratch/out" | tail -n 30; }

# check NAME COMMAND...: must exit 0.   check_not NAME COMMAND...: must not.
check() { local n=$1; shift; if "$@" >"$scratch/out" 2>&1; then good "$n"; else bad "$n (exit $?)"; fi; }
check_not() { local n=$1; shift; if "$@" >"$scratch/out" 2>&1; then bad "$n"; else good "$n"; fi; }
# check_exit CODE PATTERN NAME COMMAND...: must exit CODE and print a line that matches.
check_exit() {
  local code=$1 pattern=$2 n=$3 got=0; shift 3
  "$@" >"$scratch/out" 2>&1 || got=$?
  if [ "$got" = "$code" ] && grep -qE -- "$pattern" "$scratch/out"; then good "$n"; else bad "$n (exit $got, wanted $code and '$pattern')"; fi
}
# equal NAME A B: the same text.   same_tree NAME A B: the same files with the same bytes.
equal() { if [ "$2" = "$3" ]; then good "$1"; else printf '%s\n---\n%s\n' "$2" "$3" >"$scratch/out"; bad "$1"; fi; }
same_tree() { local n=$1; shift; check "$n" diff -r "$@"; }
build() { "$kb" build "$@" ${from[@]+"${from[@]}"}; }
