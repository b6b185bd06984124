#!/bin/bash
# verify-gpu-causes.sh - whether planted reasons for which a GPU waits are named, run after run; docs/verified.md.
# usage: verify-gpu-causes.sh [GPUSCOPE [OUT]]   GPUSCOPE: the binary (target/release/gpuscope); OUT: target/verify-gpu
# Needs an NVIDIA GPU and driver, and python3 with CuPy. ROUNDS (20), CASES: see tests/gpu/verify_causes.py. LIMIT: seconds in all (590).
# result in OUT: causes-figures.txt, a line for each case: PASS or FAIL; the exit status is 0 if none failed
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
gpuscope=${1:-target/release/gpuscope} out=${2:-${OUT:-target/verify-gpu}}
. scripts/verifying.sh
limit=${LIMIT:-590}
timeout -k 10 "$limit" python3 tests/gpu/verify_causes.py "$gpuscope" "$work" "$out" "$((limit - 10))"
status=$?
cp -r "$work/logs" "$out/causes-logs" 2>/dev/null
exit "$status"
