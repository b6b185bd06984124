#!/bin/bash
# fuzz-keep.sh - take the corpora of a campaign into the repository, one archive for each target that it has.
# Inputs over 4 KiB stay out: what they reach, smaller ones will. usage: fuzz-keep.sh CORPUS.tar.gz
set -euo pipefail
corpus=$(realpath "${1:?usage: fuzz-keep.sh CORPUS.tar.gz}")
cd "$(dirname "$0")/../fuzz"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
tar -xzf "$corpus" -C "$work"
find "$work" -type f -size +4k -delete
mkdir -p corpus
for target in "$work"/*/; do
  name=$(basename "$target")
  [ -n "$(ls "$target")" ] || continue
  # short names: thousands of digests would take more room than what they are of
  number=0
  for input in "$target"*; do mv "$input" "$target$((number += 1))"; done
  tar --sort=name --mtime=@0 --owner=0 --group=0 -C "$work" -cf - "$name" | gzip -9n >"corpus/$name.tar.gz"
done
