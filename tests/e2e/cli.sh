#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The command line itself: help, usage errors, init.
. "$(dirname "$0")/lib.sh"
cd "$scratch"
check "--help lists commands" sh -c "'$kb' --help | grep -q build"
check_exit 2 "did you mean 'build'" "a misspelt command is a usage error with a suggestion" "$kb" biuld
check_exit 2 "did you mean '--matrix'" "a misspelt option is a usage error with a suggestion" "$kb" build --matrx
check "--version prints one line" sh -c "[ \"\$('$kb' --version | wc -l)\" = 1 ]"
check "init makes a project outside git" "$kb" init first --name me/first --backends cpu,cuda
check_exit 2 "already there" "init overwrites nothing" "$kb" init first --name me/first --backends cpu
check "what init wrote is a correct project" "$kb" check-config first --strict
check_exit 2 "Bad_Name|kernel name" "a bad kernel name is refused before anything is written" "$kb" init bad --name 'me/9bad'
check_not "nothing was written" test -e bad/build.toml
check "list-variants names both backends" sh -c "'$kb' list-variants first | grep -c x86_64-linux | grep -qx 2"
check "every line of list-variants --json is JSON with a schema" sh -c "'$kb' list-variants first --json | python3 -c 'import json,sys; assert json.load(sys.stdin)[\"schema\"]'"
check "a dry run needs no toolchain and writes nothing" "$kb" build first --matrix --dry-run --json
check_not "nothing was written by the dry run" test -e first/build
check "a stable project names nothing that ties it to one torch" sh -c "'$kb' explain stable-abi first | grep -q 'name nothing of torch outside'"
binding=$(find first -name '*binding.cpp' | head -1)
printf '#include <torch/extension.h>\n' >>"$binding"
check "explain stable-abi names the line and what is stable instead" \
  sh -c "'$kb' explain stable-abi first | grep -q 'binding.cpp:[0-9]*: includes .torch/extension.h.; instead: torch/csrc/stable/tensor.h'"
# Every command has a page, which names every option that --help lists (the selection is described once).
python3 - "$kb" "$repo/docs" >pages.txt <<'PY'
import pathlib, re, subprocess, sys
kb, docs = sys.argv[1], pathlib.Path(sys.argv[2])
ask = lambda *words: subprocess.run([kb, *words, "--help"], capture_output=True, text=True).stdout
option = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
shared = set(option.findall(ask("list-variants"))) & set(option.findall(ask("lock"))) - {"--json"} | {"--help"}
names = re.findall(r"^  ([a-z][a-z-]+)  ", ask(), re.M)
assert "build" in names and len(names) > 15, names
for name in names:
    page = docs / "registry.md" if name == "registry" else docs / "commands" / f"{name}.md"
    if not page.exists():
        print(f"{name}: no page")
        continue
    text = page.read_text()
    subcommands = re.findall(r"^  ([a-z][a-z-]+)  ", ask(name), re.M) if name in ("registry", "store", "abi") else []
    for words in [(name, s) for s in subcommands] or [(name,)]:
        for found in sorted(set(option.findall(ask(*words))) - shared):
            if found not in text:
                print(f"{' '.join(words)}: {page.name} does not name {found}")
PY
equal "every command has a page with all its options" "$(cat pages.txt)" ""
