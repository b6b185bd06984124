#!/bin/bash
# tape.sh - records what the engine in the kernel says of a short training loop, and the lines that gpuscope made of it:
# tests/tapes, which src/tracer/replay_tests.rs plays without root. Needed again when the wire or what rows capture changes.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/privileged.sh
sim/build.sh >/dev/null
cargo build --locked
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
as_root env "GPUSCOPE_TAPE=$folder/tape" target/debug/gpuscope run --engine kernel --getters --stacks none --summary json \
  -o "$folder/lines.jsonl" -- sim/out/gpusim train 2 >/dev/null 2>&1
for file in tape lines.jsonl; do
  gzip -9n <"$folder/$file" >"tests/tapes/train.$file.gz"
done
ls -l tests/tapes
