#!/usr/bin/env bash
# Prints how many processes Pants runs in parallel.
#
# Tests wait for a quarter of their time, those of the long tier for half of it: three or
# four processes keep two cores busy. On a machine that is busy with other things (more
# than three runnable threads for each core, which a run of Pants does not reach by itself)
# half as many: tests that wait for one another's processor do not end sooner. Each has 3
# GB of memory (lib/lab/slots/slots.py). It changes rarely on purpose: Pants' daemon starts
# again with each change.
#   processes.sh TIER [CORES [LOADAVG [MEMINFO]]]    TIER: long, or anything else
set -euo pipefail
tier="$1"
cores="${2:-$(nproc)}"
loadavg="${3:-/proc/loadavg}"
meminfo="${4:-/proc/meminfo}"
kib_each=3000000

processes=$((cores + cores / 2))
[ "$tier" != long ] || processes=$((2 * cores))
load="$(cut -d. -f1 "$loadavg" 2>/dev/null || echo 0)"
[ "$load" -lt $((3 * cores)) ] || processes=$((processes / 2))
available="$(awk '/^MemAvailable:/ { print $2 }' "$meminfo" 2>/dev/null || true)"
if [ -n "$available" ] && [ "$processes" -gt $((available / kib_each)) ]; then
  processes=$((available / kib_each))
fi
echo $((processes > 0 ? processes : 1))
