#!/bin/sh
# arguments-guest.sh - runs in a guest of boot.sh, as root, beside gpuscope, tests/vm/arguments built, and its hooks: every argument
# must be read where the processor's convention puts it, and the program must end as ever. busybox is all there is.
cd "$(dirname "$0")" || exit 1
export GPUSCOPE_ENGINE=kernel GPUSCOPE_LONGEST_HOLD=60s
passed=0 failed=0 out=/tmp/out
expect() { # WHAT COUNT PATTERN
  found=$(grep -c "$3" $out)
  if [ "$found" = "$2" ]; then passed=$((passed + 1)); echo "ok: $1"; else failed=$((failed + 1)); echo "FAILED: $1: $found of $2"; fi
}
./gpuscope run --hooks hooks.toml -- ./arguments >$out 2>/tmp/err; echo "status $?" >>$out
expect 'the program ends as ever' 1 '^status 0$'
expect 'its own result' 1 '^17700$'
expect 'registers and stack' 100 'mine_scale(a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8, i=9) = 104 '
expect 'a structure that is too large for registers' 100 'mine_box(box={width=10, height=20, length=30, depth=40}, more=7) = 57 '
expect 'a call through a pointer' 100 'mine_deep(n=5) = 16 '
expect 'calls within it' 500 'mine_scale(a=[1-5], b=0, .*i=0) = [1-5] '
[ $failed -eq 0 ] || { head -20 $out; cat /tmp/err; }
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
