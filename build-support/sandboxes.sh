#!/usr/bin/env bash
# Prints the folder in memory for Pants' sandboxes, or nothing: then they are on disk.
#
# A sandbox is a thousand files that live for seconds (docs/decisions/0189). Memory serves
# where it is a tmpfs of 8 GiB from which programs may be started.
#   sandboxes.sh [MEMORY [MOUNTS [KIB]]]    default: /dev/shm /proc/mounts 8388608
set -euo pipefail
memory="${1:-/dev/shm}"
mounts="${2:-/proc/mounts}"
needed_kib="${3:-8388608}"

is_tmpfs() {
  awk -v at="$memory" '
    $2 == at { good = $3 == "tmpfs" && ("," $4 ",") !~ /,(noexec|ro),/ }
    END { exit !good }
  ' "$mounts" 2>/dev/null
}

# Its size, not what is free: Pants' daemon starts again when the folder changes.
is_large() { [ "$(df -kP "$memory" | awk 'NR == 2 { print $2 }')" -ge "$needed_kib" ]; }

# Programs of `./pants run` have the path of theirs in the environment, for days perhaps.
is_used() { grep -qsF -- "$1" /proc/[0-9]*/environ; }

if is_tmpfs && is_large; then
  folder="$memory/pants-$(id -u)"
  mkdir -p -m 700 "$folder" 2>/dev/null || exit 0
  [ -O "$folder" ] || exit 0
  # A Pants that was killed leaves its sandboxes.
  find "$folder" -maxdepth 1 -name 'pants-sandbox-*' -mmin +1440 | while read -r sandbox; do
    is_used "$sandbox" || rm -rf "$sandbox"
  done
  echo "$folder"
fi
