#!/bin/bash
# aarch64.sh - gpuscope and the simulated CUDA for aarch64, and what they do on its kernels, which QEMU emulates.
# usage: aarch64.sh build      into target/aarch64/
#        aarch64.sh test       builds, and runs scripts/vm/{arguments-,}guest.sh on KERNELS (default: 6.12)
#        aarch64.sh platforms  builds, and writes its table of docs/platforms.md
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu compiler=aarch64-linux-gnu out=$PWD/target/aarch64

build() {
  RUSTC=$(scripts/release/rust.sh)
  # linking it as it is handed out takes longer than all that it is tried on
  export CARGO_PROFILE_RELEASE_LTO=${CARGO_PROFILE_RELEASE_LTO:-false}
  export RUSTC CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$out/cargo
  export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$compiler-gcc
  export CC_aarch64_unknown_linux_gnu=$compiler-gcc AR_aarch64_unknown_linux_gnu=$compiler-ar
  # libelf configures itself in its unpacked crate, for one compiler
  export CARGO_HOME=$out/home
  unset GPUSCOPE_RUSTC; . scripts/version.sh
  cargo build --release --locked --bin gpuscope --target $target
  $compiler-strip -o "$out/gpuscope" "$CARGO_TARGET_DIR/$target/release/gpuscope"
  (cd sim && simulated)
}

# With landing pads and signed return addresses, as distributions build for newer processors.
arguments() {
  local to=$out/arguments options="-O2 -Wall -Wextra -mbranch-protection=standard"
  mkdir -p "$to"
  $compiler-gcc $options -fPIC -shared -nostartfiles -Wl,-z,force-bti -o "$to/libmine.so" tests/vm/arguments/mine.c
  $compiler-gcc $options -o "$to/arguments" tests/vm/arguments/main.c -L"$to" -lmine -Wl,-rpath,"\$ORIGIN"
}

# As sim/build.sh does it, without what is read of x86-64's instructions.
simulated() {
  export RUSTFLAGS="-Cforce-frame-pointers=yes -Cforce-unwind-tables=yes" CC=$compiler-gcc
  local release=$CARGO_TARGET_DIR/$target/release sim=$out/sim
  mkdir -p "$sim"
  cargo build --release --locked --quiet --target $target -p gpusim-driver -p gpusim-runtime
  cp "$release/libcuda.so" "$sim/libcuda.so.1"
  cp "$release/libcudart.so" "$sim/libcudart.so.13"
  GPUSIM_LINK_DIR=$sim cargo build --release --locked --quiet --target $target -p gpusim
  cp "$release"/gpusim{,-static,-late} "$sim/"
}

case ${1:-} in
  build) scripts/setup.sh aarch64; build ;;
  test)
    scripts/setup.sh aarch64; build
    arguments
    export ARCH=arm64 KERNELS=${KERNELS:-6.12} LIMIT=${LIMIT:-900}
    scripts/vm/matrix.sh scripts/vm/arguments-guest.sh "$out/gpuscope" "$out"/arguments/* tests/vm/arguments/hooks.toml
    scripts/vm/matrix.sh scripts/vm/guest.sh \
      "$out/gpuscope" scripts/vm/refused.sh scripts/vm/summary.sh "$out"/sim/gpusim* "$out"/sim/lib*.so.* ;;
  platforms)
    scripts/setup.sh aarch64; build
    . scripts/debian.sh
    DEBIAN_ARCH=arm64 debian_packages bookworm "$out/debian" util-linux libcap-ng0
    for package in "$out"/debian/debs/*.deb; do dpkg-deb -x "$package" "$out/debian/root"; done
    rm -rf "$out/debian/lib"; cp -rL /usr/$compiler/lib "$out/debian/lib"
    cp -L "$out"/debian/root/usr/lib/$compiler/libcap-ng.so.0 "$out/debian/lib/"
    LIBRARIES=$out/debian/lib SETPRIV=$out/debian/root/usr/bin/setpriv ARCH=arm64 scripts/vm/platforms.sh ;;
  *) sed -n '2,5s/^# //p' "$0" >&2; exit 2 ;;
esac
