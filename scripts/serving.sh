# serving.sh - to be sourced: an exporter for a measurement, with the simulated NVML.
# shellcheck shell=bash

# serve_here GPUSCOPE FOLDER: starts it on a port that is free; sets `serve`, its process, which is also among `children`,
# and `address` once it serves. What it says is in FOLDER/out.
serve_here() {
  GPUSCOPE_NVML=$PWD/sim/out/libnvidia-ml.so.1 "$1" serve --listen 127.0.0.1:0 >"$2/out" 2>&1 &
  serve=$!
  children+=("$serve")
  address=
  until [ -n "$address" ]; do
    kill -0 "$serve" 2>/dev/null || { cat "$2/out" >&2; exit 1; }
    sleep 0.1
    address=$(sed -n 's|.*serving http://\([^/]*\)/.*|\1|p' "$2/out")
  done
}
