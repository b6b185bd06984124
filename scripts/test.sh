#!/bin/bash
# test.sh - every test. First those that any user can run, then the ignored ones, which hook programs, as root.
# Exit status 1 also when a part could not run: a test that did not run has not passed.
# With GPUSCOPE_LIBRARIES=DIR (see fetch-libraries.sh) NVIDIA's own libraries are read and traced as well.
# With GPUSCOPE_INTERPRETERS=DIR (see fetch-interpreters.sh) callers in CPython 3.10 to 3.15 are named as well.
set -euo pipefail
# A process that is forked while another thread takes the backtrace of an error waits for that thread for ever; gpuscope's own
# processes are executed, those of unit tests are not.
export RUST_LIB_BACKTRACE=0
cd "$(dirname "$0")/.."
. scripts/privileged.sh
scripts/setup.sh test
sim/build.sh
(cd sim && cargo test --locked --quiet -p gpusim-common -p gpusim-driver)
python3 sim/verify.py
cargo test --locked --workspace --no-run
# Built as this user, run as root: cargo prints the test programs.
programs=$(cargo test --locked --workspace --no-run --quiet --message-format=json |
  jq -r 'select(.reason == "compiler-artifact" and .profile.test and .executable) | .target.name + " " + .executable')
# What is promised of many allocations is promised of a release: that is built while tests wait.
said=$(mktemp)
why=$(mktemp)
built=$(mktemp)
nice -n 19 scripts/build.sh >"$built" 2>&1 &
release=$!
trap 'rm -f "$said" "$why" "$built"; [ -z "$release" ] || kill "$release" || true' EXIT
has_release() {
  [ -z "$release" ] || wait "$release" || { cat "$built" >&2 && exit 1; }
  release=
}
cargo test --locked --workspace

if ! can_bpf; then
  echo "NOT RUN: the tests that hook programs. They need root (or sudo) with CAP_BPF and CAP_PERFMON." >&2
  exit 1
fi
# system calls and tracepoints are found there; systemd mounts it, containers and small machines do not
as_root test -e /sys/kernel/tracing/events || as_root mount -t tracefs tracefs /sys/kernel/tracing ||
  echo "test.sh: tracefs cannot be mounted: tests of system calls will fail" >&2
