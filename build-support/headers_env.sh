# Sourced by ./pants: the environment in which the SDK of oVirt is built.
#
# It is built from source with headers of libxml2 and Python. Without debug information,
# which names its sandbox, each build has the same bytes.
# shellcheck shell=bash
export CFLAGS="${CFLAGS:--g0}" SOURCE_DATE_EPOCH=315532800
headers="$("$(dirname "${BASH_SOURCE[0]}")/headers.sh")"
if [ -n "$headers" ]; then
  include="$headers/usr/include"
  libraries=("$headers"/usr/lib/*-linux-gnu*)
  multiarch="${libraries[0]##*/}"
  C_INCLUDE_PATH="$include/libxml2:$include/python3.11:$include/$multiarch:$include${C_INCLUDE_PATH:+:$C_INCLUDE_PATH}"
  LIBRARY_PATH="${libraries[0]}${LIBRARY_PATH:+:$LIBRARY_PATH}"
  export C_INCLUDE_PATH LIBRARY_PATH
  if ! compgen -G "/usr/lib/*/libxml2.so.2" >/dev/null; then
    export LD_LIBRARY_PATH="${libraries[0]}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  fi
fi
