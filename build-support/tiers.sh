#!/usr/bin/env bash
# Runs build-support/tiers.py with the machine's Python 3.11.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
for python in python3.11 python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.11.*/bin/python3.11; do
  if "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
    exec "$python" "$here/tiers.py" "$@"
  fi
done
echo "tiers.sh: no Python 3.11 found" >&2
exit 1
