#!/bin/bash
# verify-gpu.sh - compare what gpuscope counts with what programs on a real NVIDIA GPU made; see docs/verified.md.
# usage: verify-gpu.sh [GPUSCOPE [OUT]]      GPUSCOPE: the binary (target/release/gpuscope); OUT: target/verify-gpu
# Needs root, an NVIDIA GPU and driver, nvcc, cc, python3, and for a part of it PyTorch. Takes up to 8 minutes.
# result in OUT: figures.txt (PASS, FAIL and INFO lines), samples.txt (what the output looks like), logs.tar.gz
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
gpuscope=${1:-target/release/gpuscope} out=${2:-${OUT:-target/verify-gpu}} limit=${LIMIT:-460}
start=$SECONDS
. scripts/verifying.sh

find_nvcc() {
  local candidate
  for candidate in "${NVCC:-}" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc \
    "$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null)/cu13/bin/nvcc"; do
    [ -x "$candidate" ] && { echo "$candidate"; return; }
  done
  return 1
}

# A toolkit from pip keeps its libraries in lib and lacks the name that the linker looks for.
find_libraries() {
  local toolkit; toolkit=$(dirname "$(dirname "$nvcc")")
  libraries=(-L"$work" -L"$toolkit/lib64" -L"$toolkit/lib" -Xlinker "-rpath=$toolkit/lib64:$toolkit/lib")
  if [ ! -e "$toolkit/lib64/libcudart.so" ]; then
    ln -sf "$(find "$toolkit"/lib* -name 'libcudart.so.1*' | head -1)" "$work/libcudart.so"
  fi
}

# build NAME SOURCE FLAG…: a program that finds the toolkit's libraries by itself
build() {
  local name=$1 source=$2; shift 2
  local log=$work/logs/build-$name.log
  timeout 90 "$nvcc" -O2 "${arch[@]}" "$@" "${libraries[@]}" -cudadevrt none -o "$work/$name" "tests/gpu/$source" \
    >"$log" 2>&1 || { echo "FAIL  build of $name:"; cat "$log"; }
}

echo "gpuscope  $("$gpuscope" --version)"
echo "kernel    $(uname -r)"
echo "gpu       $(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1 | head -2 | tr '\n' ' ')"
if nvcc=$(find_nvcc); then
  nvcc=$(readlink -f "$nvcc")
  echo "nvcc      $("$nvcc" --version | tail -2 | tr '\n' ' ')"
  arch=(-arch=native); nvidia-smi >/dev/null 2>&1 || arch=()
  [ -z "${NVCC_FLAGS:-}" ] || read -ra arch <<<"$NVCC_FLAGS"
  find_libraries
  build calls-shared calls.cu -cudart shared &
  build calls-static calls.cu -cudart static &
  build calls-perthread calls.cu -cudart shared --default-stream per-thread &
  build loop-shared loop.cu -cudart shared &
  wait
  [ ! -e "$work/calls-static" ] || strip -o "$work/calls-stripped" "$work/calls-static"
else
  echo "FAIL  no nvcc: the programs of tests/gpu are not built (set NVCC)"
fi

sed -n 's/^symbol = "\(cu[A-Z][A-Za-z0-9_]*\)"$/\1/p' catalog/cuda_driver.toml | LC_ALL=C sort -u |
  awk '{ printf "FUNCTION(%d, %s)\n", NR - 1, $1 }' >"$work/names.h"
"${CC:-cc}" -O2 -Wall -shared -fPIC -I "$work" tests/gpu/counter.c -o "$work/counter.so" -ldl ||
  echo "FAIL  build of the independent counter"

timeout -k 10 $((limit - (SECONDS - start) + 20)) \
  python3 tests/gpu/verify.py "$gpuscope" "$work" "$out" $((limit - (SECONDS - start))) 2>&1 | tee "$work/logs/verify.log"
status=$?
rm -f "$work"/*.jsonl
[ -e "$out/logs.tar.gz" ] || tar -C "$work" -czf "$out/logs.tar.gz" logs
echo "verify-gpu.sh: $(head -1 "$out/figures.txt"); $((SECONDS - start)) s; $out holds figures.txt, samples.txt and logs.tar.gz"
exit "$status"
