#!/bin/bash
# torture-program.sh - builds tests/torture and prints where its test program is.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo test --locked --no-run --quiet --test torture --message-format=json |
  jq -r 'select(.reason == "compiler-artifact" and .profile.test and .executable) | .executable'
