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
export KERNELS=${KERNELS:-5.10 6.1 6.12 newest}
read -ra wanted <<<"$KERNELS ${DRIVER_KERNELS:-newest}"
scripts/vm/kernels.sh "${wanted[@]}"
# found out once, and not while guests are at work
accelerator=$(scripts/vm/accelerator.sh "${wanted[0]}")
programs=$(mktemp -d); trap 'rm -rf "$programs"' EXIT
gcc -O1 -static -o "$programs/requests" tests/vm/nvidia/requests.c
gcc -O1 -o "$programs/asker" tests/vm/driver/asker.c
# guest KERNELS SCRIPT FILE…
guest() { KERNELS=$1 scripts/vm/matrix.sh "scripts/vm/$2" target/release/gpuscope "${@:3}" || touch "$programs/failed"; }
driver() {
  local kernel module
  for kernel in ${DRIVER_KERNELS:-newest}; do
    module=$(tests/vm/nvidia/build.sh "$kernel")
    guest "$kernel" kernel-guest.sh "$programs/requests" tests/vm/nvidia/hooks.toml "$module"
    guest "$kernel" driver-guest.sh "$programs/asker" tests/vm/driver/asker.toml "$module"
  done
}
# A guest waits more than it works, for its kernel to let go of probes: several beside each other.
driver >"$programs/said" 2>&1 &
TOGETHER=${TOGETHER:-$(nproc)} guest "$KERNELS" guest.sh scripts/vm/refused.sh scripts/vm/summary.sh sim/out/gpusim* sim/out/lib*.so.*
wait $! || touch "$programs/failed"
cat "$programs/said"
[ ! -e "$programs/failed" ] || exit 1

# Hostile programs, too, where processors are not emulated: minutes there, a quarter of an hour or more a kernel else.
if [ "$accelerator" = kvm ]; then
  KERNELS="6.1 newest" scripts/vm/torture.sh "$(scripts/vm/torture-program.sh)" callbacks:: programs:: rights::
else
  echo "not run: tests/torture in guests, which are emulated here (TORTURE_KERNELS=… scripts/torture.sh short)"
fi
