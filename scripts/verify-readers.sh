#!/bin/bash
# verify-readers.sh - have ClickHouse and Spark answer the examples of docs/export.md; see docs/verified.md.
# usage: verify-readers.sh
# Fetches chdb's engine and pyspark from PyPI into target/tools/engines: 640 MB to load,
# 1 GB on disk. Needs pip, Python 3.11 or newer, and Java 17 or newer. No root.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=target/tools
wheels=(chdb-core==26.9.0 pyspark==4.3.0 py4j==0.10.9.9)

command -v java >/dev/null ||
  { echo "verify-readers.sh: no java; hint: Debian's package is default-jre-headless" >&2; exit 1; }
if [ "$(cat "$tools/engines/versions" 2>/dev/null)" != "${wheels[*]}" ]; then
  echo "verify-readers.sh: fetching ClickHouse and Spark"
  mkdir -p "$tools"
  scratch=$(mktemp -d "$tools/fetch.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  # the engine alone: its wheel wants pandas for what is not used here
  python3 -m pip --quiet --disable-pip-version-check install --no-deps --target "$scratch/engines" "${wheels[@]}"
  echo "${wheels[*]}" >"$scratch/engines/versions"
  rm -rf "$tools/engines"
  mv "$scratch/engines" "$tools/engines"
fi
cargo test --locked --test real -- --ignored --test-threads=1 engines::