# Most of a test is waiting for the kernel to let go of probes.
together=$((2 * $(nproc)))
# These trace the whole machine, fill it, or judge time: nobody may be beside them.
alone=(cost:: findings:: gpu_windows:: held:: idle:: kept:: overrun:: scale:: trace_all_)
# Of each test that failed, the beginning of what it said, and what was compared.
of_failures() {
  awk '/^failures:$/ { within = 1 } /^---- .* stdout ----$/ { left = 20 } within && (left-- > 0 || /^ *(left|right): /) { print substr($0, 1, 600) }' "$1"
}
ignored() {
  as_root env "CARGO_MANIFEST_DIR=$PWD" ${GPUSCOPE_ENGINE:+"GPUSCOPE_ENGINE=$GPUSCOPE_ENGINE"} "$@" --ignored </dev/null 2>&1 |
    tee "$said" || { failed+=" $name" && of_failures "$said" >>"$why"; }
}
# Without rights, but to read the kernel's log; and as the root that such a user has at most.
without_rights=(setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all,+syslog)
# sort_inside PROGRAM: the same tests, of what is seen from inside. Each says at its head what it needs; what needs BPF is about the
# kernel's engine alone, and is named here with its reason. Those about inside alone have run already.
sort_inside() {
  local test needs all kind
  beside=() single=() root=() single_root=()
  all=$("$1" | sed -n 's/^test \(.*\) \.\.\. ignored, \(.*\)/\1\t\2/p')
  while IFS=$'\t' read -r test needs; do
    case $test in static_probes::from_inside* | inside::* | inside_*::* | standby::*) continue ;; esac
    kind=beside
    if grep -qF "${alone[@]/#/-e}" <<<"$test"; then kind=single; fi
    case $kind/$needs in
      beside/"needs the simulated CUDA") beside+=("$test") ;;
      single/"needs the simulated CUDA") single+=("$test") ;;
      beside/"needs root, and the simulated CUDA") root+=("$test") ;;
      single/"needs root, and the simulated CUDA") single_root+=("$test") ;;
      */"needs root and BPF: "*) echo "of the kernel's engine alone: $test: ${needs#*: }" ;;
      *) echo "test.sh: $test does not say for which engine it is: $needs" >&2; failed+=" $test" ;;
    esac
  done <<<"$all"
}
# from_inside THREADS [PROGRAM OF ANOTHER USER…] -- TEST…: none named would be all.
from_inside() {
  local together=$1 as=(); shift
  while [ "$1" != -- ]; do as+=("$1"); shift; done
  shift
  [ $# -gt 0 ] || { echo "test.sh: no test is seen from inside" >&2; failed+=" inside"; return; }
  GPUSCOPE_ENGINE=inside ignored "${as[@]}" "$program" --exact "--test-threads=$together" "$@"
}
running() { echo "     Running $1 ($((SECONDS / 60)) min)"; }
# one_by_one LINES: names and programs
one_by_one() {
  while read -r name program; do
    running "$name: the tests that need root"
    ignored "$program" --test-threads=1 --skip=libraries::
  done <<<"$1"
}
failed=
# while the release is built
one_by_one "$(grep -vE '^(real|torture|trace|serve) ' <<<"$programs")"
name=trace program=$(sed -n 's/^trace //p' <<<"$programs")
running "$name: the tests that need root"
ignored "$program" --test-threads=$together "${alone[@]/#/--skip=}"
running "$name: from inside, most of it without rights"
sort_inside "$program"
from_inside $together "${without_rights[@]}" -- "${beside[@]}"
from_inside $together -- "${root[@]}"
has_release
running "$name: one at a time"
ignored "$program" --test-threads=1 "${alone[@]}"
from_inside 1 "${without_rights[@]}" -- "${single[@]}"
from_inside 1 -- "${single_root[@]}"
one_by_one "$(grep '^serve ' <<<"$programs")"
running "torture, old C libraries"
scripts/torture.sh short || failed+=" torture"
scripts/old-glibc.sh || failed+=" old-glibc"
if [ -n "$failed" ]; then
  cat "$why" >&2
  echo "test.sh: failed:$failed" >&2
  exit 1
fi

real=$(sed -n 's/^real //p' <<<"$programs")
if [ -n "${GPUSCOPE_LIBRARIES:-}" ]; then
  GPUSCOPE_LIBRARIES=$(cd "$GPUSCOPE_LIBRARIES" && pwd)
  cargo test --locked --test real -- --ignored libraries::
  cargo test --locked -p gpuscope-collect --lib -- --ignored libraries::
  as_root env "CARGO_MANIFEST_DIR=$PWD" "GPUSCOPE_LIBRARIES=$GPUSCOPE_LIBRARIES" "$real" --ignored --test-threads=1 runtime::
else
  echo "not asked for: tests/real/libraries.rs and tests/real/runtime.rs (scripts/fetch-libraries.sh DIR, then GPUSCOPE_LIBRARIES=DIR make test)"
fi

if [ -n "${GPUSCOPE_INTERPRETERS:-}" ]; then
  GPUSCOPE_INTERPRETERS=$(cd "$GPUSCOPE_INTERPRETERS" && pwd)
  as_root env "CARGO_MANIFEST_DIR=$PWD" "GPUSCOPE_INTERPRETERS=$GPUSCOPE_INTERPRETERS" "$real" --ignored --test-threads=1 interpreters::
else
  echo "not asked for: tests/real/interpreters.rs (scripts/fetch-interpreters.sh DIR, then GPUSCOPE_INTERPRETERS=DIR make test)"
fi

echo "not asked for: tests/real/engines.rs (scripts/verify-readers.sh)"
