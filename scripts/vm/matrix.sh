#!/bin/bash
# matrix.sh - run one guest script on several kernels; one line for each, its output in $GPUSCOPE_VM/out/[ARCH/].
# usage: matrix.sh SCRIPT [FILE|DIR…]     KERNELS="5.10 6.1 6.12 newest": which; they are fetched when missing
# ARCH=arm64: kernels and files of aarch64. TOGETHER=1: how many guests at a time. A complaint of the kernel is a failure.
set -euo pipefail
VM=${GPUSCOPE_VM:-$HOME/.cache/gpuscope-vm}; here=$(dirname "$(readlink -f "$0")")
K=$VM/k OUT=$VM/out; [ "${ARCH:-amd64}" = amd64 ] || { K=$VM/k/$ARCH OUT=$VM/out/$ARCH; }
[ $# -ge 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
script=$1; shift
read -ra kernels <<<"${KERNELS:-5.10 6.1 6.12 newest}"
"$here/kernels.sh" "${kernels[@]}"
mkdir -p "$OUT"; passed=0; failed=0
verdicts=$(mktemp -d); trap 'rm -rf "$verdicts"' EXIT
output_of() { echo "$OUT/$(basename "$script" .sh).$1"; }
# boot KERNEL: leaves a line for it
boot() {
  local k=$1 start=$SECONDS out complaints rc=0 verdict=ok; out=$(output_of "$k")
  "$here/boot.sh" "$k" "$script" "${files[@]}" >"$out" 2>&1 || rc=$?
  complaints=$(grep -c '^VM-DMESG' "$out" || true)
  { [ $rc -eq 0 ] && [ "$complaints" -eq 0 ]; } || verdict=FAILED
  echo "$verdict $k ($(readlink "$K/$k" || echo "$k")): status $rc, $complaints kernel complaints, $((SECONDS - start)) s" >"$verdicts/$k"
}
files=("$@")
for k in "${kernels[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "${TOGETHER:-1}" ]; do wait -n || true; done
  boot "$k" &
done
wait
for k in "${kernels[@]}"; do
  out=$(output_of "$k")
  cat "$verdicts/$k"
  grep -E '^(left out:|test result:|[0-9]+ passed)' "$out" | sed 's/^/    /' || true
  if grep -q '^ok' "$verdicts/$k"; then passed=$((passed + 1)); else failed=$((failed + 1)); grep FAILED "$out" || true; sed 's/^/    /' "$out"; fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
