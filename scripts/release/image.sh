#!/bin/bash
# image.sh - the container image, without a daemon: glibc of Debian 12 and the program, as an archive of an OCI layout that
# docker load reads, too. No shell, nothing else.
# usage: VERSION=V SOURCE_DATE_EPOCH=S image.sh STAGE FOLDER [x86_64|aarch64]
set -euo pipefail
cd "$(dirname "$0")/../.."
stage=${1:?usage: image.sh STAGE FOLDER} to=${2:?usage: image.sh STAGE FOLDER} processor=${3:-x86_64}
: "${VERSION:?}" "${SOURCE_DATE_EPOCH:?}"
. scripts/debian.sh
. scripts/version.sh
DEBIAN_ARCH=$(debian_arch "$processor")
base=target/release-base-$processor
if [ ! -e "$base/made" ]; then
  rm -rf "$base"
  debian_packages bookworm "$base" libc6
  mkdir "$base/root"
  for deb in "$base"/debs/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$base/root"; done
  touch "$base/made"
fi
mkdir -p "$to"
export GPUSCOPE_BASE=$base/root GPUSCOPE_BASE_PACKAGES
GPUSCOPE_BASE_PACKAGES=$(cd "$base/debs" && printf '%s\n' *.deb)
scripts/release/image.py "$stage" "$to/gpuscope-$VERSION-oci-$DEBIAN_ARCH.tar" "$processor"
