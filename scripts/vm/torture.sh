#!/bin/bash
# torture.sh - tests/torture in guests: programs are built here, since a guest has no compiler.
# usage: torture.sh TEST_PROGRAM [FILTER…]     FILTER: part of a test's name. KERNELS: see matrix.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -ge 1 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
program=$1; shift
scripts/setup.sh vm
cargo build --release --locked
subjects=$(mktemp -d); trap 'rm -rf "$subjects"' EXIT
GPUSCOPE_TORTURE_SUBJECTS=$subjects "$program" --exact subject::every_program_does_the_same_each_time_alone >/dev/null
rm -f "$subjects"/*.c "$subjects"/*.h
strip --strip-debug -o "$subjects/torture" "$program"
strip --strip-debug -o "$subjects/gpuscope" target/release/gpuscope
echo "$*" >"$subjects/filters"
# tools that do more than busybox's of these names; the shell is one that maps libraries
for tool in setpriv unshare env sh; do cp -L "$(command -v $tool)" "$subjects/"; done
LIMIT=${LIMIT:-7200} MEM=${MEM:-2048} scripts/vm/matrix.sh scripts/vm/torture-guest.sh scripts/vm/refused.sh "$subjects"/*
