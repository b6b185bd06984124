#!/bin/bash
# verify-gpu-memory.sh - compare gpuscope leaks with what programs on a real NVIDIA GPU hold; see docs/verified.md.
# usage: verify-gpu-memory.sh [GPUSCOPE [OUT]]   GPUSCOPE: the binary (target/release/gpuscope); OUT: target/verify-gpu
# Needs root, an NVIDIA GPU and driver, nvcc, cc, and python3 with PyTorch.
# result in OUT: memory-figures.txt (PASS, FAIL and INFO lines), memory-samples.txt (what the output looks like)
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
gpuscope=${1:-target/release/gpuscope} out=${2:-${OUT:-target/verify-gpu}}
. scripts/verifying.sh
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
timeout 90 "$nvcc" -O2 -cudadevrt none -cudart static -o "$work/memory" tests/gpu/memory.cu ||
  echo "FAIL  build of memory.cu: set NVCC"
"${CC:-cc}" -O2 -o "$work/vmm" sim/gpusim/c/driver.c -ldl || echo "FAIL  build of the driver program"
python3 tests/gpu/verify_memory.py "$gpuscope" "$work" "$out"
