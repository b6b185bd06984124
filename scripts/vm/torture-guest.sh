#!/bin/sh
# torture-guest.sh - runs in a guest of boot.sh, as root: tests/torture, brief, beside gpuscope and the programs it is tried with.
# `filters`, if there: which of the tests. What is left out is named, with the reason.
cd "$(dirname "$0")" || exit 1
# left_out REASON FILTER…
left_out() {
  reason=$1; shift
  ./torture --list --ignored "$@" | sed -n "s/\(.*\): test\$/left out: \1: $reason/p"
}

status=0
torture() { # OPTION…: of the test program
  ./torture --ignored --nocapture --skip forged:: --skip disks:: "$@" || status=1
  echo "after $(cut -d. -f1 /proc/uptime) s of the guest"
}
# Some tools of busybox cannot do what the tests ask of them, and those that came along do.
export PATH="$PWD:$PATH" GPUSCOPE_TORTURE=brief
export GPUSCOPE_TORTURE_SUBJECTS="$PWD/subjects" GPUSCOPE_TORTURE_PROGRAM="$PWD/gpuscope"
# An emulated machine takes longer than two seconds to attach single probes, and tens to start gpuscope.
export GPUSCOPE_LONGEST_HOLD=60s GPUSCOPE_PATIENCE=5

left_out 'reads files alone, which no kernel has a part in' forged::
left_out 'a guest has no compiler, which makes that file system' disks::

case $(uname -r) in
  5.[0-9].* | 5.1[0-4].*)
    # shellcheck disable=SC2046
    left_out 'no program in this kernel traces' --skip=forged:: --skip=disks:: $(grep -v '^--' inside | sed 's/^/--skip=/')
    left_out 'from inside, processes that share their memory are one' $(sed -n 's/^--skip=//p' inside)
    clock=$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource) sandboxes=filters_of_system_calls
    if [ "$clock" = tsc ]; then
      sandboxes=
    else
      left_out "each call asks the kernel for the time where its clock is $clock, which these forbid (docs/inside.md)" $sandboxes
    fi
    # shellcheck disable=SC2046
    GPUSCOPE_ENGINE=inside torture --test-threads=2 ${sandboxes:+--skip=$sandboxes} $(cat inside)
    cp subjects/libcuda.so.1 subjects/waiting .
    # what it would count is not among what came along
    INSIDE_PROGRAMS= sh ./refused.sh ./waiting || status=1
    exit $status ;;
esac

# Where one emulated processor runs code that another patches, guests die (matrix.sh): the code that gpuscope's events patch, for
# the first who asks for one and for the second, is patched once and stays so.
mkdir /sys/kernel/tracing/instances/second
for trace in /sys/kernel/tracing /sys/kernel/tracing/instances/second; do
  echo 0 >$trace/tracing_on
  for event in switch process_fork process_exec process_exit; do echo 1 >$trace/events/sched/sched_$event/enable; done
done
./patched & patched=$!

# the others are tried first, which takes an emulated guest long
case $(uname -r) in 5.* | 6.[0-5].*) export GPUSCOPE_TIER=perf-link ;; esac
touch filters
# shellcheck disable=SC2046
{
  torture --test-threads=4 $(sed 's/^/--skip=/' alone) $(cat filters)
  # by their whole names, since a filter may have named others
  names=$(./torture --list --ignored $(cat filters) | sed -n 's/: test$//p' | grep -F -f alone)
  [ -z "$names" ] || torture --test-threads=1 --exact $names
}
kill -0 $patched || { echo "FAILED: the kernel's code did not stay patched"; status=1; }
kill $patched
exit $status
