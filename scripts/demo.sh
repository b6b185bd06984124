#!/bin/bash
# demo.sh - build gpuscope and the simulated CUDA, and trace a training loop of 5 steps.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/privileged.sh
scripts/setup.sh build
cargo build --release --locked
sim/build.sh
gpuscope=target/release/gpuscope
if ! command -v sudo >/dev/null && [ "$(id -u)" -ne 0 ]; then
  echo "demo.sh: tracing needs root; run as root, or install sudo" >&2; exit 1
fi
if ! report=$(as_root $gpuscope doctor 2>&1); then
  printf '%s\n' "$report" "" "demo.sh: this machine cannot run BPF programs; see above for the cure" >&2; exit 1
fi
echo "\$ gpuscope run -- sim/out/gpusim train 5"
as_root $gpuscope run -- sim/out/gpusim train 5
