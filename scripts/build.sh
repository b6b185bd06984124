#!/bin/bash
# build.sh - gpuscope as a release, told which commit it is of: target/release/gpuscope
# usage: build.sh [OPTION OF cargo build…]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/version.sh
exec cargo build --release --locked "$@"
