#!/bin/sh
# kernel-guest.sh - runs in a guest of boot.sh, as root, beside gpuscope, nvidia.ko (the stand-in for NVIDIA's driver),
# requests and hooks.toml: calls of functions of the kernel are counted exactly, with their arguments, by fentry as by
# kprobes, and the module can be unloaded and loaded again meanwhile. busybox is all there is.
cd "$(dirname "$0")" || exit 1
passed=0 failed=0
pass() { passed=$((passed + 1)); echo "ok: $*"; }
fail() { failed=$((failed + 1)); echo "FAILED: $*"; }
parameter() { cat "/sys/module/nvidia/parameters/$1"; }

# number FILE NAME FIELD: what the summary in FILE has there of function NAME
number() {
  sed -n '/^{.*"type":"summary"/s/.*"functions": *\[//p' "$1" | sed 's/\].*//' | tr '{' '\n' |
    grep "\"name\":\"$2\"" | sed -n "s/.*\"$3\":\([0-9]*\).*/\1/p"
}
calls() { number "$1" "$2" calls; }

# unseen FILE NAME: calls that the summary in FILE says the kernel ran no program for when they were entered
unseen() { sed -n "s/.*[^0-9]\([0-9]*\) calls of kernel function $2, of any process: another.*/\1/p" "$1" | tail -1; }

# counts TITLE FILE NAME EXPECTED: calls that returned, whose return was not seen, and whose entry was not
counts() {
  found=$(calls "$2" "$3") open=$(number "$2" "$3" unfinished) missed=$(unseen "$2" "$3")
  parts="${found:-no} returned, ${open:-0} unfinished, ${missed:-0} told as unseen"
  if [ "${open:-0}" -gt 0 ] && ! grep -q " returns of kernel function $3," "$2"; then fail "$1: $3: nothing says why: $parts"; fi
  if [ $((${found:-0} + ${open:-0} + ${missed:-0})) = "$4" ]; then pass "$1: $3 $4: $parts"
  else fail "$1: $3 $4 expected: $parts"; tail -3 "$2" | cut -c1-600; fi
}

# says TITLE FILE PATTERN
says() { if grep -q "$3" "$2"; then pass "$1"; else fail "$1: no line has $3"; tail -3 "$2" | cut -c1-400; fi; }

# traced WAY: what is seen of the module when its functions are hooked so
traced() {
  asked=$(parameter n_ioctl)
  ./gpuscope run -q --summary json --hooks hooks.toml -- ./requests 100 >/tmp/out 2>/tmp/err </dev/null || fail "$1: status $?"
  [ $(($(parameter n_ioctl) - asked)) = 300 ] || fail 'the module counts other requests than were made'
  counts "$1: hook file" /tmp/err nvidia_unlocked_ioctl 300
  counts "$1: hook file" /tmp/err rm_ioctl 300
  counts "$1: hook file" /tmp/err _issueRpcAndWait 200
  counts "$1: hook file" /tmp/err nvidia_open 1
  counts "$1: a pattern" /tmp/err nvidia_close 1
  if [ "$(calls /tmp/err nvidia_isr)" -gt 0 ]; then pass "$1: interrupts, whoever is current"; else fail "$1: no interrupt was counted"; fi
  says "$1: what is absent is named" /tmp/err 'no_such_function'

  ./gpuscope run --format jsonl --summary none --hooks hooks.toml -- ./requests 1 >/tmp/lines 2>/tmp/err </dev/null || fail "$1: status $?"
  says "$1: fields of structures by name" /tmp/lines '"name":"rm_ioctl".*"gpu":4096,"slot":5,"label":"GPU zero","title":"stand-in"'
  says "$1: a field behind two pointers" /tmp/lines '"name":"nvidia_unlocked_ioctl".*"device":204472575' # 195:255
  says "$1: results" /tmp/lines '"name":"nvidia_open".*"ret":0'
  says "$1: a tracepoint's text" /tmp/lines '"filename":"/dev/nvidiactl"'
  outer=$(sed -n 's/.*"event_id":\([0-9]*\),.*"name":"nvidia_unlocked_ioctl".*/\1/p' /tmp/lines | head -1)
  says "$1: calls inside calls" /tmp/lines "\"name\":\"rm_ioctl\".*\"parent_id\":${outer}[,}]"

  ./gpuscope run -q --summary json --kernel ioctl,open,rpc,fault,interrupt -- ./requests 100 >/tmp/out 2>/tmp/err </dev/null || fail "$1: status $?"
  counts "$1: groups" /tmp/err nvidia_unlocked_ioctl 300
  counts "$1: groups" /tmp/err uvm_unlocked_ioctl_entry 100
  counts "$1: groups" /tmp/err uvm_migration 100
  counts "$1: groups" /tmp/err uvm_fault 100
  says "$1: bytes that moved" /tmp/err '"bytes":209715200,[^}]*"name":"uvm_migration"'
  says "$1: names of other versions in one line" /tmp/err 'does not have kernel function nvidia_frontend_unlocked_ioctl'

  ./gpuscope functions --kernel 'nvidia_*' >/tmp/list 2>/tmp/err || fail "functions --kernel: status $?"
  says "$1: functions --kernel" /tmp/list "$1 *nvidia_unlocked_ioctl(file: ptr, cmd: u32, i_arg: u64) \[nvidia\]"
  ./gpuscope functions --explain hooks.toml >/tmp/list 2>/tmp/err && fail "$1: --explain finds nothing wrong"
  says "$1: --explain" /tmp/list "rm_ioctl *kernel function by $1[; ]"
}

