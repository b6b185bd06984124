#!/bin/bash
# same.sh - makes a release of the last commit twice, in two clones, and compares every file by its sum: two full builds
# usage: same.sh FOLDER        where the clones are made: FOLDER/one, FOLDER/another/place
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:?usage: same.sh FOLDER}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
for place in one another/place; do
  [ -d "$folder/$place" ] || git clone --quiet . "$folder/$place"
  git -C "$folder/$place" fetch --quiet "$PWD" HEAD
  git -C "$folder/$place" checkout --quiet --detach "$(git rev-parse HEAD)"
  "$folder/$place/scripts/release.sh" "$version"
done
diff "$folder/one/dist/SHA256SUMS" "$folder/another/place/dist/SHA256SUMS" && echo "same.sh: the same, twice"
