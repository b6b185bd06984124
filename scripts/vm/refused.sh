#!/bin/sh
# refused.sh - runs in a guest of boot.sh whose kernel is too old for programs in it, as root, beside gpuscope: what runs already
# is refused, with a kernel that will do, and unharmed; what gpuscope starts is traced from inside, exactly.
# usage: refused.sh PROGRAM ARGUMENT…     one that uses CUDA for some seconds at least
cd "$(dirname "$0")" || exit 1
. ./summary.sh
passed=0 failed=0
pass() { passed=$((passed + 1)); echo "ok: $*"; }
fail() { failed=$((failed + 1)); echo "FAILED: $*"; sed 's/^/  /' /tmp/err | cut -c1-400 | head -5; }

# refuses STATUS COMMAND…: gpuscope ends with that status and says what is needed instead
refuses() {
  expected=$1 command=$2; shift
  ./gpuscope "$@" >/tmp/out 2>/tmp/err </dev/null; status=$?
  if [ $status != "$expected" ]; then fail "$command: status $status"; return; fi
  if ! grep -q 'Linux 6.1 or newer' /tmp/err /tmp/out; then fail "$command: does not say which kernel will do"; return; fi
  if grep -q panicked /tmp/err || [ -e /tmp/started ]; then fail "$command: panicked, or started the program"; return; fi
  pass "$command: refused, status $status"
}

./gpuscope doctor >/tmp/out 2>/tmp/err </dev/null; status=$?
if [ $status = 0 ] && grep -q 'Linux 6.1 or newer' /tmp/out && grep -q 'work here, from inside' /tmp/out; then
  pass 'doctor: says what works from inside, and which kernel does the rest'
else
  fail "doctor: status $status: $(tail -1 /tmp/out)"
fi
refuses 125 run -q --engine kernel -- touch /tmp/started
refuses 125 record -o /tmp/t.arrows --engine kernel -- touch /tmp/started
refuses 125 leaks --engine kernel -- touch /tmp/started
refuses 1 trace --all --duration 1s
refuses 1 serve
LD_LIBRARY_PATH=$PWD "$@" >/dev/null & program=$!
until grep -q libcuda /proc/$program/maps; do sleep 0.1; done
refuses 1 trace -p $program
if kill -0 $program; then pass 'a program goes on that was to be traced'; else fail 'the program has ended'; fi
kill $program

# An emulated machine takes longer than two seconds to look at a library.
export GPUSCOPE_LONGEST_HOLD=60s
# launches PROGRAM STEPS: as many as it makes, counted from inside
launches() {
  ./gpuscope run -q --summary json -- "$1" train "$2" >/tmp/out 2>/tmp/err </dev/null; status=$?
  counted=$(calls /tmp/err cudaLaunchKernel)
  if [ $status = 0 ] && [ "$counted" = $(($2 * 20)) ] && [ "$(way /tmp/err)" = inside ]; then
    pass "$1: $counted launches from inside"
  else
    fail "$1: status $status, '$counted' launches"
  fi
}
# ./gpusim, too, where minutes do not matter: an emulated machine takes them to read its libraries
for program in ${INSIDE_PROGRAMS-./gpusim-static}; do launches "$program" 5; done

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
