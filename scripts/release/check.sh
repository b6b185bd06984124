#!/bin/bash
# check.sh - looks at what a release hands out: sums, signature, size, glibc, image, bill of materials, chart. Installs nothing.
# usage: check.sh FOLDER VERSION         RELEASE_PUBLIC_KEY=FILE: the signature is verified, too (ssh or minisign)
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(cd "${1:?usage: check.sh FOLDER VERSION}" && pwd) version=${2:?usage: check.sh FOLDER VERSION}
most_program=19000000 most_image=12000000
failed=0
fail() { echo "check.sh: $*" >&2; failed=1; }
scratch=$(mktemp -d); trap 'rm -rf "$scratch"' EXIT

(cd "$folder" && sha256sum --quiet --strict --check SHA256SUMS) || fail "SHA256SUMS does not hold"
unlisted=$(cd "$folder" && find . -maxdepth 1 -type f ! -name 'SHA256SUMS*' -printf '%P\n' | grep -vxFf <(awk '{print $2}' SHA256SUMS) || true)
[ -z "$unlisted" ] || fail "not in SHA256SUMS: $unlisted"

public=${RELEASE_PUBLIC_KEY:-}
if [ -z "$public" ]; then
  echo "NOT CHECKED: the signature: no RELEASE_PUBLIC_KEY"
elif [ -e "$folder/SHA256SUMS.sig" ]; then
  echo "release $(cat "$public")" >"$scratch/signers"
  ssh-keygen -q -Y verify -f "$scratch/signers" -I release -n file -s "$folder/SHA256SUMS.sig" <"$folder/SHA256SUMS" ||
    fail "the signature does not hold"
else
  minisign -V -q -p "$public" -m "$folder/SHA256SUMS" || fail "the signature does not hold"
fi

one() { # PROCESSOR, and as Debian calls it
  local program=$scratch/gpuscope-$version-$1-linux-gnu/gpuscope size said image layer archive=$folder/gpuscope-$version-oci-$2.tar
  tar -xzf "$folder/gpuscope-$version-$1-linux-gnu.tar.gz" -C "$scratch"
  scripts/release/glibc.sh "$program" || failed=1
  size=$(stat -c %s "$program")
  echo "program for $1: $size bytes"
  [ "$size" -le $most_program ] || fail "the program for $1 is larger than $most_program bytes"
  if [ "$1" = "$(uname -m)" ]; then
    said=$("$program" --version)
    [[ $said == "gpuscope $version ("* ]] || fail "the program says that it is $said"
  else
    echo "NOT CHECKED: what the program for $1 says: this machine is a $(uname -m)"
  fi
  image=$(tar -xOf "$archive" manifest.json | jq -r '.[0].Layers[]' |
    while read -r layer; do tar -xOf "$archive" "$layer" | wc -c; done | paste -sd+ | bc)
  echo "image for $1: $image bytes, compressed"
  [ "$image" -le $most_image ] || fail "the image for $1 is larger than $most_image bytes"
  for file in "gpuscope_${version}_$2.deb" "gpuscope-$version-1.$1.rpm"; do
    [ -s "$folder/$file" ] || fail "there is no $file"
  done
  materials "$folder/gpuscope-$version-$1.spdx.json" || fail "the bill of materials for $1 does not hold"
}
materials() {
  jq -e --arg version "$version" '.spdxVersion == "SPDX-2.3" and (.packages | length > 100)
    and any(.packages[]; .name == "gpuscope" and .versionInfo == $version)
    and ([.relationships[] | .spdxElementId, .relatedSpdxElement] - [.packages[].SPDXID] - ["SPDXRef-DOCUMENT"] == [])' \
    "$1" >/dev/null
}
one x86_64 amd64
if [ -e "$folder/gpuscope-$version-aarch64-linux-gnu.tar.gz" ]; then one aarch64 arm64; else echo "NOT CHECKED: aarch64: not made"; fi

helm=target/tools/bin/helm
[ -x $helm ] || scripts/fetch-tools.sh
$helm template gpuscope "$folder/gpuscope-chart-$version.tgz" 2>/dev/null | grep -qF "image: \"ghcr.io/gpuscope/gpuscope:$version\"" ||
  fail "the chart does not ask for this version's image"

[ $failed -eq 0 ] && echo "check.sh: ok"
exit $failed
