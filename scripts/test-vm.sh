#!/bin/bash
# test-vm.sh - build gpuscope and the simulated CUDA, and compare counts on several kernels in QEMU.
# KERNELS="5.10 6.1 6.12 newest": which Debian kernels. DRIVER_KERNELS=newest: of which the stand-in for NVIDIA's driver is
# built and traced, too; each takes one to three minutes more.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh build
scripts/setup.sh vm
scripts/build.sh
sim/build.sh
export LIMIT=${LIMIT:-900}
scripts/vm/matrix.sh scripts/vm/guest.sh target/release/gpuscope scripts/vm/refused.sh scripts/vm/summary.sh sim/out/gpusim* sim/out/lib*.so.*
programs=$(mktemp -d); trap 'rm -rf "$programs"' EXIT
gcc -O1 -static -o "$programs/requests" tests/vm/nvidia/requests.c
gcc -O1 -o "$programs/asker" tests/vm/driver/asker.c
for kernel in ${DRIVER_KERNELS:-newest}; do
  module=$(tests/vm/nvidia/build.sh "$kernel")
  KERNELS=$kernel scripts/vm/matrix.sh scripts/vm/kernel-guest.sh target/release/gpuscope "$programs/requests" tests/vm/nvidia/hooks.toml "$module"
  KERNELS=$kernel scripts/vm/matrix.sh scripts/vm/driver-guest.sh target/release/gpuscope "$programs/asker" tests/vm/driver/asker.toml "$module"
done

# Hostile programs, too, where processors are not emulated: minutes there, a quarter of an hour or more a kernel else.
if [ "$(scripts/vm/accelerator.sh newest)" = kvm ]; then
  KERNELS="6.1 newest" scripts/vm/torture.sh "$(scripts/vm/torture-program.sh)" callbacks:: programs:: rights::
else
  echo "not run: tests/torture in guests, which are emulated here (TORTURE_KERNELS=… scripts/torture.sh short)"
fi
