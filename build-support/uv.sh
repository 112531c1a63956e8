#!/usr/bin/env bash
# Prints the path of the pinned uv, which it installs into the cache when it is missing.
set -euo pipefail
version=0.13.8
home="${PANTS_SETUP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pants-pypi}/uv-$version"
if [ ! -x "$home/bin/uv" ]; then
  for python in python3.11 python3; do
    "$python" -c 'import ensurepip, venv' 2>/dev/null && break
    python=
  done
  if [ -z "$python" ]; then
    echo "uv.sh: Python's venv module is missing (Debian, Ubuntu: apt-get install python3-venv)" >&2
    exit 1
  fi
  "$python" -m venv "$home" >&2
  "$home/bin/pip" install --quiet --disable-pip-version-check "uv==$version" >&2
fi
echo "$home/bin/uv"
