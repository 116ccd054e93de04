#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# registry.sh KERNEL_BUILDER VENV: stock clients against our registry on loopback. VENV (or $KB_INTEROP_VENV) is made when
# it is not there; it gets pinned wheels through the user's own pip.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
tool=$1 venv=${KB_INTEROP_VENV:-$2}
packages=(kernels==0.17.2 huggingface_hub==2.4.0 hf_xet==1.8.0)
exec 9>"$venv.lock"; flock 9
if ! "$venv/bin/python" -c 'import hf_xet, huggingface_hub, kernels' 2>/dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check --only-binary=:all: "${packages[@]}" >&2
fi
flock -u 9
"$venv/bin/python" "$here/registry_clients.py" "$tool"
"$venv/bin/python" "$here/registry_crash.py" "$tool"
"$venv/bin/python" "$here/registry_features.py" "$tool"
"$venv/bin/python" "$here/registry_mirror.py" "$tool"
"$venv/bin/python" "$here/registry_xet.py" "$tool"
