#!/bin/sh
# torture-guest.sh - runs in a guest of boot.sh, as root: tests/torture, short, beside gpuscope and the programs it is tried with.
# `filters`, if there: which of the tests. What is left out is named, with the reason.
cd "$(dirname "$0")" || exit 1
# left_out REASON FILTER…
left_out() {
  reason=$1; shift
  ./torture --list --ignored "$@" | sed -n "s/\(.*\): test\$/left out: \1: $reason/p"
}

case $(uname -r) in
  5.[0-9].* | 5.1[0-4].*)
    left_out 'this kernel is refused'
    exec sh ./refused.sh ./waiting ;;
esac
left_out 'reads files alone, which no kernel has a part in' forged::

# Some tools of busybox cannot do what the tests ask of them, and those that came along do.
export PATH="$PWD:$PATH" LD_LIBRARY_PATH="$PWD" GPUSCOPE_TORTURE=short
export GPUSCOPE_TORTURE_SUBJECTS="$PWD" GPUSCOPE_TORTURE_PROGRAM="$PWD/gpuscope"
# An emulated machine takes longer than two seconds to attach single probes, and tens to start gpuscope.
export GPUSCOPE_LONGEST_HOLD=60s GPUSCOPE_PATIENCE=5
# the others are tried first, which takes an emulated guest long
case $(uname -r) in 5.* | 6.[0-5].*) export GPUSCOPE_TIER=perf-link ;; esac
touch filters
# shellcheck disable=SC2046
./torture --ignored --test-threads=1 --nocapture --skip forged:: $(cat filters)
