#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A project of each framework that `init` knows builds as it is, and its own tests pass with real torch (and tvm-ffi's
# own package). Usage: init_projects.sh KERNEL_BUILDER VENV; VENV has torch and pytest: that of the quickstart.
. "$(dirname "$0")/../e2e/lib.sh"
venv=$2; cd "$scratch" || exit 1
[ -x "$venv/bin/python" ] || { echo "no Python with torch in '$venv': run scripts/quickstart first"; exit 77; }
"$venv/bin/python" -c 'import tvm_ffi' 2>/dev/null || "$venv/bin/pip" install -q --no-deps apache-tvm-ffi==0.1.15.post2
"$venv/bin/pip" install -q "setuptools>=70.1" # the first with bdist_wheel of its own
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
check_exit 0 "[0-9]+ passed" "a variant can be named" own_tests torch --variant "$(basename torch/build/*/)"
check_exit 2 "'torch-rocm' is not built; run: kernel-builder build --variant torch-rocm" "one that is not there is named with the next step" own_tests torch --variant torch-rocm
# The same project with pip and CMake, as in an IDE: torch says in the shell that it has no CUDA, so the CPU is chosen.
check "create-pyproject" sh -c 'cd torch && "$0" create-pyproject' "$kb"
with_pip() { PATH="$venv/bin:$PATH" "$kb" testshell --as cpu -- python -m pip install -q --no-build-isolation --no-deps --target "$scratch/site" "$scratch/torch"; }
check "pip builds and installs it" with_pip
installed_tests() { PYTHONPATH=$scratch/site PATH="$venv/bin:$PATH" "$kb" testshell --as cpu -- python -m pytest -q -p no:cacheprovider torch/tests; }
check_exit 0 "[0-9]+ passed" "its own tests pass with what pip installed" installed_tests
editable() { PATH="$venv/bin:$PATH" "$kb" testshell --as cpu -- python -m pip install -q --no-build-isolation --no-deps -e "$scratch/torch"; }
check "pip installs it for editing, as create-pyproject says" editable
check_exit 0 "torch-ext" "what was built stands beside the sources that are imported" "$venv/bin/python" -c 'import importlib.util as u; print(u.find_spec("my_torch").origin)'
check "with its library" sh -c 'ls torch/torch-ext/my_torch/_my_torch_cpu_*.so torch/torch-ext/my_torch/_ops.py'
"$venv/bin/pip" uninstall -q -y my-torch
# The name of the example in init's help; names that no compiler takes.
check "init relu" "$kb" init relu --name me/relu --backends cpu
check "a kernel of that name builds" "$kb" build relu
check_exit 2 "means something else" "a keyword is no name" "$kb" init class --name me/class
