#!/bin/bash
# old-glibc.sh - trace from inside programs that run on other C libraries than the one here: tests/real/glibc.rs
# usage: old-glibc.sh [DIR]         default: a folder of the cache
# result: DIR/SUITE for Debian 11 (glibc 2.31) and 13 (2.41): a root directory each with that C library, and the simulated CUDA
#         built against the older one. Nothing is installed.
# Needs root (chroot, mount), apt-get, dpkg-deb, gcc, cargo. Where the packages cannot be had: NOT RUN, and exit status 0.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/privileged.sh
. scripts/debian.sh
DIR=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuscope-glibc}
mkdir -p "$DIR"; DIR=$(cd "$DIR" && pwd)
not_run() { echo "NOT RUN: old-glibc.sh: $*" >&2; exit 0; }
for tool in apt-get dpkg-deb; do command -v $tool >/dev/null || not_run "needs $tool"; done
[ -e "$debian_key" ] || not_run "install debian-archive-keyring first"

# tree SUITE PACKAGE…: a root directory of these, whose links lead to itself
tree() {
  local suite=$1 t link; shift
  [ ! -e "$DIR/$suite/made" ] || return 0
  t=$(mktemp -d -p "$DIR")
  if ! debian_packages "$suite" "$t" "$@"; then
    rm -rf "$t"; not_run "the packages of $suite cannot be had"
  fi
  rm -rf "${DIR:?}/$suite"
  mkdir -p "$DIR/$suite/usr/lib" "$DIR/$suite/usr/lib64" "$DIR/$suite"/{dev/shm,proc,tmp,cuda}
  # where the suite has one folder for both, it ships nothing in /lib
  [ "$suite" = bullseye ] || for link in lib lib64; do ln -s "usr/$link" "$DIR/$suite/$link"; done
  for deb in "$t"/debs/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$DIR/$suite" --keep-directory-symlink; done
  find "$DIR/$suite" -type l -lname '/*' | while read -r link; do ln -sfnr "$DIR/$suite$(readlink "$link")" "$link"; done
  rm -rf "$t"
  touch "$DIR/$suite/made"
}

# The simulated CUDA as somebody has built it on that system.
simulator() {
  local root=$DIR/bullseye out=$DIR/cuda release=$DIR/target/x86_64-unknown-linux-gnu/release
  mkdir -p "$out"
  export CARGO_TARGET_DIR=$DIR/target
  # of the compiler's own libraries that of this machine is linked, which wants a newer one of C
  export RUSTFLAGS="-Cforce-frame-pointers=yes -Cforce-unwind-tables=yes -Clink-arg=--sysroot=$root \
-Clink-arg=-B$root/usr/lib/x86_64-linux-gnu -Clink-arg=-Wl,--allow-shlib-undefined"
  local build=(cargo build --release --locked --quiet --target x86_64-unknown-linux-gnu)
  (cd sim && "${build[@]}" -p gpusim-driver -p gpusim-runtime)
  cp "$release/libcuda.so" "$out/libcuda.so.1"
  cp "$release/libcudart.so" "$out/libcudart.so.13"
  (cd sim && GPUSIM_LINK_DIR=$out "${build[@]}" -p gpusim)
  cp "$release"/gpusim "$release"/gpusim-static "$release"/gpusim-late "$out"
  unset CARGO_TARGET_DIR RUSTFLAGS
}

tree bullseye libc6 libc6-dev linux-libc-dev libgcc-s1
tree trixie libc6 libgcc-s1
simulator
for suite in bullseye trixie; do cp "$DIR"/cuda/* "$DIR/$suite/cuda"; done
program=$(cargo test --locked --test real --no-run --quiet --message-format=json |
  jq -r 'select(.reason == "compiler-artifact" and .profile.test and .executable) | .executable')
as_root env "CARGO_MANIFEST_DIR=$PWD" "GPUSCOPE_GLIBC=$DIR" "$program" --ignored --test-threads=1 glibc::
