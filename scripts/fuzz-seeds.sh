#!/bin/bash
# fuzz-seeds.sh - inputs that readers accept, so that mutation starts behind their first checks: a folder for each target.
# They are those of fuzz/seeds, what earlier campaigns found (fuzz/corpus), and what is made here of other files.
# usage: fuzz-seeds.sh OUT.tar.gz
set -euo pipefail
out=$(realpath "${1:?usage: fuzz-seeds.sh OUT.tar.gz}")
cd "$(dirname "$0")/.."
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cp -r fuzz/seeds/. "$work"
for corpus in fuzz/corpus/*.tar.gz; do
  [ ! -f "$corpus" ] || tar -xzf "$corpus" -C "$work"
done

to() { mkdir -p "$work/$1"; echo "$work/$1"; }

cp catalog/cuda_errors.toml hooks/*.toml docs/examples/*.toml "$(to hooks)"
cp /proc/self/maps "$(to maps)"
[ ! -f /etc/ld.so.cache ] || head -c 4096 /etc/ld.so.cache >"$(to ldcache)/cache"
grep -E '^(\[otlp\]|[a-z_]+ = )' docs/serve.md >"$(to serve_config)/file"

# Small libraries with the same parts as real ones: exported functions, and a hidden runtime, with symbols and without.
small='-Wl,-z,noseparate-code -Wl,--build-id=none'
elf=$(to elf)
# shellcheck disable=SC2086
printf 'int cudaMalloc(void) { return 1; } int cuInit(void) { return cudaMalloc(); }' |
  gcc $small -nostdlib -shared -fPIC -x c -o "$elf/exports" -
# shellcheck disable=SC2086
printf '%s' 'void puts(const char *); char marker[] = "CUDA_ENABLE_MODULE_LAZY_LOADING";
  static const char *const m = "CUDA_ENABLE_MODULE_LAZY_LOADING";
  __attribute__((noinline)) static void cudaMalloc(void) { puts("cudaMalloc"); }
  __attribute__((noinline)) static void cudaFree(void) { puts("cudaFree"); }
  int main(void) { cudaMalloc(); cudaFree(); puts(m); return 0; }' | gcc $small -O1 -w -x c -o "$elf/hidden" -
strip -o "$elf/stripped" "$elf/hidden"

# Unwind information as linkers write it, up to its end, and addresses that it speaks of.
# shellcheck disable=SC2086
printf '%s' 'int g(int *); int f(int n) { int a[n]; return g(a) + f(n - 1); } int h(void) { int b[9]; return g(b); }' |
  gcc $small -O2 -nostdlib -shared -fPIC -Wl,--eh-frame-hdr -x c -o "$work/unwound.so" -
scripts/fuzz-seeds.py "$work/unwound.so" "$(to leaving)"
rm "$work/unwound.so"

# What a kernel says of its types, of a small one.
printf 'struct node { struct node *next; unsigned long len : 7, rest : 9; union { int i; char c[4]; }; };
  enum kind { A, B = 9 }; typedef int (*act)(struct node *, enum kind); act chosen;
  __attribute__((noinline)) int walk(struct node *n, enum kind k) { return n->next ? n->i : (int)k; }
  int run(struct node *n) { return walk(n, B); }' |
  clang -w -O1 -g -target bpf -x c -c -o "$work/types.o" -
llvm-objcopy --dump-section ".BTF=$(to kernel)/types" "$work/types.o" 2>/dev/null ||
  objcopy -I elf64-little -O binary --only-section=.BTF "$work/types.o" "$(to kernel)/types"
rm "$work/types.o"

tar --sort=name --mtime=@0 --owner=0 --group=0 -C "$work" -cf - . | gzip -9n >"$out"
