#!/bin/bash
# fetch-interpreters.sh - download the CPython versions that tests/real/interpreters.rs reads; nothing is installed.
# usage: fetch-interpreters.sh DIR
# result: DIR/3.10 … DIR/3.15: a root directory each, with usr/bin/python3.N and what it needs, as Debian and Ubuntu
#         ship them (stripped, 3.10 and 3.12 of Ubuntu, the others of Debian); run with chroot.
# Needs apt-get and dpkg-deb; about 300 MB of disk. Exit status 1 when a version cannot be had.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
mkdir -p "$1"; DIR=$(cd "$1" && pwd); T=$(mktemp -d -p "$DIR"); trap 'rm -rf "$T"' EXIT

# suite NAME MIRROR KEYRING COMPONENTS…: an apt state of our own, so that the host's is left alone
suite() {
  local name=$1 mirror=$2 key=$3 a=$DIR/.apt/$1; shift 3
  mkdir -p "$a/lists/partial" "$a/cache/archives/partial"
  echo "deb [arch=amd64 signed-by=$key] $mirror $name $*" >"$a/list"
  cat >"$a/apt.conf" <<C
Dir::Etc::sourcelist "$a/list"; Dir::Etc::sourceparts "-"; Dir::State::lists "$a/lists"; Dir::State::status "/dev/null";
Dir::Cache "$a/cache"; APT::Sandbox::User "root"; APT::Architecture "amd64"; Acquire::Languages "none";
C
  [ -e "$a/fresh" ] || { APT_CONFIG=$a/apt.conf apt-get -qq update && touch "$a/fresh"; }
}

# unpack SUITE DESTINATION PACKAGE…
unpack() {
  local suite=$1 to=$2 d deb; shift 2
  d=$(mktemp -d -p "$T")
  (cd "$d" && APT_CONFIG=$DIR/.apt/$suite/apt.conf apt-get -qq download "$@")
  mkdir -p "$to"
  for deb in "$d"/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$to" --keep-directory-symlink; done
  rm -rf "$d"
}

# interpreter VERSION SUITE PACKAGE…: a root directory with libraries where both layouts look for them
interpreter() {
  local version=$1 suite=$2 to=$DIR/$1 link; shift 2
  [ ! -x "$to/usr/bin/python$version" ] || { echo "have: $to"; return; }
  rm -rf "$to" "$T/root"
  mkdir -p "$T/root/usr/lib" "$T/root/usr/lib64" "$T/root/usr/bin" "$T/root/tmp"
  for link in lib lib64 bin; do ln -s "usr/$link" "$T/root/$link"; done
  unpack "$suite" "$T/root" "python$version-minimal" "libpython$version-minimal" "libpython$version-stdlib" \
    libc6 libgcc-s1 zlib1g libexpat1 libffi8 "$@"
  chroot "$T/root" "/usr/bin/python$version" -c 'import ctypes, threading' ||
    { echo "fetch-interpreters.sh: python$version of $suite does not run (chroot needs root)" >&2; return 1; }
  mv "$T/root" "$to"
  echo "fetched: $to"
}

debian=$(grep -hsE '^URIs:' /etc/apt/sources.list.d/*.sources | awk '{print $2}' | grep -E '/debian/?$' | sort -u | head -1 || true)
debian=${debian:-http://deb.debian.org/debian}
ubuntu=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
debian_key=/usr/share/keyrings/debian-archive-keyring.gpg
for name in bookworm trixie sid; do suite $name "$debian" $debian_key main; done
# Ubuntu's key, as Debian packages it
unpack trixie "$T/key" ubuntu-keyring
ubuntu_key=$DIR/.apt/ubuntu.gpg
cp "$T/key/usr/share/keyrings/ubuntu-archive-keyring.gpg" "$ubuntu_key"
for name in jammy noble; do suite $name "$ubuntu" "$ubuntu_key" main universe; done

interpreter 3.10 jammy
interpreter 3.11 bookworm
interpreter 3.12 noble
interpreter 3.13 trixie
interpreter 3.14 sid
interpreter 3.15 sid libzstd1
