#!/bin/bash
# torture.sh - tests/torture in guests: programs are built here, since a guest has no compiler.
# usage: torture.sh TEST_PROGRAM     KERNELS: see matrix.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/setup.sh vm
cargo build --release --locked
subjects=$(mktemp -d); trap 'rm -rf "$subjects"' EXIT
GPUSCOPE_TORTURE_SUBJECTS=$subjects "$1" --exact subject::every_program_does_the_same_each_time_alone >/dev/null
cp "$1" "$subjects/torture"
rm -f "$subjects"/*.c "$subjects"/*.h
LIMIT=${LIMIT:-1800} scripts/vm/matrix.sh scripts/vm/torture-guest.sh target/release/gpuscope "$subjects"/*
