#!/bin/bash
# fuzz-campaign.sh - run every target of the fuzz program for its share of a time, on any x86-64 Linux, without cargo.
# usage: fuzz-campaign.sh PROGRAM SECONDS JOBS OUT [SEEDS.tar.gz]
#   PROGRAM  what fuzz-build.sh builds
#   SECONDS  in all, with JOBS processes at a time; making the corpora small again comes on top, a minute at most for each
#   OUT      gets table.txt, corpus.tar.gz (minimised), artifacts.tar.gz (inputs that break a target), logs.tar.gz
#   SEEDS    a folder for each target, as fuzz-seeds.sh makes them; default: seeds.tar.gz beside PROGRAM
# TARGETS="elf lines" runs these alone, MERGE=0 leaves the corpora as they grew. Exit status 1 when an input was found that breaks a target.
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2; }
program=$(realpath "$1") seconds=$2 jobs=$3
mkdir -p "$4"; out=$(realpath "$4")
seeds=$(realpath "${5:-$(dirname "$program")/seeds.tar.gz}")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
mkdir "$work"/{seeds,corpus,small,artifacts,logs}
tar -xzf "$seeds" -C "$work/seeds"

declare -A longest
targets=()
while read -r name bytes; do
  [[ -n ${TARGETS:-} && " $TARGETS " != *" $name "* ]] && continue
  targets+=("$name"); longest[$name]=$bytes
  mkdir -p "$work"/{seeds,corpus,small,artifacts}/"$name"
done < <("$program")

# Everybody gets one turn. Turns that are left over go to those that have the most to find.
deep=(recording stream lines report parts sections elf export ioctl hooks round kernel names)
rounds=$(((${#targets[@]} + jobs - 1) / jobs))
share=$((seconds / rounds))
turns=("${targets[@]}")
for ((turn = 0; ${#turns[@]} < rounds * jobs && turn < 10 * ${#deep[@]}; turn++)); do
  name=${deep[turn % ${#deep[@]}]}
  [ -z "${longest[$name]:-}" ] || turns+=("$name")
done

# Beside others an input may take long by the clock: the program itself holds it to CPU time.
fuzz() { # TARGET ARGUMENT…
  local name=$1; shift
  FUZZ_TARGET=$name "$program" -max_len="${longest[$name]}" -rss_limit_mb=512 -timeout=60 "$@"
}

# What ends a run early is an input that breaks the target: it goes on without it.
turn() { # TARGET NUMBER
  local begun=$SECONDS left log try TIMEFORMAT='cpu: %U %S'
  for try in {1..20}; do
    left=$((share - (SECONDS - begun)))
    [ $left -gt 0 ] || break
    log=$work/logs/$1.$2.$try
    { time fuzz "$1" -max_total_time=$left -print_final_stats=1 -reload=15 -artifact_prefix="$work/artifacts/$1/" \
      "$work/corpus/$1" "$work/seeds/$1"; } >"$log" 2>&1 && break
  done || true
}

smaller() { # TARGET
  [ "${MERGE:-1}" = 1 ] || { cp -r "$work/corpus/$1" "$work/small"; return; }
  fuzz "$1" -merge=1 -max_total_time=60 -artifact_prefix="$work/small/" "$work/small/$1" "$work/corpus/$1" "$work/seeds/$1" \
    >"$work/logs/$1.merge" 2>&1 && [ -n "$(ls "$work/small/$1")" ] || cp -r "$work/corpus/$1" "$work/small"
}

# Runs a command for each line that it reads, JOBS at a time.
each() {
  while read -r line; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    # shellcheck disable=SC2086
    "$1" $line </dev/null &
  done
  wait
}

row() { # TARGET
  cat "$work/logs/$1".*.* | awk -v target="$1" -v new="$(find "$work/corpus/$1" -type f | wc -l)" \
    -v crashes="$(find "$work/artifacts/$1" -type f | wc -l)" '
    /^#[0-9]+/ { runs = substr($1, 2) + 0 }
    match($0, /rss: [0-9]+Mb/) { rss = substr($0, RSTART + 5, RLENGTH - 7) + 0; if (rss > peak) peak = rss }
    /^stat::number_of_executed_units/ { runs = $2 }
    /^stat::slowest_input_us/ { if ($2 > slowest) { slowest = $2; getline; of = $2 } }
    /^stat::most_memory_bytes/ { if ($2 > most) { most = $2; getline; most_of = $2 } }
    /^cpu: / { cpu += $2 + $3; all += runs; runs = 0 }
    END { printf "%-13s %12d %9d %7d %7d %7d %12.1f %9d %10d %9d\n", target, all, cpu, new, crashes, peak, slowest / 1000, of, most / 1024, most_of }'
}

table() {
  printf '%-13s %12s %9s %7s %7s %7s %12s %9s %10s %9s\n' target executions cpu_s new crashes rss_mb slowest_ms of_bytes most_kib of_bytes
  local name
  for name in "${targets[@]}"; do row "$name"; done | tee "$work/rows"
  awk '{ runs += $2; cpu += $3; new += $4; crashes += $5 }
    END { printf "%-13s %12d %9d %7d %7d\n", "all", runs, cpu, new, crashes }' "$work/rows"
  date -u '+# %Y-%m-%d %H:%M UTC'
}

for ((number = 0; number < ${#turns[@]}; number++)); do echo "${turns[number]} $number"; done | each turn
table | tee "$out/table.txt"
printf '%s\n' "${targets[@]}" | each smaller
rm -f "$work"/small/{crash,oom,timeout,leak,slow-unit}-*
for log in "$work"/logs/*; do tail -c 20000 "$log" >"$log.end"; rm "$log"; done
tar -czf "$out/corpus.tar.gz" -C "$work/small" .
tar -czf "$out/artifacts.tar.gz" -C "$work/artifacts" .
tar -czf "$out/logs.tar.gz" -C "$work/logs" .
[ -z "$(find "$work/artifacts" -type f -name '[clot]*-*')" ]
