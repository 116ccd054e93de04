#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# registry_harm.sh KERNEL_BUILDER [SECONDS]: attacks, faults, kills and full disks, then SECONDS (default 20) of many publishers and readers.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
status=0
for script in registry_attacks registry_faults; do
  python3 "$here/$script.py" "$1" || status=1
done
python3 "$here/registry_soak.py" "$1" "${2:-20}" || status=1
exit $status
