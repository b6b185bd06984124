#!/bin/bash
# demo.sh - build gpuscope and the simulated CUDA, and trace a training loop of 5 steps.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh build
scripts/build.sh
sim/build.sh
gpuscope=target/release/gpuscope
# no right is needed: what gpuscope starts is traced from inside
echo "\$ gpuscope run -- sim/out/gpusim train 5"
$gpuscope run -- sim/out/gpusim train 5
