#!/bin/bash
# build.sh - build the stand-in for NVIDIA's driver (nvidia.c) for one kernel of scripts/vm/kernels.sh, with its BTF.
# usage: build.sh KERNEL       KERNEL: a directory of $GPUSCOPE_VM/k; prints the path of nvidia.ko
# Needs gcc, make, bc, xz, python3. Headers and pahole come from Debian's packages; nothing is installed.
set -euo pipefail
VM=${GPUSCOPE_VM:-$HOME/.cache/gpuscope-vm}; here=$(dirname "$(readlink -f "$0")")
[ $# -eq 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
kernel=$(basename "$(readlink -f "$VM/k/$1")"); headers=$VM/h; source=$headers/usr/src/linux-headers-$kernel
out=$VM/nvidia/$kernel; built=$out/nvidia.ko
for tool in gcc make bc xz python3; do
  command -v $tool >/dev/null || { echo "build.sh: needs $tool (Debian: gcc make bc xz-utils python3)" >&2; exit 1; }
done
# pahole of the newest kernel's release, and what it needs
tools='pahole libbpf1 libdw1t64 libelf1t64 libc6'
exec 8>"$VM/lock.headers"; flock 8

unpack_headers() {
  export APT_CONFIG=$VM/apt/apt.conf
  local packages t
  packages=$(apt-cache depends "linux-headers-$kernel" | sed -n 's/.*Depends: \(linux-headers-.*-common\|linux-kbuild-.*\)$/\1/p')
  t=$(mktemp -d -p "$VM"); mkdir -p "$headers"
  for package in "linux-headers-$kernel" $packages $tools; do (cd "$t" && apt-get -qq download "$package"); done
  rm -f "$headers/usr/bin/pahole" "$headers/usr/bin/pahole.elf"
  for package in "$t"/*.deb; do dpkg-deb -x "$package" "$headers"; done
  rm -rf "$t"
  sed -i "s#\([= ]\)/usr/src#\1$headers/usr/src#" "$source/Makefile"
  own_libc "$(readlink -f "$source/tools")" "$(readlink -f "$source/scripts")"
  # a module's BTF is made against the kernel's own
  [ -e "$source/vmlinux" ] || python3 "$here/unpack.py" "$VM/k/$kernel/vmlinuz" "$source/vmlinux"
  # headers of 6.1 lack it; this module has no BTF ids to resolve
  local resolve=$source/tools/bpf/resolve_btfids/resolve_btfids
  [ -e "$resolve" ] || { mkdir -p "$(dirname "$resolve")"; ln -s /bin/true "$resolve"; }
  [ -e "$headers/usr/bin/pahole.elf" ] || with_libc "$headers/usr/bin/pahole"
  touch "$source/.ready"
}

# with_libc TOOL: runs it with the C library that was unpacked beside it.
with_libc() {
  local libraries=$headers/usr/lib/x86_64-linux-gnu
  mv "$1" "$1.elf"
  printf '#!/bin/sh\nexec %s/ld-linux-x86-64.so.2 --library-path %s:/lib/x86_64-linux-gnu %s "$@"\n' \
    "$libraries" "$libraries" "$1.elf" >"$1"
  chmod +x "$1"
}

# own_libc DIR…: the kernel's tools may need a newer C library than this system has.
own_libc() {
  local tool needs
  find "$@" -type f -perm -100 | while read -r tool; do
    needs=$(ldd "$tool" 2>&1 || true)
    [[ $needs != *"version \`GLIBC"*"not found"* ]] || with_libc "$tool"
  done
}

[ -e "$source/.ready" ] || unpack_headers >&2
if [ ! -e "$built" ] || [ "$here/nvidia.c" -nt "$built" ] || [ "$here/build.sh" -nt "$built" ]; then
  rm -rf "$out"; mkdir -p "$out"; cp "$here"/{Kbuild,nvidia.c} "$out/"
  # a newer compiler's options that the one at hand does not know
  cat >"$out/cc" <<'C'
#!/bin/bash
arguments=()
for word; do case $word in
  -fmin-function-alignment=*) arguments+=("-falign-functions=${word#*=}") ;;
  -fdiagnostics-show-context=*) ;;
  *) arguments+=("$word") ;;
esac; done
exec gcc "${arguments[@]}"
C
  chmod +x "$out/cc"
  make -s -C "$source" M="$out" CC="$out/cc" PAHOLE="$headers/usr/bin/pahole" modules >"$out/log" 2>&1 || { cat "$out/log" >&2; exit 1; }
fi
echo "$built"
