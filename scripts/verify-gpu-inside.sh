#!/bin/bash
# verify-gpu-inside.sh - the comparisons of the other scripts with the engine inside, as root and as a user without any right, and
# what recording costs; docs/verified.md.
# usage: verify-gpu-inside.sh [GPUSCOPE [OUT]]   GPUSCOPE: the binary (target/release/gpuscope); OUT: target/verify-gpu
# Needs root (to become another user), an NVIDIA GPU and driver, a CUDA toolkit with CUPTI, cc, and python3 with PyTorch, JAX, CuPy.
# VERIFY_INSIDE: some of "root user work memory time" (all). LIMIT: seconds for each (300).
# result in OUT: root/, user/ (figures.txt), work/, memory/, inside-figures.txt
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
gpuscope=${1:-target/release/gpuscope} out=${2:-${OUT:-target/verify-gpu}}
. scripts/verifying.sh
export LIMIT=${LIMIT:-300}
status=0
inside() { local part=$1; shift; mkdir -p "$out/$part"; env GPUSCOPE_ENGINE=inside OUT="$out/$part" "$@" "$gpuscope" "$out/$part" || status=1; }

# The same tree and binary where a user without any right may read them, and a folder that is theirs.
user() {
  local there=$work/there
  chmod 755 "$work" && mkdir -p "$there/out" "$there/home" "$there/tmp" &&
    cp -r catalog tests scripts "$there/" && cp "$gpuscope" "$there/gpuscope" || return 1
  chown -R 65534:65534 "$there"
  (cd "$there" && env GPUSCOPE_ENGINE=inside HOME="$there/home" TMPDIR="$there/tmp" VERIFY_PARTS="${VERIFY_PARTS:-doctor calls torch others}" \
    setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all scripts/verify-gpu.sh "$there/gpuscope" "$there/out") || status=1
  cp -r "$there/out" "$out/user"
}

time_it() {
  local cuda cupti; cuda=$(readlink -f "${CUDA:-/usr/local/cuda}")
  cupti=$(dirname "$(find "$cuda/" -name 'libcupti.so.1*' | head -1)")
  "${CC:-cc}" -O2 -Wall -shared -fPIC -I "$cuda/include" -o "$work/cupti_records.so" tests/gpu/cupti_records.c \
    -L"$cupti" -lcupti -Wl,-rpath,"$cupti" || echo "FAIL  build of cupti_records.c"
  timeout -k 10 "$LIMIT" python3 tests/gpu/verify_inside.py "$gpuscope" "$work" "$out" "$((LIMIT - 10))" || status=1
}

for part in ${VERIFY_INSIDE:-root user work memory time}; do
  case $part in
    root) inside root scripts/verify-gpu.sh ;;
    user) user ;;
    work) inside work scripts/verify-gpu-work.sh ;;
    memory) inside memory scripts/verify-gpu-memory.sh ;;
    time) time_it ;;
    *) echo "verify-gpu-inside.sh: no part $part" >&2; exit 2 ;;
  esac
done
exit "$status"
