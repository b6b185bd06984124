#!/bin/bash
# setup.sh - install what is missing to build, test or measure gpuscope (Debian, Ubuntu, Fedora). Silent when nothing is.
# usage: setup.sh [build|check|test|vm|bench|release|packages|aarch64]     check and test include those before them
set -euo pipefail
level=${1:-build}

# A line: what must be there (commands, headers, files) | Debian's packages | Fedora's packages
build='
clang            | clang            | clang
llvm-strip       | llvm             | llvm
make             | make             | make
gcc              | gcc              | gcc
g++              | g++              | gcc-c++
ld strip objdump readelf nm | binutils | binutils
pkg-config       | pkg-config       | pkgconf-pkg-config
autoconf         | autoconf         | autoconf
automake         | automake         | automake
autopoint gettext | autopoint gettext | gettext-devel gettext
flex             | flex             | flex
bison            | bison            | bison
gawk             | gawk             | gawk
linux/bpf.h      | linux-libc-dev   | kernel-headers
libelf.h         | libelf-dev       | elfutils-libelf-devel
zlib.h           | zlib1g-dev       | zlib-devel'
check='
clang-format     | clang-format     | clang-tools-extra
/usr/aarch64-linux-gnu/include/asm/ptrace.h | linux-libc-dev-arm64-cross | kernel-cross-headers'
test='
jq               | jq               | jq
python3          | python3          | python3
pip              | python3-pip      | python3-pip
unzip            | unzip            | unzip
unshare setpriv prlimit taskset | util-linux | util-linux
mount            | mount            | util-linux
setcap           | libcap2-bin      | libcap
ps               | procps           | procps-ng
strace           | strace           | strace
gdb              | gdb              | gdb
go               | golang-go        | golang
curl             | curl             | curl
systemd-analyze  | systemd          | systemd
node             | nodejs           | nodejs
chromium         | chromium         | chromium
tmux             | tmux             | tmux
cmark-gfm        | cmark-gfm        | cmark-gfm'
vm='
qemu-system-x86_64 | qemu-system-x86 | qemu-system-x86-core
busybox          | busybox-static   | busybox
cpio             | cpio             | cpio
flock            | util-linux       | util-linux
xz               | xz-utils         | xz
bc               | bc               | bc
jq               | jq               | jq
setpriv unshare  | util-linux       | util-linux
make             | make             | make
gcc              | gcc              | gcc
python3          | python3          | python3
/usr/share/keyrings/debian-archive-keyring.gpg | debian-archive-keyring | debian-keyring'
aarch64='
aarch64-linux-gnu-gcc | gcc-aarch64-linux-gnu | gcc-aarch64-linux-gnu
/usr/aarch64-linux-gnu/include/stdio.h | libc6-dev-arm64-cross | gcc-aarch64-linux-gnu
qemu-system-aarch64 | qemu-system-arm | qemu-system-aarch64-core'
bench='
bpftrace         | bpftrace         | bpftrace
jq               | jq               | jq'
release='
jq               | jq               | jq
python3          | python3          | python3
pip              | python3-pip      | python3-pip
unzip            | unzip            | unzip
dpkg-deb         | dpkg             | dpkg
/usr/share/keyrings/debian-archive-keyring.gpg | debian-archive-keyring | debian-keyring'
packages='
mmdebstrap       | mmdebstrap       | mmdebstrap
skopeo           | skopeo           | skopeo
umoci            | umoci            | umoci
runc             | runc             | runc
unshare          | util-linux       | util-linux
curl             | curl             | curl'
case $level in
  build) needs=$build ;;
  check) needs=$build$check ;;
  test) needs=$build$check$test ;;
  vm) needs=$vm ;;
  bench) needs=$build$bench ;;
  aarch64) needs=$build$vm$aarch64 ;;
  release) needs=$build$release ;;
  packages) needs=$release$packages ;;
  *) sed -n '2,3s/^# //p' "$0" >&2; exit 2 ;;
esac

there() {
  case $1 in
    /*) [ -e "$1" ] ;;
    *.h) [ -e "/usr/include/$1" ] ;;
    *) command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ] ;;
  esac
}

missing_packages() { # COLUMN: 2 Debian, 3 Fedora
  local line thing
  while IFS= read -r line; do
    [ -n "$line" ] || continue
    for thing in ${line%%|*}; do
      there "$thing" || { cut -d'|' -f"$1" <<<"$line"; break; }
    done
  done <<<"$needs" | xargs
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"
  else echo "setup.sh: run as root, or install sudo: $*" >&2; exit 1; fi
}

if command -v apt-get >/dev/null; then
  packages=$(missing_packages 2)
  install() { as_root apt-get -qq update && as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >/dev/null; }
elif command -v dnf >/dev/null; then
  packages=$(missing_packages 3)
  install() { as_root dnf -q -y install "$@"; }
else
  packages=$(missing_packages 2)
  install() { echo "setup.sh: no apt-get and no dnf here; install by hand what Debian calls: $*" >&2; exit 1; }
fi
if [ -n "$packages" ]; then
  echo "setup.sh: installing $packages"
  # shellcheck disable=SC2086
  install $packages
fi

[ "$level" != vm ] && [ "$level" != packages ] || exit 0
if ! command -v cargo >/dev/null; then
  echo "setup.sh: Rust is missing. Install it, then try again:
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" >&2
  exit 1
fi
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml" | head -1)
have=$(rustc --version | cut -d' ' -f2)
if [ "$(printf '%s\n' "$wanted" "$have" | sort -V | head -1)" != "$wanted" ]; then
  echo "setup.sh: Rust $wanted or newer is needed, this is $have. Run: rustup update stable" >&2
  exit 1
fi
if [ "$level" = check ] || [ "$level" = test ]; then
  for component in fmt clippy; do
    cargo $component --version >/dev/null 2>&1 ||
      { echo "setup.sh: cargo $component is missing. Run: rustup component add rustfmt clippy" >&2; exit 1; }
  done
fi
if [ "$level" = test ]; then
  "$(dirname "$0")/fetch-tools.sh"
fi
