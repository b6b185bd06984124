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
  key=/usr/share/keyrings/debian-archive-keyring.gpg
  for need in apt-get dpkg-deb $key; do
    command -v $need >/dev/null || [ -e $need ] || {
      echo "rust.sh: no standard library of Rust for aarch64, and no $need to get Debian's" >&2
      echo "hint: rustup target add $target" >&2
      exit 1
    }
  done
  rm -rf "$to"; mkdir -p "$to"/apt/{lists,cache/archives}/partial "$to"/{debs,root}
  # from the first release of Debian whose Rust is not older than ours
  echo "deb [arch=amd64,arm64 signed-by=$key] http://deb.debian.org/debian forky main" >"$to/apt/list"
  cat >"$to/apt/conf" <<C
Dir::Etc::sourcelist "$to/apt/list"; Dir::Etc::sourceparts "-"; Dir::State::lists "$to/apt/lists"; Dir::State::status "/dev/null";
Dir::Cache "$to/apt/cache"; APT::Sandbox::User "root"; APT::Architecture "amd64"; APT::Architectures { "amd64"; "arm64"; };
Acquire::Languages "none";
C
  export APT_CONFIG=$to/apt/conf
  apt-get -qq update >&2
  # the compiler, what it is linked with, and the standard library for both
  mapfile -t needed < <(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
    libstd-rust-dev | grep -E '^[a-z0-9]' | grep -v ':')
  (cd "$to/debs" && apt-get -qq download rustc "${needed[@]}" libstd-rust-dev:arm64 >&2)
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
