#!/bin/bash
# verify-gpu-serve.sh - compare gpuscope serve beside a PyTorch training with gpuscope run and nvidia-smi; docs/verified.md.
# usage: verify-gpu-serve.sh [GPUSCOPE [OUT]]   GPUSCOPE: the binary (target/release/gpuscope); OUT: target/verify-gpu
# Needs root, an NVIDIA GPU and driver, nvidia-smi, and python3 with PyTorch. LIMIT: seconds for all of it (300).
# result in OUT: serve-figures.txt (PASS, FAIL and INFO lines), serve-scrape.txt
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
gpuscope=${1:-target/release/gpuscope} out=${2:-${OUT:-target/verify-gpu}} limit=${LIMIT:-300}
. scripts/verifying.sh
timeout -k 10 "$limit" python3 tests/gpu/verify_serve.py "$gpuscope" "$work" "$out" "$((limit - 20))"
