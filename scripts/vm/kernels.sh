#!/bin/bash
# kernels.sh - unpack Debian's cloud kernels into a cache; nothing is installed on the host.
# usage: kernels.sh [SERIES…]      5.10, 6.12, …, or `newest`; default: 5.10 6.1 6.12 newest
# result: $GPUSCOPE_VM/k/SERIES -> VERSION, with vmlinuz, config, System.map and modules/ in it
# ARCH=arm64: those of aarch64, in $GPUSCOPE_VM/k/arm64, with a busybox beside them
# A series that is in the cache is left as it is; remove its link to get the newest build of it.
set -euo pipefail
VM=${GPUSCOPE_VM:-$HOME/.cache/gpuscope-vm} ARCH=${ARCH:-amd64}
case $ARCH in
  amd64) A=$VM/apt K=$VM/k ;;
  arm64) A=$VM/apt.arm64 K=$VM/k/arm64 ;;
  *) echo "kernels.sh: ARCH=$ARCH: amd64 or arm64" >&2; exit 2 ;;
esac
[ $# -gt 0 ] || set -- 5.10 6.1 6.12 newest

missing=()
for s; do [ -s "$K/$s/vmlinuz" ] || missing+=("$s"); done
[ $ARCH = amd64 ] || [ -x "$K/busybox" ] || missing+=(busybox)
[ ${#missing[@]} -gt 0 ] || exit 0

for tool in apt-get apt-cache dpkg-deb; do
  command -v $tool >/dev/null || { echo "kernels.sh: needs $tool (Debian, Ubuntu), or kernels put under $K by hand" >&2; exit 1; }
done
key=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e $key ] || { echo "kernels.sh: install debian-archive-keyring first" >&2; exit 1; }
mkdir -p "$A/lists/partial" "$A/cache/archives/partial" "$K"
exec 9>"$VM/lock"; flock 9

# Every suite of the mirror that this system already uses, in an apt state of our own.
mirror=$(grep -hsoE 'https?://[^ ]*/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d/* | head -1 | tr -d ' ' || true)
mirror=${mirror:-http://deb.debian.org/debian}; mirror=${mirror%/}
for s in bullseye bookworm bookworm-backports trixie trixie-backports; do
  echo "deb [arch=$ARCH signed-by=$key] $mirror $s main"
done >"$A/list"
for s in bullseye bookworm trixie; do
  echo "deb [arch=$ARCH signed-by=$key] $mirror-security $s-security main"
done >>"$A/list"
cat >"$A/apt.conf" <<C
Dir::Etc::sourcelist "$A/list"; Dir::Etc::sourceparts "-"; Dir::State::lists "$A/lists"; Dir::State::status "/dev/null";
Dir::Cache "$A/cache"; APT::Sandbox::User "root"; APT::Architecture "$ARCH"; APT::Architectures { "$ARCH"; }; Acquire::Languages "none";
C
export APT_CONFIG=$A/apt.conf
apt-get -qq update || echo "kernels.sh: some suites could not be read" >&2

# newest_build SERIES: the highest version among linux-image-VERSION-cloud-$ARCH
newest_build() {
  local pattern=${1//./\\.}
  [ "$1" != newest ] || pattern='[0-9]+\.[0-9]+'
  apt-cache pkgnames linux-image- | sed -nE "s/^linux-image-($pattern\.[0-9].*[0-9]-cloud-$ARCH)$/\1/p" | sort -V | tail -1
}

unpack() {
  local version=$1 to=$K/$1 part t
  t=$(mktemp -d -p "$VM")
  # up to 6.18 the image is one package; later ones are split
  for part in image binary modules base; do
    [[ $(apt-cache policy "linux-$part-$version") == *"Candidate: "[0-9]* ]] || continue
    (cd "$t" && apt-get -qq download "linux-$part-$version")
  done
  for part in "$t"/*.deb; do dpkg-deb -x "$part" "$t/x"; done
  mkdir -p "$to"
  for part in "$t/x/lib/modules/$version" "$t/x/usr/lib/modules/$version"; do
    [ ! -d "$part" ] || { rm -rf "$to/modules"; mv "$part" "$to/modules"; }
  done
  for part in config System.map vmlinuz; do
    for f in "$t/x/boot/$part-$version" "$to/modules/$part"; do [ ! -e "$f" ] || cp "$f" "$to/$part"; done
  done
  rm -rf "$t"
  [ -s "$to/vmlinuz" ] || { echo "kernels.sh: no vmlinuz in the packages of $version" >&2; return 1; }
}

fetch_busybox() {
  local t
  t=$(mktemp -d -p "$VM")
  (cd "$t" && apt-get -qq download busybox-static)
  dpkg-deb -x "$t"/busybox-static*.deb "$t/x"
  find "$t/x" -name busybox -type f -exec install -m 755 {} "$K/busybox" \;
  rm -rf "$t"
}

for s in "${missing[@]}"; do
  [ "$s" != busybox ] || { fetch_busybox; continue; }
  version=$(newest_build "$s")
  [ -n "$version" ] || { echo "kernels.sh: no suite of $mirror has a $s kernel" >&2; exit 1; }
  [ -s "$K/$version/vmlinuz" ] || unpack "$version"
  ln -sfn "$version" "$K/$s"
  echo "kernel $s: $version"
done
