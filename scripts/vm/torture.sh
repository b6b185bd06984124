#!/bin/bash
# torture.sh - tests/torture in guests: programs are built here, since a guest has no compiler.
# usage: torture.sh TEST_PROGRAM [FILTER…]     FILTER: part of a test's name. KERNELS: see matrix.sh
# GPUSCOPE_TORTURE_PROGRAM: the gpuscope that is tried; without it an optimised one is built.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -ge 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
program=$1; shift
scripts/setup.sh vm
if [ -z "${GPUSCOPE_TORTURE_PROGRAM:-}" ]; then scripts/build.sh; fi
files=$(mktemp -d); trap 'rm -rf "$files"' EXIT
mkdir "$files/subjects"
GPUSCOPE_TORTURE_SUBJECTS=$files/subjects "$program" --exact subject::every_program_does_the_same_each_time_alone >/dev/null
rm -f "$files"/subjects/*.{c,cpp,h,go}
strip --strip-debug -o "$files/torture" "$program"
strip --strip-debug -o "$files/gpuscope" "${GPUSCOPE_TORTURE_PROGRAM:-target/release/gpuscope}"
gcc -O1 -static -o "$files/patched" tests/vm/patched.c
cp tests/torture/{alone,inside} "$files/"
echo "$*" >"$files/filters"
# tools that do more than busybox's of these names; the shell is one that maps libraries
for tool in setpriv unshare env sh; do cp -L "$(command -v $tool)" "$files/"; done
LIMIT=${LIMIT:-7200} MEM=${MEM:-3072} scripts/vm/matrix.sh scripts/vm/torture-guest.sh scripts/vm/refused.sh scripts/vm/summary.sh "$files"/*
