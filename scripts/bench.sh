#!/bin/bash
# bench.sh - measure what a hook costs here, and write the tables into docs/overhead.md.
# usage: bench.sh [OUTPUT.md]      `-`: print them only. Needs root (or sudo), and bpftrace for the comparison: without it, its rows
#        are missing. OVERHEAD_PART=calls|cold|sites|starts|live|… runs one part, OVERHEAD_ROUNDS=3 few rounds of each; then nothing is written.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/privileged.sh
output=${1:-docs/overhead.md}
can_bpf || { echo "bench.sh: hooking programs needs root (or sudo) with CAP_BPF and CAP_PERFMON" >&2; exit 1; }
scripts/build.sh
sim/build.sh
program=$(cargo bench --locked --no-run --bench overhead --message-format=json |
  jq -r 'select(.reason == "compiler-artifact" and .target.name == "overhead" and .executable) | .executable')
folder=target/overhead
mkdir -p $folder
cc -O2 -Wall -Wextra -pthread benches/overhead/hammer.c -o $folder/hammer -ldl
cc -O2 -Wall -Wextra benches/overhead/cold.c -o $folder/cold -ldl
cc -O2 -shared -fPIC -Wl,-soname,libcudart.so.13 benches/overhead/target.c -o $folder/libcudart.so.13
cc -O2 -shared -fPIC -DBEFORE='"empty_"' -Wl,-soname,libempty.so benches/overhead/target.c -o $folder/libempty.so
cp benches/overhead/caller.py $folder/
ln -sfn "$PWD/sim/out" $folder/sim
mkdir -p $folder/state
ln -sfn "$PWD/target/release/gpuscope" $folder/gpuscope
if [ "$output" = - ]; then as_root "$program" $folder; else as_root "$program" $folder "$output"; fi
