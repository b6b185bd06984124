#!/bin/bash
# release.sh - everything that a release hands out, in dist/: docs/release.md
# usage: release.sh VERSION
# RELEASE_KEY=KEY signs it (scripts/release/sums.sh). RELEASE_DIRTY=1 also takes sources that are not committed.
# RELEASE_PROCESSORS="x86_64 aarch64": for which; RELEASE_PROGRAM=FILE packs that program, for x86_64 alone. SOURCE_DATE_EPOCH: the commit's time unless said.
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
processors=${RELEASE_PROCESSORS:-x86_64 aarch64}
[ -z "${RELEASE_PROGRAM:-}" ] || processors=x86_64
[[ " $processors " == *" x86_64 "* ]] || refuse "RELEASE_PROCESSORS lacks x86_64, whose program writes the manual page"
program_of() { echo "${RELEASE_PROGRAM:-target/release-program/$1/gpuscope}"; }
for processor in $processors; do
  program=$(program_of "$processor")
  [ -n "${RELEASE_PROGRAM:-}" ] || scripts/release/binary.sh "$program" "$processor"
  scripts/release/glibc.sh "$program"
done
rm -rf dist
mkdir dist
for processor in $processors; do
  stage=target/release-stage/$processor
  scripts/release/stage.sh "$(program_of "$processor")" "$stage" "$(program_of x86_64)"
  scripts/release/archives.sh "$stage" dist "$processor"
  scripts/release/packages.sh "$stage" dist "$processor"
  scripts/release/image.sh "$stage" dist "$processor"
  rustc=rustc
  [ "$processor" = x86_64 ] || rustc=$(scripts/release/rust.sh)
  GPUSCOPE_RUSTC=$("$rustc" --version | cut -d' ' -f2) scripts/release/sbom.py "$stage/gpuscope" "$processor" >"dist/gpuscope-$VERSION-$processor.spdx.json"
done
scripts/release/sums.sh dist
cat dist/SHA256SUMS
