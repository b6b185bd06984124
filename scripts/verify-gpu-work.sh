#!/bin/bash
# verify-gpu-work.sh - compare what gpuscope says of kernels, copies and idle time with CUPTI and the programs themselves.
# usage: verify-gpu-work.sh [GPUSCOPE [OUT]]   GPUSCOPE: the binary (target/release/gpuscope); OUT: target/verify-gpu
# Needs root, an NVIDIA GPU and driver, a CUDA toolkit with CUPTI, cc, and python3 with PyTorch. Takes up to 8 minutes.
# VERIFY_PARTS: some of "transformer late copies bandwidth idle text" (all). CUDA: the toolkit (/usr/local/cuda).
# result in OUT: work-figures.txt (PASS, FAIL and INFO lines), work-samples.txt, work-logs.tar.gz (CUPTI's records too)
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
gpuscope=${1:-target/release/gpuscope} out=${2:-${OUT:-target/verify-gpu}} limit=${LIMIT:-480}
start=$SECONDS cuda=$(readlink -f "${CUDA:-/usr/local/cuda}")
. scripts/verifying.sh

# build PROGRAM FLAG…
build() {
  local name=$1; shift
  timeout 90 "$cuda/bin/nvcc" -O2 -std=c++17 -arch=native -cudadevrt none -cudart static -o "$work/$name" \
    "tests/gpu/$name.cu" "$@" || echo "FAIL  build of $name.cu"
}

build idle & build bandwidth & build copies -L"$cuda/lib64/stubs" -lcuda &
cupti=$(dirname "$(find "$cuda/" -name 'libcupti.so.1*' | head -1)")
"${CC:-cc}" -O2 -Wall -shared -fPIC -I "$cuda/include" -o "$work/cupti_records.so" tests/gpu/cupti_records.c \
  -L"$cupti" -lcupti -Wl,-rpath,"$cupti" || echo "FAIL  build of cupti_records.c"
sed -n 's/^symbol = "\(cu[A-Z][A-Za-z0-9_]*\)"$/\1/p' catalog/cuda_driver.toml | LC_ALL=C sort -u |
  awk '{ printf "FUNCTION(%d, %s)\n", NR - 1, $1 }' >"$work/names.h"
"${CC:-cc}" -O2 -Wall -shared -fPIC -I "$work" tests/gpu/counter.c -o "$work/counter.so" -ldl ||
  echo "FAIL  build of the independent counter"
wait

timeout -k 10 $((limit - (SECONDS - start) + 20)) \
  python3 tests/gpu/verify_work.py "$gpuscope" "$work" "$out" $((limit - (SECONDS - start)))
status=$?
echo "verify-gpu-work.sh: $(head -1 "$out/work-figures.txt"); $((SECONDS - start)) s; $out holds work-figures.txt"
exit "$status"
