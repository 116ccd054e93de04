#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# abi_diff.sh KERNEL_BUILDER VENV: compares check-abi, metadata and digests with the reference tools. VENV is made when it
# is not there; it gets pinned wheels through the user's own pip.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
tool=$1 venv=$2
packages=(kernels==0.17.2 kernel-abi-check==0.14.1 jsonschema==4.26.0)
exec 9>"$venv.lock"; flock 9
if ! "$venv/bin/python" -c 'import jsonschema, kernel_abi_check, kernels' 2>/dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check --only-binary=:all: "${packages[@]}" >&2
fi
flock -u 9
"$venv/bin/python" "$here/abi_diff.py" "$tool"
