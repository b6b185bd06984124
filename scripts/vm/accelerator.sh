#!/bin/bash
# accelerator.sh - prints what QEMU boots kernels with here: kvm where that works, else the emulator. Found out once a boot.
# usage: accelerator.sh KERNEL     a directory of $GPUSCOPE_VM/k
# Emulated processors take turns: beside one another one may go on with code that another has patched; then a probe is missed, or
# the guest's own kernel dies.
# /dev/kvm may be there and run no ordinary kernel. So one is booted that finds no root: its panic is the proof.
set -euo pipefail
VM=${GPUSCOPE_VM:-$HOME/.cache/gpuscope-vm}
known=$VM/accelerator.$(cat /proc/sys/kernel/random/boot_id)
[ ! -s "$known" ] || exec cat "$known"
# panics ACCELERATOR
panics() {
  local said
  said=$(timeout -k 5 20 qemu-system-x86_64 -accel "$1" -cpu max -m 256 -kernel "$VM/k/$kernel/vmlinuz" \
    -append 'console=ttyS0 panic=-1' -nic none -no-reboot -display none -monitor none -serial stdio </dev/null 2>&1 | tr -d '\0') || true
  [[ $said == *"Unable to mount root"* ]]
}
kernel=$1 found=tcg,thread=single
if [ -w /dev/kvm ] && panics kvm; then found=kvm; fi
rm -f "$VM"/accelerator.*
echo "$found" | tee "$known"
