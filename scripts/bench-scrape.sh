#!/bin/bash
# bench-scrape.sh - how long a scrape of many processes on many devices takes: the distribution, in ms.
# usage: bench-scrape.sh [GPUSCOPE=target/release/gpuscope]     needs root
# SCRAPE_PROCESSES=200 SCRAPE_DEVICES=8 SCRAPES=50; each process has a name, and memory on one of the devices.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/serving.sh
gpuscope=${1:-target/release/gpuscope}
processes=${SCRAPE_PROCESSES:-200} devices=${SCRAPE_DEVICES:-8} scrapes=${SCRAPES:-50}
[ "$(id -u)" -eq 0 ] || { echo "bench-scrape.sh: run as root" >&2; exit 1; }
[ -x "$gpuscope" ] || { echo "bench-scrape.sh: there is no $gpuscope: make build" >&2; exit 1; }
[ -x sim/out/gpusim ] || sim/build.sh >/dev/null

folder=$(mktemp -d)
children=()
cleanup() {
  for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT
export LD_LIBRARY_PATH=$PWD/sim/out GPUSIM_STATE=$folder/state GPUSIM_DEVICES=$devices
mkdir "$folder/state"

serve_here "$gpuscope" "$folder"

start() { # NAME DEVICE
  ln -sf "$PWD/sim/out/gpusim" "$folder/$1"
  CUDA_VISIBLE_DEVICES=$2 "$folder/$1" hold --count 20 --size 65536 >/dev/null <"$folder/gate" &
  children+=("$!")
}
metric() { curl -sf "http://$address/metrics" | awk -v name="$1" 'index($0, name) == 1 { sum += $NF } END { print int(sum) }'; }
mkfifo "$folder/gate"
# held open, so that nobody who reads it meets its end
exec 3<>"$folder/gate"
# The first brings the libraries: those after it are seen from their first call.
start scrape-first 0
until [ "$(metric gpuscope_attached_files)" -ge 2 ]; do sleep 0.2; done
for ((number = 0; number < processes; number++)); do start "scrape-$number" "$((number % devices))"; done
until [ "$(metric gpuscope_traced_processes)" -ge "$processes" ]; do sleep 0.5; done

for ((number = 0; number < scrapes; number++)); do
  # longer apart than an answer is given again
  sleep 0.3
  curl -sf -o "$folder/metrics" -w '%{time_total}\n' "http://$address/metrics" >>"$folder/times"
  awk '/^gpuscope_gather_duration_seconds / { print $NF }' "$folder/metrics" >>"$folder/gathered"
done
spread() { # FILE WHAT
  sort -g "$1" | awk -v what="$2" '{ t[NR] = $1 * 1000 } END {
    at = "%s ms: least %.1f, median %.1f, 9 of 10 below %.1f, 99 of 100 below %.1f, most %.1f\n"
    printf at, what, t[1], t[int((NR + 1) / 2)], t[int(NR * 0.9 + 0.5)], t[int(NR * 0.99 + 0.5)], t[NR] }'
}
echo "$processes processes, $devices devices, $(grep -vc '^#' "$folder/metrics") series, $(wc -c <"$folder/metrics") bytes, $scrapes scrapes"
spread "$folder/times" 'whole scrape,'
spread "$folder/gathered" 'gathering,   '
awk '/^VmRSS/ { print "resident:      " $2 / 1024 " MiB" }' "/proc/$serve/status"
