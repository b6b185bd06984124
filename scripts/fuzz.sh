#!/bin/bash
# fuzz.sh - run every fuzz target for a while, from the seeds in this repository.
# usage: fuzz.sh [SECONDS [TARGET…]]     default: 60 seconds each, all targets
# Needs cargo-fuzz: cargo install --locked cargo-fuzz
# Exit status 1 when an input was found that breaks a target; it lies in fuzz/artifacts/TARGET.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}; shift || true
cargo fuzz --version >/dev/null || { echo "fuzz.sh: run: cargo install --locked cargo-fuzz" >&2; exit 1; }
# what cargo-fuzz asks of a nightly compiler is in the stable one, too
export RUSTC_BOOTSTRAP=1
mapfile -t targets < <(cargo fuzz list)
[ $# -eq 0 ] || targets=("$@")

# Small libraries with the same parts as real ones: exported functions, and a hidden runtime, with symbols and without.
elf_seeds() {
  printf 'int cudaMalloc(void) { return 1; } int cuInit(void) { return cudaMalloc(); }' |
    gcc -shared -fPIC -x c -o "$1/exports" -
  printf '%s' 'void puts(const char *); char marker[] = "CUDA_ENABLE_MODULE_LAZY_LOADING";
    static const char *const m = "CUDA_ENABLE_MODULE_LAZY_LOADING";
    __attribute__((noinline)) static void cudaMalloc(void) { puts("cudaMalloc"); }
    __attribute__((noinline)) static void cudaFree(void) { puts("cudaFree"); }
    int main(void) { cudaMalloc(); cudaFree(); puts(m); return 0; }' | gcc -O1 -w -x c -o "$1/hidden" -
  strip -o "$1/stripped" "$1/hidden"
}

# Inputs that the target's parser accepts, so that mutation starts behind its first checks.
seed() {
  local to=$1
  mkdir -p "$to"
  [ ! -d "fuzz/seeds/$2" ] || cp "fuzz/seeds/$2"/* "$to"
  case $2 in
    hooks) cp catalog/cuda_errors.toml docs/examples/*.toml "$to" ;;
    elf) elf_seeds "$to" ;;
    cgroup)
      printf '0::/kubepods/burstable/pod7fda01c4-0ece-403d-88b4-c371d66d132a/%064d\n' 7 >"$to/pod"
      printf '0::/system.slice/slurmstepd.scope/job_42/step_0/user\n1:name=systemd:/a.service\n' >"$to/job"
      printf '0::/user.slice/user-1000.slice/user@1000.service/docker-%064d.scope\n' 7 >"$to/user" ;;
    oci_config)
      printf '{"annotations":{"io.kubernetes.cri.sandbox-namespace":"a","io.kubernetes.pod.name":"b","nerdctl/name":"c"}}' >"$to/oci"
      printf '{"Name":"/a","Config":{"Labels":{"io.kubernetes.pod.name":"b"}}}' >"$to/docker" ;;
    kernel)
      find /sys/kernel/btf -type f -size -200k -exec cp {} "$to" \; 2>/dev/null || true
      printf '\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n' >"$to/format"
      printf 'ffffffff81000100 t helper.isra.0\nffffffffc0001000 t nvidia_isr\t[nvidia]\n' >"$to/symbols" ;;
    maps) cp /proc/self/maps "$to" ;;
    ldcache) head -c 4096 /etc/ld.so.cache >"$to/cache" ;;
    # every type in this memory is that of code objects
    python) { printf '\010\015'; for _ in {1..32}; do printf '\003\0\0code\0'; done; } >"$to/code" ;;
    web_config) printf 'tls_server_config:\n  cert_file: a\n  key_file: b\n  min_version: TLS13\nbasic_auth_users:\n  a: x\n' >"$to/yml" ;;
    serve_config) grep -E '^(\[otlp\]|[a-z_]+ = )' docs/serve.md >"$to/file" ;;
    options) printf '%s' "10us" >"$to/duration"; printf '%s' "16MiB" >"$to/size"; printf '%s\n%s' "@copy !cuda*" "runtime,driver" >"$to/filter" ;;
  esac
}

failed=0
for target in "${targets[@]}"; do
  seeds=$(mktemp -d); seed "$seeds" "$target"
  mkdir -p "fuzz/corpus/$target"
  # no sanitizer: the parsers are safe Rust, whose panics libFuzzer sees by itself
  cargo fuzz run --sanitizer none "$target" "fuzz/corpus/$target" "$seeds" -- \
    -max_total_time="$seconds" -max_len=200000 -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 || failed=1
  rm -rf "$seeds"
done
exit $failed
