#!/bin/bash
# fuzz.sh - run every fuzz target for a while, one at a time, from the inputs in this repository.
# usage: fuzz.sh [SECONDS [TARGET…]]     default: 60 seconds each, all targets
# What it finds lies in fuzz/out: table.txt, and artifacts.tar.gz, inputs that break a target.
# `KEEP=1` puts the corpora, grown and made small again, in place of those in fuzz/corpus.
# Exit status 1 when an input was found that breaks a target.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}; shift || true
program=$(scripts/fuzz-build.sh)
mkdir -p fuzz/out
scripts/fuzz-seeds.sh fuzz/out/seeds.tar.gz
mapfile -t targets < <("$program" | cut -d' ' -f1)
[ $# -eq 0 ] || targets=("$@")

failed=0
TARGETS="${targets[*]}" scripts/fuzz-campaign.sh "$program" $((seconds * ${#targets[@]})) 1 fuzz/out fuzz/out/seeds.tar.gz || failed=1
[ -z "${KEEP:-}" ] || scripts/fuzz-keep.sh fuzz/out/corpus.tar.gz
exit $failed
