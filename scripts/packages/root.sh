#!/bin/bash
# root.sh - a clean root directory of a distribution, as an archive that is kept
# usage: root.sh NAME TO.tar         NAME: buster bullseye bookworm trixie (Debian), focal jammy noble (Ubuntu), rpm
# rpm is Debian 12 with rpm, and no package in rpm's own books. Fails where its packages cannot be had.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/debian.sh
name=${1:?usage: root.sh NAME TO.tar} to=${2:?usage: root.sh NAME TO.tar}
mirror=$(debian_mirror) keyring=$debian_key suite=$name components=main include=systemd,man-db
scratch=$(mktemp -d); trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch" # apt reads the keys as a user of its own
case $name in
  buster) mirror=http://archive.debian.org/debian ;;
  focal | jammy | noble)
    mirror=http://archive.ubuntu.com/ubuntu components="main universe"
    debian_packages trixie "$scratch" ubuntu-keyring >/dev/null
    dpkg-deb --fsys-tarfile "$scratch"/debs/ubuntu-keyring_*.deb | tar -x -C "$scratch"
    keyring=$scratch/usr/share/keyrings/ubuntu-archive-keyring.gpg ;;
  rpm) suite=bookworm include=systemd,man-db,rpm ;;
esac
mmdebstrap --quiet --variant=minbase --include="$include" --aptopt='Acquire::http::Timeout "20"' --aptopt='Acquire::Retries "1"' \
  "$suite" "$scratch/root.tar" "deb [signed-by=$keyring] $mirror $suite $components" >&2
mv "$scratch/root.tar" "$to"
