#!/bin/sh
# platforms-guest.sh - runs in a guest of boot.sh, as root, beside gpuscope, setpriv and the simulated CUDA: which command does
# its work on this kernel, and with which rights. A line "CELL|COMMAND|RIGHTS|ANSWER" for each; what neither works, with the
# right numbers, nor is refused with a hint, is FAILED. busybox is all there is.
cd "$(dirname "$0")" || exit 1
# An emulated machine takes longer than two seconds to look at a library.
export GPUSCOPE_LONGEST_HOLD=60s HOME=/tmp
STEPS=5 LAUNCHES=100 LEAKED=$((5 << 20))
failed=0 d=/tmp/tried
mkdir -m 777 $d

# with RIGHTS COMMAND…: as root; as another user who has two capabilities; as one who has none. Takes the place of the shell.
with() {
  rights=$1; shift
  case $rights in
    root) exec "$@" ;;
    two) other +bpf,+perfmon "$@" ;;
    none) other "" "$@" ;;
  esac
}
other() {
  caps=-all${1:+,$1}; shift
  exec ./setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps "$caps" --ambient-caps "$caps" --bounding-set "$caps" "$@"
}

cell() { echo "CELL|$1|$rights|$2"; }
# Which way of attaching the summary names.
way() { sed -n 's/.*"attach": *"\([^"]*\)".*/\1/p' $d/err $d/out | head -1; }
number() { tr '{' '\n' <$d/err | grep "\"name\": *\"$1\"" | sed -n 's/.*"calls": *\([0-9]*\).*/\1/p' | head -1; }
# Bytes that are left, or allocations, of the account that leaks prints.
account() { cat $d/out $d/err | tr ',{' '\n\n' | sed -n "s/^\"$1\": *\([0-9]*\).*/\1/p" | sort -n | tail -1; }

# judge COMMAND STATUS RIGHT: RIGHT is empty where what it said is wrong
judge() {
  if grep -q panicked $d/err; then
    wrong "$1" "panicked"
  elif [ "$2" = 0 ] && [ -n "$3" ]; then
    cell "$1" "$3"
  elif [ "$2" != 0 ] && grep -q '^hint: ' $d/err; then
    cell "$1" no
    echo "refused: $1 ($rights): $(head -1 $d/err | cut -c1-200)"
  else
    wrong "$1" "status $2"
  fi
}
wrong() {
  failed=$((failed + 1))
  cell "$1" FAILED
  echo "FAILED: $1 ($rights): $2"; head -c 1500 $d/err
}

# What gpuscope starts: every launch, every byte.
starts() {
  rights=$1
  for command in run record; do
    rm -f $d/r.arrows
    case $command in run) set -- -q ;; record) set -- -o $d/r.arrows ;; esac
    (with "$rights" ./gpuscope $command "$@" --summary json -- ./gpusim-static train $STEPS) >$d/out 2>$d/err </dev/null; status=$?
    right=; [ "$(number cudaLaunchKernel)" != $LAUNCHES ] || right=$(way)
    judge "$command" $status "$right"
  done
  (with "$rights" ./gpuscope leaks --json -- ./gpusim-static leak $STEPS) >$d/out 2>$d/err </dev/null; status=$?
  right=; [ "$(account held_bytes)" != $LEAKED ] || right=exact
  judge leaks $status "$right"
}

# What runs already: watch RIGHTS COMMAND NAME OPTION…, of a program that PREFIX starts
watch() {
  rights=$1 command=$2 name=$3; shift 3
  # shellcheck disable=SC2086
  with "$rights" $PREFIX ./gpusim-static churn 100000000 >/dev/null 2>&1 & program=$!
  until grep -q libcuda /proc/$program/maps 2>/dev/null; do kill -0 $program || break; sleep 0.2; done
  (with "$rights" timeout 200 ./gpuscope "$command" -p $program --duration 2s "$@") >$d/out 2>$d/err </dev/null; status=$?
  case $command in
    leaks) count=$(account allocations) right=counted ;;
    *) count=$(number cudaMalloc) right=$(way) ;;
  esac
  [ "${count:-0}" -gt 0 ] || right=
  if kill -0 $program; then judge "$name" $status "$right"; else wrong "$name" "the program has ended"; fi
  kill $program; wait $program
}
watches() {
  watch "$1" trace "trace -p$2" -q --summary json
  watch "$1" leaks "leaks -p$2" --json
  rm -f $d/p.arrows
  watch "$1" record "record -p$2" -o $d/p.arrows --summary json
}

# The whole machine, as far as these rights let it be seen.
serves() {
  rights=$1
  with "$rights" ./gpusim-static churn 100000000 >/dev/null 2>&1 & program=$!
  with "$rights" ./gpuscope serve --labels comm >$d/out 2>$d/err </dev/null & served=$!
  right=; i=0
  while kill -0 $served 2>/dev/null && [ $i -lt 120 ]; do
    wget -q -O $d/metrics http://127.0.0.1:9748/metrics 2>/dev/null || true
    if grep '^gpuscope_api_calls_total{' $d/metrics 2>/dev/null | grep 'comm="gpusim-static"' | grep -q 'class="alloc"'; then right=counted; break; fi
    i=$((i + 1)); sleep 1
  done
  rm -f $d/metrics
  kill $served 2>/dev/null; wait $served; status=$?
  kill $program; wait $program
  judge serve $status "$right"
}

(sleep "${LONGEST:-900}"; echo "stands still"; echo "VM-RC 99"; poweroff -f) & guard=$!
for who in root two none; do
  starts $who
  PREFIX=''; watches $who ''
  PREFIX='./gpuscope preload --'; watches $who ' (preloaded)'
  serves $who
done
kill $guard
echo "$failed failed"
[ $failed -eq 0 ]
