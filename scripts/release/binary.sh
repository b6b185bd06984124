#!/bin/bash
# binary.sh - gpuscope for an old glibc, stripped, and the same from whatever folder it is built in.
# usage: binary.sh TO [x86_64|aarch64]       writes the program to TO
# Dependencies are built in a CARGO_HOME of their own: libelf configures itself in its unpacked crate, for this one compiler.
set -euo pipefail
cd "$(dirname "$0")/../.."
to=${1:?usage: binary.sh TO [x86_64|aarch64]} processor=${2:-x86_64}
target=$processor-unknown-linux-gnu glibc=2.28
scripts/release/fetch.sh
[ "$processor" = x86_64 ] || RUSTC=$(scripts/release/rust.sh)
export RUSTC=${RUSTC:-rustc}
unset GPUSCOPE_RUSTC
. scripts/version.sh

root=$PWD tools=$PWD/target/tools/release
# configured for one processor, too
export CARGO_HOME=$root/target/release-home
[ "$processor" = x86_64 ] || CARGO_HOME+=-$processor
export CARGO_INCREMENTAL=0
export CARGO_ZIGBUILD_ZIG_PATH=$tools/ziglang/zig CARGO_ZIGBUILD_CACHE_DIR=$CARGO_HOME/zigbuild
export ZIG_GLOBAL_CACHE_DIR=$CARGO_HOME/zig ZIG_LOCAL_CACHE_DIR=$CARGO_HOME/zig
# the last one that fits is taken
RUSTFLAGS="--remap-path-prefix=$root=/gpuscope --remap-path-prefix=$CARGO_HOME=/cargo"
RUSTFLAGS+=" --remap-path-prefix=$("$RUSTC" --print sysroot)=/rust"
export RUSTFLAGS
export "CFLAGS_${processor}_unknown_linux_gnu=-ffile-prefix-map=$root=/gpuscope"
"$tools/bin/cargo-zigbuild" zigbuild --profile dist --locked --bin gpuscope --target "$target.$glibc"
install -D -m 755 "target/$target/dist/gpuscope" "$to"
