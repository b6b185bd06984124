#!/bin/bash
# verify-gpu-findings.sh - compare what findings predict with what their cures save, on a real GPU.
# usage: verify-gpu-findings.sh [GPUSCOPE [OUT]]   GPUSCOPE: the binary (target/release/gpuscope); OUT: target/verify-gpu
# Needs root, an NVIDIA GPU and driver, and python3 with PyTorch. Takes up to 6 minutes.
# result in OUT: findings-figures.txt (PASS, FAIL and INFO lines), findings-samples.txt, report-*.{txt,html}, recordings, logs
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
gpuscope=${1:-target/release/gpuscope} out=${2:-${OUT:-target/verify-gpu}} limit=${LIMIT:-420}
start=$SECONDS
. scripts/verifying.sh

timeout -k 10 $((limit + 20)) python3 tests/gpu/verify_findings.py "$gpuscope" "$work" "$out" "$limit"
status=$?
echo "verify-gpu-findings.sh: $(head -1 "$out/findings-figures.txt"); $((SECONDS - start)) s; see $out"
exit "$status"
