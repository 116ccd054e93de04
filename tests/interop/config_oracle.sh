#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# config_oracle.sh DRIVER VENV: compares our reading of build.toml with the reference parser, and the good samples with the
# editor schema. VENV is made when it is not there; it gets pinned wheels through the user's own pip.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
driver=$1 venv=$2
packages=(kernels==0.17.2 jsonschema==4.26.0)
exec 9>"$venv.lock"; flock 9
if ! "$venv/bin/python" -c 'import jsonschema, kernels' 2>/dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check --only-binary=:all: "${packages[@]}" >&2
fi
flock -u 9
"$venv/bin/python" "$here/oracle_diff.py" --driver "$driver"
"$venv/bin/python" "$here/schema_samples.py"
