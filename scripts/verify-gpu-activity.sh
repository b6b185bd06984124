#!/bin/bash
# verify-gpu-activity.sh - what gpuscope says that the GPU executed, against CUPTI alone and against CUDA events; docs/verified.md.
# usage: verify-gpu-activity.sh [GPUSCOPE [OUT]]   GPUSCOPE: the binary (target/release/gpuscope); OUT: target/verify-gpu
# Needs an NVIDIA GPU and driver, a CUDA toolkit with CUPTI, cc, and python3 with PyTorch; root for the parts kernel and user.
# VERIFY_PARTS: see tests/gpu/verify_gpu.py. LIMIT: seconds in all (400).
# result in OUT: activity-figures.txt, a line for each check: PASS or FAIL; the exit status is 0 if none failed
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
gpuscope=${1:-target/release/gpuscope} out=${2:-${OUT:-target/verify-gpu}}
. scripts/verifying.sh
cuda=$(readlink -f "${CUDA:-/usr/local/cuda}")
cupti=$(dirname "$(find "$cuda/" -name 'libcupti.so.1*' | head -1)")
"${CC:-cc}" -O2 -Wall -shared -fPIC -I "$cuda/include" -I "$cupti/../include" -o "$work/cupti_records.so" tests/gpu/cupti_records.c \
  -L"$cupti" -lcupti -Wl,-rpath,"$cupti" || echo "FAIL  build of cupti_records.c"
limit=${LIMIT:-400}
timeout -k 10 "$limit" python3 tests/gpu/verify_gpu.py "$gpuscope" "$work" "$out" "$((limit - 10))"
status=$?
cp -r "$work/logs" "$out/activity-logs" 2>/dev/null
exit "$status"
