#!/bin/sh
# guest.sh - runs in a guest of boot.sh, as root, beside gpuscope and the simulated CUDA: what gpuscope counted must
# be what the libraries wrote into their ledger, function by function, and the way of attaching must be the best that
# this kernel offers. busybox is all there is.
cd "$(dirname "$0")" || exit 1
# what is compared is what the programs in this kernel see
export GPUSCOPE_ENGINE=kernel
passed=0 failed=0
pass() { passed=$((passed + 1)); echo "ok: $*"; }
fail() { failed=$((failed + 1)); echo "FAILED: $*"; }

# ---- what depends on gpuscope's output: here, and in summary.sh ----
. ./summary.sh

# The way of attaching that doctor reports.
tier_found() { sed -n 's/.*"tier": *"\([^"]*\)".*/\1/p' "$1" | head -1; }

# Lines "LAYER NAME CALLS ERRORS" of that line's `functions`: objects without lists, with layer, name, calls, errors.
counted() {
  summary_line "$1" | sed 's/.*"functions": *\[//; s/\].*//' | tr '{' '\n' | awk '
    function value(key) {
      if (!match($0, "\"" key "\": *\"?[^\",}]*")) return ""
      v = substr($0, RSTART, RLENGTH); sub(/^"[^"]*": *"?/, "", v); return v
    }
    value("name") != "" && value("calls") > 0 { print value("layer"), value("name"), value("calls"), value("errors") + 0 }' | total
}

# Layers that have a ledger.
LAYERS='^(runtime|driver)$'

# Which functions to hook: gpuscope's options, and an awk pattern of the same names.
all() { OPTIONS=; NAMES=.; }
few() {
  OPTIONS='--filter cudaMalloc --filter cudaFree --filter cudaLaunchKernel --filter cuMemAlloc_v2 --filter cuMemFree_v2 --filter cuLaunchKernel'
  NAMES='^(cudaMalloc|cudaFree|cudaLaunchKernel|cuMemAlloc_v2|cuMemFree_v2|cuLaunchKernel)$'
}

# ---- the ledger: one object a process image, {"layer":…,"calls":{NAME:N…},"errors":{NAME:{CODE:N…}…},…} ----

