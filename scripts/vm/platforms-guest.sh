#!/bin/sh
# platforms-guest.sh - runs in a guest of boot.sh, as root, beside gpuscope, setpriv and the simulated CUDA: which command does
# its work on this kernel, and with which rights. A line "CELL|COMMAND|RIGHTS|ANSWER" for each; what neither works, with the
# right numbers, nor is refused with a hint, is FAILED. busybox is all there is.
cd "$(dirname "$0")" || exit 1
. ./summary.sh
# An emulated machine takes longer than two seconds to look at a library.
export GPUSCOPE_LONGEST_HOLD=60s HOME=/tmp
STEPS=5 LAUNCHES=100 LEAKED=$((5 << 20))
failed=0 d=/tmp/tried
mkdir -m 777 $d

# with COMMAND…: as root; as another user who has two capabilities; as one who has none. Takes the place of the shell.
with() {
  case $rights in
    root) exec "$@" ;;
    two) other -all,+bpf,+perfmon "$@" ;;
    none) other -all "$@" ;;
  esac
}
other() {
  caps=$1; shift
  exec ./setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps "$caps" --ambient-caps "$caps" --bounding-set "$caps" "$@"
}

cell() { echo "CELL|$1|$rights|$2"; }
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
start() { # COMMAND OPTION…
  command=$1; shift
  (with ./gpuscope "$command" "$@" --summary json -- ./gpusim-static train $STEPS) >$d/out 2>$d/err </dev/null; status=$?
  right=; [ "$(calls $d/err cudaLaunchKernel)" != $LAUNCHES ] || right=$(way $d/err)
  judge "$command" $status "$right"
}
starts() {
  start run -q
  start record -o $d/started.$rights.arrows
  (with ./gpuscope leaks --json -- ./gpusim-static leak $STEPS) >$d/out 2>$d/err </dev/null; status=$?
  right=; [ "$(account held_bytes)" != $LEAKED ] || right=exact
  judge leaks $status "$right"
}

# What runs already: watch COMMAND NAME OPTION…, of a program that PREFIX starts
watch() {
  command=$1 name=$2; shift 2
  # shellcheck disable=SC2086
  with $PREFIX ./gpusim-static churn 100000000 >/dev/null 2>&1 & program=$!
  until grep -q libcuda /proc/$program/maps 2>/dev/null; do kill -0 $program || break; sleep 0.2; done
  (with timeout 200 ./gpuscope "$command" -p $program --duration 2s "$@") >$d/out 2>$d/err </dev/null; status=$?
  case $command in
    leaks) count=$(account allocations) right=counted ;;
    *) count=$(calls $d/err cudaMalloc) right=$(way $d/err) ;;
  esac
  [ "${count:-0}" -gt 0 ] || right=
  if kill -0 $program; then judge "$name" $status "$right"; else wrong "$name" "the program has ended"; fi
  kill $program; wait $program
}
watches() { # WORD: behind the names
  watch trace "trace -p$1" -q --summary json
  watch leaks "leaks -p$1" --json
  watch record "record -p$1" -o "$d/watched.$rights$1.arrows" --summary json
}

# The whole machine, as far as these rights let it be seen.
serves() {
  with ./gpusim-static churn 100000000 >/dev/null 2>&1 & program=$!
  with ./gpuscope serve --labels comm >$d/out 2>$d/err </dev/null & served=$!
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

for rights in root two none; do
  starts
  PREFIX=''; watches ''
  if ./gpuscope preload >/dev/null 2>$d/err; then
    PREFIX='./gpuscope preload --'; watches ' (preloaded)'
  else
    judge preload 1 ''
  fi
  serves
done
echo "$failed failed"
[ $failed -eq 0 ]
