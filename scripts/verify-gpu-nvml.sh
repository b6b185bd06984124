#!/bin/bash
# verify-gpu-nvml.sh - compare what gpuscope serve says of NVIDIA GPUs with nvidia-smi; see docs/verified.md.
# usage: verify-gpu-nvml.sh [GPUSCOPE [OUT]]   GPUSCOPE: the binary (target/release/gpuscope); OUT: target/verify-gpu
# Needs an NVIDIA GPU and driver, nvidia-smi and python3; PyTorch, if there, makes the load. No root, no network.
# result in OUT: nvml-figures.txt (PASS, FAIL and INFO lines, a total), nvml-scrape.txt (the last scrape), nvml-smi.xml
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
gpuscope=${1:-target/release/gpuscope} out=${2:-${OUT:-target/verify-gpu}}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
[ -x "$gpuscope" ] || { echo "verify-gpu-nvml.sh: no gpuscope at $gpuscope" >&2; exit 1; }
command -v nvidia-smi >/dev/null || { echo "verify-gpu-nvml.sh: no nvidia-smi; hint: install the NVIDIA driver" >&2; exit 1; }
python3 tests/gpu/verify_nvml.py "$gpuscope" "$out"
