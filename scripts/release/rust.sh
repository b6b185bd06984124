#!/bin/bash
# rust.sh - prints a rustc that builds for aarch64: this system's where it has the standard library for it
# (`rustup target add aarch64-unknown-linux-gnu`), else Debian's, unpacked into target/tools/rust-aarch64; nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=aarch64-unknown-linux-gnu
rustc=${RUSTC:-rustc}
if [ -n "$(find "$("$rustc" --print target-libdir --target $target)" -name 'libstd-*.rlib' 2>/dev/null)" ]; then
  echo "$rustc"
  exit 0
fi
to=$PWD/target/tools/rust-aarch64
if [ ! -x "$to/rustc" ]; then
  . scripts/debian.sh
  for need in apt-get dpkg-deb "$debian_key"; do
    command -v "$need" >/dev/null || [ -e "$need" ] || {
      echo "rust.sh: no standard library of Rust for aarch64, and no $need to get Debian's" >&2
      echo "hint: rustup target add $target" >&2
      exit 1
    }
  done
  rm -rf "$to"
  # the first release of Debian whose Rust is not older than ours: the compiler, what it is linked with, the libraries for both
  debian_packages forky "$to" rustc >&2
  mapfile -t needed < <(APT_CONFIG=$to/apt/apt.conf apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts \
    --no-breaks --no-replaces --no-enhances libstd-rust-dev | grep -E '^[a-z0-9]' | grep -v ':')
  debian_packages forky "$to" "${needed[@]}" >&2
  DEBIAN_ARCH=arm64 debian_packages forky "$to" libstd-rust-dev >&2
  mkdir "$to/root"
  for package in "$to"/debs/*.deb; do dpkg-deb -x "$package" "$to/root"; done
  rm -rf "$to/debs" "$to/apt"
  # its own C library: this system's may be older
  cat >"$to/rustc" <<S
#!/bin/sh
r=$to/root
exec \$r/usr/lib64/ld-linux-x86-64.so.2 --library-path \$r/usr/lib/x86_64-linux-gnu \$r/usr/bin/rustc --sysroot \$r/usr "\$@"
S
  chmod +x "$to/rustc"
fi
"$to/rustc" --version >&2
echo "$to/rustc"
