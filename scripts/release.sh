#!/bin/bash
# release.sh - everything that a release hands out, in dist/: docs/release.md
# usage: release.sh VERSION
# RELEASE_KEY=KEY signs it (scripts/release/sums.sh). RELEASE_DIRTY=1 also takes sources that are not committed.
# RELEASE_PROGRAM=FILE packs that program instead of building one. SOURCE_DATE_EPOCH: the commit's time unless said.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 1 ] && [ -n "$1" ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
export VERSION=$1
. scripts/version.sh
refuse() { echo "release.sh: $*" >&2; exit 1; }
cargo_version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
[ "$VERSION" = "$cargo_version" ] || refuse "VERSION is $VERSION, but Cargo.toml says $cargo_version"
[ -n "$GPUSCOPE_COMMIT" ] || refuse "there is no commit: a release is made in a clone"
if [ "${GPUSCOPE_DIRTY:-}" = true ] && [ -z "${RELEASE_DIRTY:-}" ]; then
  refuse "there are changes that are not committed (RELEASE_DIRTY=1 takes them, and the program says that it is dirty)"
fi
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export CARGO_HOME=$PWD/target/release-home
umask 022

scripts/setup.sh release
program=${RELEASE_PROGRAM:-target/release-program/gpuscope}
if [ -z "${RELEASE_PROGRAM:-}" ]; then
  scripts/release/binary.sh "$program"
fi
scripts/release/glibc.sh "$program"
rm -rf dist
mkdir dist
stage=target/release-stage
scripts/release/stage.sh "$program" $stage
scripts/release/archives.sh $stage dist
scripts/release/packages.sh $stage dist
scripts/release/image.sh $stage dist
scripts/release/sbom.py $stage/gpuscope >"dist/gpuscope-$VERSION.spdx.json"
scripts/release/sums.sh dist
cat dist/SHA256SUMS
