#!/bin/bash
# catalog.sh - write catalog/ from tables/; with --check only say whether it is what they give.
# usage: catalog.sh [--check]      exit status 1: it is not
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in '' | --check) ;; *) sed -n '3s/^# //p' "$0" >&2; exit 2 ;; esac
made=$(mktemp -d); trap 'rm -rf "$made"' EXIT
python3 scripts/generate_catalog.py tables/cuda "$made"
python3 scripts/generate_nvidia.py tables/nvidia "$made/nvidia"
if [ "${1:-}" = --check ]; then
  diff -r "$made" catalog >&2 && exit
  echo "catalog.sh: catalog/ is not what tables/ give; hint: make catalog" >&2
  exit 1
fi
cp -r "$made/." catalog
