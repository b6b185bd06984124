#!/bin/bash
# boot.sh - boot a kernel in QEMU with an in-memory root, run one script in it as root, return its exit status.
# usage: boot.sh KERNEL SCRIPT [FILE|DIR…]    KERNEL: a directory of $GPUSCOPE_VM/k (see kernels.sh)
# FILEs land in /t of the guest with the shared libraries they need. Complaints of the kernel come back as
# VM-DMESG lines, the status as VM-RC. 99: the guest died; 98: it ran out of time.
# Environment: MEM (MiB), CPUS, ACCEL, LIMIT (s), APPEND (kernel arguments), MODS (modules to load), ARCH (amd64, arm64).
# FILEs for arm64 find their libraries in $LIBRARIES, by default those of Debian's cross compiler.
# Without KVM (accelerator.sh) processors are emulated: enough for right or wrong, it says nothing about speed.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,8s/^# //p' "$0" >&2; exit 2; }
VM=${GPUSCOPE_VM:-$HOME/.cache/gpuscope-vm} ARCH=${ARCH:-amd64}; kernel=$1 S=$2; shift 2
case $ARCH in
  amd64) K=$VM/k/$kernel busybox=$(command -v busybox) ;;
  arm64) K=$VM/k/arm64/$kernel busybox=$VM/k/arm64/busybox ;;
  *) echo "boot.sh: ARCH=$ARCH: amd64 or arm64" >&2; exit 2 ;;
esac
[ -s "$K/vmlinuz" ] || { echo "boot.sh: no $K/vmlinuz" >&2; exit 2; }
R=$(mktemp -d -p "$VM" root.XXXX); trap 'rm -rf "$R" "$R.gz" "$R.log"' EXIT
chmod 755 "$R"; mkdir -p "$R"/{bin,proc,sys,dev,tmp,t,etc,run,var,m,lib64}
cp "$busybox" "$R/bin/busybox"
cp "$S" "$R/t/run.sh"; [ $# -eq 0 ] || cp -rL "$@" "$R/t/"

# Shared libraries go where the loader looks for them; those that lie in /t are there already.
foreign() { # what files of another processor need, and what that needs
  local wanted=1 known=0 libraries=${LIBRARIES:-/usr/aarch64-linux-gnu/lib}
  while [ $wanted -ne $known ]; do
    known=$wanted
    { find "$R/t" "$R/lib" -type f -exec readelf -dl {} + 2>/dev/null || true; } |
      sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p; s/.*interpreter: .*\/\([^/]*\)\]/\1/p' | sort -u |
      while read -r name; do
        [ -e "$R/t/$name" ] || [ ! -e "$libraries/$name" ] || cp -L "$libraries/$name" "$R/lib/"
      done
    wanted=$(find "$R/lib" -type f | wc -l)
  done
}
if [ "$ARCH" = arm64 ]; then mkdir -p "$R/lib"; foreign; else find "$R/t" -type f -exec ldd {} + 2>/dev/null | grep -o '/[^ ]*' | grep -v -e "^$R" -e ':$' | sort -u |
  while read -r library; do mkdir -p "$R$(dirname "$library")"; cp -L "$library" "$R$library"; done || true; fi
for m in ${MODS:-}; do find "$K/modules" -name "$m.ko*" -exec cp {} "$R/m/" \;; done
! ls "$R"/m/*.xz >/dev/null 2>&1 || unxz -q "$R"/m/*.xz

printf '%s\n' 'root:x:0:0::/:/bin/sh' 'user:x:1000:1000::/tmp:/bin/sh' >"$R/etc/passwd"
cat >"$R/init" <<'I'
#!/bin/busybox sh
/bin/busybox --install -s /bin; export PATH=/bin:/t
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev
mount -t tracefs t /sys/kernel/tracing; mount -t debugfs d /sys/kernel/debug
mount -t bpf b /sys/fs/bpf; mount -t tmpfs t /tmp
mkdir -p /sys/fs/cgroup; mount -t cgroup2 c /sys/fs/cgroup
ip link set lo up; for m in /m/*.ko; do [ -e $m ] && insmod $m; done
echo "VM-UP $(cut -d' ' -f1 /proc/uptime) $(uname -r)"
cd /t; sh ./run.sh; rc=$?
dmesg | grep -E 'BUG:|WARNING:|Oops|general protection|rcu.*stall|hung task|KASAN|segfault|traps:' | sed 's/^/VM-DMESG /'
echo "VM-RC $rc $(cut -d' ' -f1 /proc/uptime)"; poweroff -f
I
chmod +x "$R/init"; (cd "$R" && find . | cpio -o -H newc --quiet | gzip -1) >"$R.gz"

# no_timer_check: an emulated timer may fail the kernel's own check under load. softlockup_panic: a processor that does not come
# back for a minute ends the guest with a backtrace, where it would be silent until LIMIT.
case $ARCH in
  amd64) machine=(qemu-system-x86_64 -cpu "${CPU:-max}") console=ttyS0 ;;
  # checks of addresses with a cipher of QEMU's own: that of the processor takes emulation twice the time
  arm64) machine=(qemu-system-aarch64 -machine virt -cpu "${CPU:-max,pauth-impdef=on}") console=ttyAMA0 ;;
esac
arguments="console=$console quiet loglevel=${LOGLEVEL:-1} panic=-1 oops=panic softlockup_panic=1 watchdog_thresh=30"
arguments+=" mitigations=off no_timer_check ${APPEND:-}"
[ "$ARCH" = amd64 ] || ACCEL=${ACCEL:-tcg}
accelerator=${ACCEL:-$("$(dirname "$(readlink -f "$0")")/accelerator.sh" "$kernel")}
set +e
timeout -k 5 "${LIMIT:-240}" "${machine[@]}" -accel "$accelerator" \
  -m "${MEM:-1024}" -smp "${CPUS:-2}" -kernel "$K/vmlinuz" -initrd "$R.gz" -append "$arguments" \
  -nic none -no-reboot -display none -monitor none -serial stdio </dev/null 2>&1 |
  sed -u 's/\r//g; s/\x1b[c\[][^a-zA-Z]*[a-zA-Z]//g' | tee "$R.log" | sed -u '0,/VM-UP/{/VM-UP/!d}'
ended=${PIPESTATUS[0]}; set -e
rc=$(sed -n 's/^VM-RC \([0-9]*\).*/\1/p' "$R.log")
[ -z "$rc" ] || exit "$rc"
[ "$ended" -ne 124 ] || { echo "VM-DIED (time limit of ${LIMIT:-240} s)"; exit 98; }
echo "VM-DIED"; tail -40 "$R.log"; exit 99
