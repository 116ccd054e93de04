#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# github_workflow.sh KERNEL_BUILDER VENV: the reusable workflow is valid, and its steps do what they say. VENV is made when
# it is not there; it gets a pinned wheel through the user's own pip.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
tool=$1 venv=$2
exec 9>"$venv.lock"; flock 9
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import check_jsonschema' 2>/dev/null || "$venv/bin/pip" install -q --disable-pip-version-check check-jsonschema==0.39.0 >&2
flock -u 9
"$venv/bin/check-jsonschema" --builtin-schema vendor.github-workflows "$here/../../.github/workflows/kernel.yml"
"$venv/bin/python" "$here/github_workflow.py" "$tool"
