#!/bin/bash
# verify-gpu-hooks.sh - what examples/hooks/nccl.toml and driver-time.toml show on real GPUs; docs/verified.md.
# usage: verify-gpu-hooks.sh [GPUSCOPE [OUT]]   GPUSCOPE: the binary (target/release/gpuscope); OUT: target/verify-gpu
# Needs root, NVIDIA GPUs (one will do), and python3 with PyTorch. Takes a minute.
# result in OUT: hooks-figures.txt (PASS, FAIL and INFO lines), hooks-samples.txt
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
gpuscope=${1:-target/release/gpuscope} out=${2:-${OUT:-target/verify-gpu}} limit=${LIMIT:-200}
. scripts/verifying.sh
timeout -k 10 "$limit" python3 tests/gpu/verify_hooks.py "$gpuscope" "$work" "$out" "$((limit - 20))"