# hooked: all functions of hooks.toml that the module has are hooked
hooked() {
  grep -v GONE /sys/kernel/debug/kprobes/list >/tmp/hooked
  for name in nvidia_unlocked_ioctl rm_ioctl _issueRpcAndWait nvidia_open nvidia_close nvidia_isr; do
    grep -q " $name+.* nvidia " /tmp/hooked || return 1
  done
  sleep 3
}
# within SECONDS COMMAND: COMMAND succeeds in that time
within() { for _ in $(seq "$1"); do "$2" && return; sleep 1; done; return 1; }

# the others are tried first, which takes an emulated guest long
case $(uname -r) in 5.* | 6.[0-5].*) export GPUSCOPE_TIER=perf-link ;; esac
insmod ./nvidia.ko tick_ms=20 || exit 1
export GPUSCOPE_KERNEL_HOOKS=kprobe; traced kprobe
# a kernel that says that it has no kprobes
mount -t tmpfs none /sys/devices/kprobe; unset GPUSCOPE_KERNEL_HOOKS; traced fentry
./gpuscope doctor >/tmp/list; says 'doctor: no kprobes' /tmp/list 'kprobes *this kernel has none'
says 'doctor: fentry' /tmp/list 'fentry *loads and attaches; nvidia_unlocked_ioctl can be hooked'
umount /sys/devices/kprobe

# functions of one name, of /proc/cpuinfo and of /proc/crypto
[ "$(grep -c ' t c_start$' /proc/kallsyms)" -ge 2 ] || fail 'this kernel does not have two functions c_start'
printf '[[function]]\nkprobe = "c_start"\n' >twice.toml
for file in cpuinfo crypto; do
  ./gpuscope run -q --summary json --hooks twice.toml -- cat /proc/$file >/tmp/out 2>/tmp/err </dev/null || fail "status $?"
  if [ "$(calls /tmp/err c_start)" -gt 0 ]; then pass "several of one name: that of /proc/$file"; else fail "c_start of /proc/$file is not seen"; fi
done
./gpuscope functions --kernel c_start >/tmp/list 2>&1
says 'several of one name: why not fentry' /tmp/list 'kprobe *c_start() no fentry: [2-9] functions have that name (0x'

# more calls asleep at once than the kernel keeps room for returns of; and nothing holds the module once we are gone
GPUSCOPE_KERNEL_HOOKS=fentry ./gpuscope run -q --summary json --hooks hooks.toml -- ./requests 20 40 >/tmp/out 2>/tmp/err </dev/null || fail "status $?"
counts 'fentry: calls that sleep' /tmp/err nvidia_unlocked_ioctl 100

# asleep for longer than until modules are looked at again, of which none has come or gone: hooks stay where they are
for way in fentry kprobe; do
  GPUSCOPE_KERNEL_HOOKS=$way ./gpuscope run -q --summary json --hooks hooks.toml -- ./requests 1 3 4000000 >/tmp/out 2>/tmp/err </dev/null || fail "status $?"
  counts "$way: calls that sleep long" /tmp/err nvidia_unlocked_ioctl 6
  counts "$way: calls that sleep long" /tmp/err nvidia_close 1
done

# unloaded and loaded again while it is traced, which fentry does not let happen
./gpuscope trace --all -q --summary none --duration 10s --hooks hooks.toml >/tmp/out 2>/tmp/err </dev/null & tracer=$!
until grep -q tracing /tmp/err; do sleep 1; done
if rmmod nvidia 2>/dev/null; then fail 'a module that fentry hooks was unloaded'; else pass 'fentry: the module stays'; fi
wait $tracer || fail "trace: status $?"
GPUSCOPE_KERNEL_HOOKS=kprobe ./gpuscope trace --all -q --summary json --hooks hooks.toml >/tmp/out 2>/tmp/err </dev/null & tracer=$!
until grep -q tracing /tmp/err; do sleep 1; done
within 60 hooked || { fail 'the module is not hooked'; cat /sys/kernel/debug/kprobes/list; }
./requests 10 >/dev/null; sleep 2
if rmmod nvidia; then pass 'the module can be unloaded'; else fail 'the module cannot be unloaded'; fi
sleep 3; insmod ./nvidia.ko
within 90 hooked || { fail 'the module that came again is not hooked'; cat /sys/kernel/debug/kprobes/list; }
./requests 10 >/dev/null; kill -INT $tracer
wait $tracer || fail "trace: status $?"
counts 'a module that comes again' /tmp/err rm_ioctl 60

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