truth() {
  cat "$1".*.json | awk '
    {
      layer = $0; sub(/.*"layer":"/, "", layer); sub(/".*/, "", layer)
      calls = $0; sub(/.*"calls":\{/, "", calls); sub(/\}.*/, "", calls)
      errors = $0; sub(/.*"errors":\{/, "", errors); sub(/,"not_ready":.*/, "", errors)
      n = split(calls, item, ",")
      for (i = 1; i <= n; i++) { split(item[i], f, "\""); sub(":", "", f[3]); if (f[2] != "") print layer, f[2], f[3], 0 }
      n = split(errors, item, "}")
      for (i = 1; i <= n; i++) {
        split(item[i], half, "{"); if (half[2] == "") continue
        name = half[1]; gsub(/[",:]/, "", name)
        m = split(half[2], code, ","); sum = 0
        for (j = 1; j <= m; j++) { c = code[j]; sub(/.*:/, "", c); sum += c }
        print layer, name, 0, sum
      }
    }' | total
}

# __cudaLaunchKernel ends in a jump to cudaLaunchKernel, which is where gpuscope counts the call.
total() { awk -v layers="$LAYERS" -v names="$NAMES" '$1 ~ layers && $2 ~ names && $2 != "__cudaLaunchKernel" { k = $1 " " $2; c[k] += $3; e[k] += $4 } END { for (k in c) print k, c[k], e[k] }' | sort; }

# Whoever stands still for so many seconds is described, and the guest given up (status 99).
LONGEST=600
describe() {
  echo "stands still: $title"; ps -o pid,ppid,stat,args
  for task in /proc/[0-9]*/task/[0-9]*; do
    case $(cat "$task/comm" 2>/dev/null) in
      gpus*) echo "$task: $(cat "$task/wchan" "$task/syscall" 2>/dev/null | tr '\n' ' ')"; cat "$task/stack" ;;
    esac
  done
  for _ in 1 2 3; do echo l >/proc/sysrq-trigger; sleep 1; done
  dmesg | tail -120
}
guard() { # starts it; `kill $guard` once all has ended
  (sleep $LONGEST; describe; echo "VM-RC 99"; poweroff -f) &
  guard=$!
}

# exact TITLE COMMAND…: the command under gpuscope; its summary must equal the ledger.
exact() {
  title=$1; shift; d=/tmp/$passed.$failed; mkdir -p $d; begun=$(cut -d. -f1 /proc/uptime)
  guard
  # shellcheck disable=SC2086
  GPUSIM_LEDGER=$d/ledger.%p ./gpuscope run -q --getters --summary json $OPTIONS -- "$@" >$d/out 2>$d/err </dev/null; rc=$?
  kill $guard
  took=$(($(cut -d. -f1 /proc/uptime) - begun))
  if [ $rc -ne 0 ]; then fail "$title: status $rc after $took s"; tail -5 $d/err; return; fi
  if ! ls $d/ledger.*.json >/dev/null 2>&1; then fail "$title: no ledger"; return; fi
  compare
}

# Whether what was counted in $d is what its ledger says.
compare() {
  truth $d/ledger >$d/truth; counted $d/err >$d/counted
  if [ ! -s $d/truth ] || [ ! -s $d/counted ]; then
    fail "$title: $(wc -l <$d/truth) functions in the ledger, $(wc -l <$d/counted) in the summary"; tail -5 $d/err | cut -c1-400
  elif cmp -s $d/truth $d/counted; then
    pass "$title: $(wc -l <$d/truth) functions, $(awk '{ n += $3 } END { print n }' $d/truth) calls, $took s"
  else
    fail "$title: not what the ledger says ($took s); - ledger, + gpuscope: layer, name, calls, errors"
    diff -U0 $d/truth $d/counted | grep '^[-+][^-+]' | head -20
    echo "what it says is missing:"; summary_line $d/err | grep -o '"unseen": *\[[^]]*\]'; grep -v '^{' $d/err | head -5 | cut -c1-400
  fi
}

# watched TITLE COMMAND…: the command, thrice, beside gpuscope, each time with libraries that nobody has mapped before.
watched() {
  title=$1; shift; d=/tmp/$passed.$failed; mkdir -p $d; begun=$(cut -d. -f1 /proc/uptime)
  guard
  # shellcheck disable=SC2086
  ./gpuscope trace --all -q --getters --summary json $OPTIONS >$d/out 2>$d/err </dev/null & tracer=$!
  until grep -q 'gpuscope: tracing' $d/err; do kill -0 $tracer 2>/dev/null || break; sleep 0.2; done
  for copy in 1 2 3; do
    mkdir $d/$copy; cp gpusim lib*.so.* $d/$copy/
    GPUSIM_LEDGER=$d/ledger.%p LD_LIBRARY_PATH=$d/$copy $d/$copy/"$@" >/dev/null
  done
  kill -INT $tracer; wait $tracer; rc=$?; kill $guard; took=$(($(cut -d. -f1 /proc/uptime) - begun))
  if [ $rc -ne 0 ]; then fail "$title: status $rc after $took s"; tail -5 $d/err; return; fi
  # old kernels do not tell a program what is mapped, and where a guest takes seconds to attach nobody waits for that
  if grep -q -e 'before its libraries were probed' -e 'not looked at before their process' $d/err; then pass "$title: said not to be whole, $took s"; else compare; fi
}

# Before 5.15 a probe cannot tell which function it is at.
case $(uname -r) in 5.[0-9].* | 5.1[0-4].*) unset GPUSCOPE_ENGINE; exec sh ./refused.sh ./gpusim train 0 ;; esac

case $(uname -r) in
  5.* | 6.[0-5].*) tier=perf-link ;;
  6.[6-9].* | 6.1[0-2].*) tier=uprobe.multi ;;
  *) tier=uprobe.session ;;
esac
if ./gpuscope doctor --json >/tmp/doctor 2>/tmp/doctor.err; then
  found=$(tier_found /tmp/doctor)
  if [ "$found" = $tier ]; then pass "doctor: $tier"; else fail "doctor: $tier expected, '$found' found"; fi
else
  fail "doctor: status $?; nothing else is tried"; failed=$((failed + 4)) tier=none
fi
[ $failed -eq 0 ] || { cut -c1-2000 /tmp/doctor; grep -E "^libbpf|too large|resolved|not allowed" /tmp/doctor.err | head -20; }
[ $tier != none ] || { echo "$passed passed, $failed failed"; exit 1; }

# An emulated machine takes longer than two seconds to attach single probes.
export GPUSCOPE_LONGEST_HOLD=60s
all
exact 'a training loop' ./gpusim train 3
# Single probes are let go one by one, which takes this kernel a tenth of a second each when emulated.
[ $tier != perf-link ] || few
exact 'failing calls' ./gpusim errors 2
# Several processes on few CPUs: where a kernel lets threads share what is not theirs, counts go astray.
for _ in 1 2 3 4 5; do exact 'children' ./gpusim fork; done
exact 'late dlopen' ./gpusim-late
watched 'new libraries beside gpuscope' gpusim train 2

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
