#!/bin/bash
# fuzz-build.sh - build the fuzz program, with libFuzzer's instrumentation, and print where it is.
# It needs no library but glibc's and libgcc_s. usage: fuzz-build.sh [ARGUMENT-OF-CARGO-BUILD…]
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
triple=$(rustc -vV | sed -n 's/^host: //p')
# what this asks of a nightly compiler is in the stable one, too
export RUSTC_BOOTSTRAP=1
# no sanitizer: the parsers are safe Rust, whose panics libFuzzer sees by itself
flags=(--cfg fuzzing -Cpasses=sancov-module)
for argument in sanitizer-coverage-level=4 sanitizer-coverage-trace-compares sanitizer-coverage-inline-8bit-counters \
  sanitizer-coverage-pc-table simplifycfg-branch-fold-threshold=0; do
  flags+=("-Cllvm-args=-$argument")
done
# not every machine has the library of C++: it is found as an archive alone
target=${CARGO_TARGET_DIR:-$PWD/target}
mkdir -p "$target/archives"
ln -sf "$(${CXX:-c++} -print-file-name=libstdc++.a)" "$target/archives"
flags+=("-Lnative=$target/archives")
# with --target these are not for build scripts
RUSTFLAGS="${flags[*]}" cargo build --release --target "$triple" "$@" >&2
echo "$target/$triple/release/gpuscope-fuzz"
