#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A project of each framework that `init` knows builds as it is, and its own tests pass with real torch (and tvm-ffi's
# own package). Usage: init_projects.sh KERNEL_BUILDER VENV; VENV has torch and pytest: that of the quickstart.
. "$(dirname "$0")/../e2e/lib.sh"
venv=$2; cd "$scratch" || exit 1
[ -x "$venv/bin/python" ] || { echo "no Python with torch in '$venv': run scripts/quickstart first"; exit 77; }
"$venv/bin/python" -c 'import tvm_ffi' 2>/dev/null || "$venv/bin/pip" install -q --no-deps apache-tvm-ffi==0.1.15.post2
# own_tests PROJECT [OPTION...]: the project's tests in the shell that its README names.
own_tests() { local project=$1; shift; (cd "$project" && PATH="$venv/bin:$PATH" "$kb" testshell --as cpu "$@" -- python -m pytest -q -p no:cacheprovider tests); }
for framework in torch torch-noarch tvm-ffi; do
  check "$framework: init" "$kb" init "$framework" --name "me/my-$framework" --framework "$framework" --backends cpu
  (cd "$framework" && own_tests . >../before 2>&1)
  check "$framework: before a build the shell says that nothing is built" grep -q "nothing that runs here is built" before
  check "$framework: it builds" "$kb" build "$framework"
  check "$framework: what was built passes the checks" "$kb" check-abi "$framework"
  check_exit 0 "[0-9]+ passed" "$framework: its own tests pass" own_tests "$framework"
done
check_exit 0 "[0-9]+ passed" "a variant can be named" own_tests torch --variant "$(ls torch/build)"
check_exit 2 "'torch-rocm' is not built; run: kernel-builder build --variant torch-rocm" "one that is not there is named with the next step" own_tests torch --variant torch-rocm
# The same project with pip and CMake, as in an IDE: torch says in the shell that it has no CUDA, so the CPU is chosen.
check "create-pyproject" sh -c 'cd torch && "$0" create-pyproject' "$kb"
with_pip() { PATH="$venv/bin:$PATH" "$kb" testshell --as cpu -- python -m pip install -q --no-build-isolation --no-deps --target "$scratch/site" "$scratch/torch"; }
check "pip builds and installs it" with_pip
installed_tests() { PYTHONPATH=$scratch/site PATH="$venv/bin:$PATH" "$kb" testshell --as cpu -- python -m pytest -q -p no:cacheprovider torch/tests; }
check_exit 0 "[0-9]+ passed" "its own tests pass with what pip installed" installed_tests
