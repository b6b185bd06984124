#!/bin/sh
# refused.sh - runs in a guest of boot.sh whose kernel is too old, as root, beside gpuscope: it must say so, name one that will
# do, and neither start nor harm a program.
# usage: refused.sh PROGRAM ARGUMENT…     one that uses CUDA for some seconds at least
cd "$(dirname "$0")" || exit 1
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

refuses 1 doctor
refuses 125 run -q -- touch /tmp/started
refuses 125 record -o /tmp/t.arrows -- touch /tmp/started
refuses 125 leaks -- touch /tmp/started
refuses 1 trace --all --duration 1s
refuses 1 serve
LD_LIBRARY_PATH=$PWD "$@" >/dev/null & program=$!
until grep -q libcuda /proc/$program/maps; do sleep 0.1; done
refuses 1 trace -p $program
if kill -0 $program; then pass 'a program goes on that was to be traced'; else fail 'the program has ended'; fi
kill $program

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
