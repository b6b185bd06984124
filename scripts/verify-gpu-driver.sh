#!/bin/bash
# verify-gpu-driver.sh - compare what --layer kernel says on a real GPU with what programs ask of the driver; docs/verified.md.
# usage: verify-gpu-driver.sh [GPUSCOPE [OUT]]   GPUSCOPE: the binary (target/release/gpuscope); OUT: target/verify-gpu
# Needs root, an NVIDIA GPU and driver, nvidia-smi, gcc, and python3 with PyTorch. LIMIT: seconds for all of it (300).
# result in OUT: driver-figures.txt (PASS, FAIL and INFO lines), driver-samples.txt
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
gpuscope=${1:-target/release/gpuscope} out=${2:-${OUT:-target/verify-gpu}} limit=${LIMIT:-300}
. scripts/verifying.sh
gcc -shared -fPIC -O1 -o "$work/ioctls.so" tests/gpu/ioctls.c -ldl -lpthread || exit 1
timeout -k 10 "$limit" python3 tests/gpu/verify_driver.py "$gpuscope" "$work" "$out" "$((limit - 20))"
