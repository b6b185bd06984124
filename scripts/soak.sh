#!/bin/bash
# soak.sh - gpuscope serve for long, beside a program that calls without a pause and many that come and go: does it grow?
# usage: soak.sh [DURATION=1h] [GPUSCOPE=target/release/gpuscope]      DURATION as sleep takes it: 60s, 10m, 1h; needs root
# SOAK_CALLS=50000 calls a second, SOAK_PROCESSES=50 new processes a second. Prints a table; exit status 1: it grew.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/serving.sh
seconds=$(awk -v text="${1:-1h}" 'BEGIN { n = text + 0; unit = substr(text, length(text))
  print n * (unit == "h" ? 3600 : unit == "m" ? 60 : 1) }')
gpuscope=${2:-target/release/gpuscope}
calls=${SOAK_CALLS:-50000} processes=${SOAK_PROCESSES:-50}
# What may differ between the first and the last third: noise of an allocator, not one process in thousands.
slack_rss_kib=6144 slack_fds=10 slack_map_kib=4096
[ "$(id -u)" -eq 0 ] || { echo "soak.sh: run as root" >&2; exit 1; }
[ -x "$gpuscope" ] || { echo "soak.sh: there is no $gpuscope: make build" >&2; exit 1; }
[ -x sim/out/gpusim ] || sim/build.sh >/dev/null

folder=$(mktemp -d)
children=() serve=
cleanup() {
  for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
  for ((tries = 0; tries < 100; tries++)); do
    { [ -n "$serve" ] && kill -0 "$serve" 2>/dev/null; } || break
    sleep 0.1
  done
  if [ "$tries" -eq 100 ]; then
    kill -9 "$serve"
    echo "soak: gpuscope did not end within 10 s of SIGTERM" >&2
  fi
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT
export LD_LIBRARY_PATH=$PWD/sim/out GPUSIM_STATE=$folder
ln -s "$PWD/sim/out/gpusim" "$folder/soak-calls"
ln -s "$PWD/sim/out/gpusim" "$folder/soak-churn"

serve_here "$gpuscope" "$folder"

# A program that calls all the time, in pieces so that it is started anew, too.
(
  trap 'kill $(jobs -p) 2>/dev/null; exit' TERM
  while :; do
    "$folder/soak-calls" hammer "$calls" 60 >/dev/null &
    wait $!
  done
) &
children+=("$!")
# As many short programs a second as asked for, as far as the machine has time for them.
(
  first=$(date +%s%N) started=0
  while :; do
    due=$((($(date +%s%N) - first) * processes / 1000000000))
    for ((; started < due; started++)); do
      while [ "$(jobs -rp | wc -l)" -ge 16 ]; do wait -n; done
      "$folder/soak-churn" train 1 >/dev/null &
    done
    sleep 0.05
  done
) &
children+=("$!")

# The sum of a metric's samples that contain $2.
metric() { awk -v name="$1" -v part="${2:-}" 'index($0, name) == 1 && index($0, part) { sum += $NF } END { printf "%.9g", sum }' "$folder/metrics"; }

# Memory of its BPF maps, as the kernel counts it; of hash tables that grow it is that of their entries.
map_kib() {
  awk '/^memlock:/ { bytes = $2 } /^map_id:/ { seen[$2] = bytes } END { for (id in seen) sum += seen[id]; print int(sum / 1024) }' \
    /proc/"$serve"/fdinfo/* 2>/dev/null
}

cpu_ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$serve/stat"; }

sample() { # -> a line of the table: s, KiB, fds, KiB of maps, % of a CPU, calls, processes, lost, ms
  curl -sf "http://$address/metrics" -o "$folder/metrics"
  local ticks
  ticks=$(cpu_ticks)
  printf '%d\t%d\t%d\t%d\t%.1f\t%d\t%d\t%d\t%.1f\n' "$((SECONDS - begun))" \
    "$(awk '/^VmRSS/ { print $2 }' "/proc/$serve/status")" "$(find "/proc/$serve/fd" -mindepth 1 | wc -l)" "$(map_kib)" \
    "$(awk -v a="$last_ticks" -v b="$ticks" -v s="$step" 'BEGIN { print (b - a) / s }')" \
    "$(metric gpuscope_api_calls_total soak-)" "$(metric gpuscope_launches_total soak-churn)" \
    "$(metric gpuscope_lost_records_total)" "$(awk '/^gpuscope_gather_duration_seconds / { print $NF * 1000 }' "$folder/metrics")"
  last_ticks=$ticks
}

samples=$((seconds < 120 ? 12 : 60))
step=$(awk -v s="$seconds" -v n="$samples" 'BEGIN { print s / n }')
begun=$SECONDS last_ticks=$(cpu_ticks)
printf '%8s %9s %5s %9s %6s %12s %10s %6s %9s\n' seconds 'RSS KiB' files 'maps KiB' 'CPU %' calls processes lost 'gather ms'
for ((number = 0; number < samples; number++)); do
  sleep "$step"
  kill -0 "$serve" || { cat "$folder/out" >&2; exit 1; }
  line=$(sample)
  last_ticks=$(cpu_ticks)
  # a program of one step launches 20 kernels
  awk -F'\t' '{ printf "%8d %9d %5d %9d %6.1f %12d %10d %6d %9.1f\n", $1, $2, $3, $4, $5, $6, $7 / 20, $8, $9 }' <<<"$line"
  printf '%s\n' "$line" >>"$folder/samples"
done

# The middle of the first third after the warm-up (a quarter of the time) beside that of the last third.
judge() { # COLUMN SLACK WHAT
  awk -F'\t' -v column="$1" -v slack="$2" -v what="$3" '
    { value[NR] = $column }
    function middle(from, to,   i, j, n, kept, sorted) {
      for (i = from; i <= to; i++) sorted[++n] = value[i]
      for (i = 2; i <= n; i++) for (j = i; j > 1 && sorted[j] < sorted[j - 1]; j--) { kept = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = kept }
      return sorted[int((n + 1) / 2)]
    }
    END {
      warm = int(NR / 4) + 1; third = int((NR - warm + 1) / 3)
      before = middle(warm, warm + third - 1); after = middle(NR - third + 1, NR)
      printf "soak: %s: %d, then %d (at most %d more)\n", what, before, after, slack
      exit after > before + slack
    }' "$folder/samples"
}
grew=0
judge 2 "$slack_rss_kib" 'KiB of memory' || grew=1
judge 3 "$slack_fds" 'open files' || grew=1
judge 4 "$slack_map_kib" 'KiB of BPF maps' || grew=1
awk -F'\t' 'END { if ($7 == 0 || $6 == 0) { print "soak: no calls were seen"; exit 1 } }' "$folder/samples" || grew=1
[ "$grew" -eq 0 ] || { echo "soak: it GREW" >&2; exit 1; }
echo "soak: steady"
