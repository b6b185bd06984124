#!/bin/bash
# torture.sh - hostile programs, kills, shortages and forged files against gpuscope: tests/torture. Adds up what was tried.
# usage: torture.sh [brief|short|full|long]    for emulated processors, before a commit (minutes), an evening, a day; default: full
# TORTURE_KERNELS="5.10 6.1 6.12 newest": also in guests with these kernels, in the brief form.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/privileged.sh
effort=${1:-full}
case $effort in brief | short | full | long) ;; *) sed -n '3s/^# //p' "$0" >&2; exit 2 ;; esac
scripts/setup.sh test
sim/build.sh
can_bpf || { echo "NOT RUN: it hooks programs, which needs root (or sudo) with CAP_BPF and CAP_PERFMON." >&2; exit 1; }
program=$(scripts/vm/torture-program.sh)
log=$(mktemp); trap 'rm -f "$log"' EXIT
status=0
# These watch the whole machine and look at themselves, or name whoever they have missed, or hold whoever comes, whom another
# gpuscope that counts each call cannot hold then: nobody may be beside them.
mapfile -t alone <tests/torture/alone
# The same programs from inside; but for processes that share their memory, which are one to an agent (docs/inside.md).
mapfile -t inside <tests/torture/inside
torture() { # OPTIONS: of the test program
  as_root env "CARGO_MANIFEST_DIR=$PWD" "GPUSCOPE_TORTURE=$effort" ${GPUSCOPE_ENGINE:+"GPUSCOPE_ENGINE=$GPUSCOPE_ENGINE"} "$program" --include-ignored --nocapture "$@" \
    </dev/null 2>&1 | tee -a "$log" || status=$?
}
# Most of the time they wait: for the kernel, which takes a while to load programs and to let go of probes.
torture --test-threads=6 "${alone[@]/#/--skip=}"
torture --test-threads=1 "${alone[@]}"
GPUSCOPE_ENGINE=inside torture --test-threads=2 "${inside[@]}"
echo
echo "tried, by kind:"
sed -n 's/.*TRIED \([0-9]*\) \(.*\)/\2\t\1/p' "$log" | awk -F'\t' '{ sum[$1] += $2 } END { for (kind in sum) printf "%10d  %s\n", sum[kind], kind }' | sort -rn
echo
echo "measured of gpuscope itself, the most at a time:"
sed -n 's/.*MEASURED //p' "$log" | column -ts $'\t' 2>/dev/null || sed -n 's/.*MEASURED //p' "$log"
[ -z "${TORTURE_KERNELS:-}" ] || KERNELS=$TORTURE_KERNELS scripts/vm/torture.sh "$program" || status=$?
exit "$status"
