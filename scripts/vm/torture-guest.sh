#!/bin/sh
# torture-guest.sh - runs in a guest of boot.sh, as root: the programs of tests/torture under gpuscope. busybox is all there is.
cd "$(dirname "$0")" || exit 1
export GPUSCOPE_TORTURE_SUBJECTS=$PWD GPUSCOPE_TORTURE_PROGRAM=$PWD/gpuscope GPUSCOPE_TORTURE=short GPUSCOPE_TORTURE_PATIENCE=20
export LD_LIBRARY_PATH=$PWD
./torture --ignored --test-threads=1 --nocapture callbacks:: programs:: kills:: beside::
