#!/usr/bin/env bash
# Prints the folder with the C headers that the SDK of oVirt is built with, and nothing
# where the system has them: those of libxml2 and of Python 3.11. They are unpacked from
# the distribution's packages, as any user; nothing is installed.
#
#   headers.sh [root of the system] [cache]
set -euo pipefail
system="${1:-}"
setup="${PANTS_SETUP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pants-pypi}"
cache="${2:-$setup}"
tree="$cache/headers-1"

has_xml() {
  [ -e "$system/usr/include/libxml2/libxml/xmlreader.h" ] || return 1
  compgen -G "$system/usr/lib/*/libxml2.so" >/dev/null || [ -e "$system/usr/lib/libxml2.so" ]
}
# A Python that is not the distribution's was built on this machine, with its headers.
has_python() {
  [ ! -e "$system/usr/bin/python3.11" ] || [ -e "$system/usr/include/python3.11/Python.h" ]
}

download() { # options of apt
  local libraries
  # libxml2.so.2 and the ICU that it loads, in case that the system has neither.
  libraries="$(apt-cache "$@" depends libxml2 | sed -nE 's/^ *Depends: (libicu[0-9]+)$/\1/p' | head -1)"
  apt-get "$@" download libxml2-dev libxml2 libicu-dev libpython3.11-dev $libraries
}

unpack() { # in a condition: a failed command does not end it by itself
  local part="$tree.new" lists="$tree.lists" package
  rm -rf "$part" "$lists"
  mkdir -p "$part/packages" "$lists/lists/partial" "$lists/cache/archives/partial"
  cd "$part/packages"
  if ! download >/dev/null 2>&1; then
    local options=("-oDir::State::Lists=$lists/lists" "-oDir::Cache=$lists/cache" -oAPT::Sandbox::User=root)
    apt-get "${options[@]}" update >/dev/null 2>&1 || true
    download "${options[@]}" >/dev/null || return 1
  fi
  for package in *.deb; do dpkg -x "$package" "$part" || return 1; done
  cd "$cache"
  rm -rf "$part/packages" "$lists" "$part"/usr/share "$part"/usr/bin
  # Without archives, which a link would take where it lacks a shared library.
  find "$part" -name '*.a' -delete
  mv "$part" "$tree"
}

if has_xml && has_python; then exit 0; fi
if [ ! -d "$tree" ]; then
  mkdir -p "$cache"
  exec 9>"$cache/.headers.lock"
  flock 9
  if [ ! -d "$tree" ] && ! unpack; then
    {
      echo "pants: the headers of libxml2 and Python 3.11 are missing and could not be fetched."
      echo "  Debian, Ubuntu: apt-get install libxml2-dev libpython3.11-dev"
    } >&2
    exit 1
  fi
  exec 9>&-
fi
echo "$tree"
