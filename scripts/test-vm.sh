#!/bin/bash
# test-vm.sh - build gpuscope and the simulated CUDA, and compare counts on several kernels in QEMU.
# KERNELS="6.1 6.12 newest": which Debian kernels
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh build
scripts/setup.sh vm
cargo build --release --locked
sim/build.sh
export LIMIT=${LIMIT:-300}
scripts/vm/matrix.sh scripts/vm/guest.sh target/release/gpuscope sim/out/gpusim* sim/out/lib*.so.*
