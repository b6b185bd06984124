#!/bin/bash
# archives.sh - the program with what belongs to it as one archive, and the chart as Helm's package
# usage: VERSION=V SOURCE_DATE_EPOCH=S archives.sh STAGE FOLDER [x86_64|aarch64]
set -euo pipefail
cd "$(dirname "$0")/../.."
stage=${1:?usage: archives.sh STAGE FOLDER} to=${2:?usage: archives.sh STAGE FOLDER} processor=${3:-x86_64}
: "${VERSION:?}" "${SOURCE_DATE_EPOCH:?}"
mkdir -p "$to"

# archive FOLDER NAME TO: FOLDER under the name NAME, the same whoever makes it, and when
archive() {
  tar --create --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=u+rwX,go+rX,go-w --directory="$(dirname "$1")" --transform="s,^$(basename "$1"),$2," "$(basename "$1")" |
    gzip -9 --no-name >"$3"
}

archive "$stage" "gpuscope-$VERSION-$processor-linux-gnu" "$to/gpuscope-$VERSION-$processor-linux-gnu.tar.gz"

# as `helm package --version V --app-version V` does it, which writes the time into it
chart=$(mktemp -d); trap 'rm -rf "$chart"' EXIT
cp -RL deploy/kubernetes/chart "$chart/gpuscope"
sed -i "s/^version: .*/version: $VERSION/; s/^appVersion: .*/appVersion: \"$VERSION\"/" "$chart/gpuscope/Chart.yaml"
archive "$chart/gpuscope" gpuscope "$to/gpuscope-chart-$VERSION.tgz"
