#!/bin/bash
# boot.sh - boot a kernel in QEMU with an in-memory root, run one script in it as root, return its exit status.
# usage: boot.sh KERNEL SCRIPT [FILE|DIR…]    KERNEL: a directory of $GPUSCOPE_VM/k (see kernels.sh)
# FILEs land in /t of the guest with the shared libraries they need. Complaints of the kernel come back as
# VM-DMESG lines, the status as VM-RC. 99: the guest died; 98: it ran out of time.
# Environment: MEM (MiB), CPUS, ACCEL, LIMIT (s), APPEND (kernel arguments), MODS (modules to load).
# Without KVM (accelerator.sh) processors are emulated: enough for right or wrong, it says nothing about speed.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,7s/^# //p' "$0" >&2; exit 2; }
VM=${GPUSCOPE_VM:-$HOME/.cache/gpuscope-vm}; kernel=$1 K=$VM/k/$1 S=$2; shift 2
[ -s "$K/vmlinuz" ] || { echo "boot.sh: no $K/vmlinuz" >&2; exit 2; }
R=$(mktemp -d -p "$VM" root.XXXX); trap 'rm -rf "$R" "$R.gz" "$R.log"' EXIT
chmod 755 "$R"; mkdir -p "$R"/{bin,proc,sys,dev,tmp,t,etc,run,var,m,lib64}
busybox=$(command -v busybox); cp "$busybox" "$R/bin/busybox"
cp "$S" "$R/t/run.sh"; [ $# -eq 0 ] || cp -rL "$@" "$R/t/"

# Shared libraries go where the loader looks for them; those that lie in /t are there already.
find "$R/t" -type f -exec ldd {} + 2>/dev/null | grep -o '/[^ ]*' | grep -v -e "^$R" -e ':$' | sort -u |
  while read -r library; do mkdir -p "$R$(dirname "$library")"; cp -L "$library" "$R$library"; done || true
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
arguments="console=ttyS0 quiet loglevel=${LOGLEVEL:-1} panic=-1 oops=panic softlockup_panic=1 watchdog_thresh=30"
arguments+=" mitigations=off no_timer_check ${APPEND:-}"
accelerator=${ACCEL:-$("$(dirname "$(readlink -f "$0")")/accelerator.sh" "$kernel")}
set +e
timeout -k 5 "${LIMIT:-240}" qemu-system-x86_64 -accel "$accelerator" -cpu "${CPU:-max}" \
  -m "${MEM:-1024}" -smp "${CPUS:-2}" -kernel "$K/vmlinuz" -initrd "$R.gz" -append "$arguments" \
  -nic none -no-reboot -display none -monitor none -serial stdio </dev/null 2>&1 |
  sed -u 's/\r//g; s/\x1b[c\[][^a-zA-Z]*[a-zA-Z]//g' | tee "$R.log" | sed -u '0,/VM-UP/{/VM-UP/!d}'
ended=${PIPESTATUS[0]}; set -e
rc=$(sed -n 's/^VM-RC \([0-9]*\).*/\1/p' "$R.log")
[ -z "$rc" ] || exit "$rc"
[ "$ended" -ne 124 ] || { echo "VM-DIED (time limit of ${LIMIT:-240} s)"; exit 98; }
echo "VM-DIED"; tail -40 "$R.log"; exit 99
