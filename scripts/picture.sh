#!/bin/bash
# picture.sh - make docs/run.svg from two real traces of the simulated training loop; in the first, the third kernel launch fails.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh
sim/build.sh
gpuscope=$PWD/target/release/gpuscope
mine() { grep -v '^GPUSIM \|^train: '; } # the simulated program prints its own counts

broken=(run --filter @alloc --filter @launch -- sim/out/gpusim train 1)
lines=$(GPUSIM_FAIL=cuLaunchKernel:3=719 "$gpuscope" "${broken[@]:0:1}" --color always "${broken[@]:1}" 2>/dev/null | mine || true) # the program fails, as asked
whole=(run -q -- sim/out/gpusim train 3000)
summary=$("$gpuscope" "${whole[@]}" 2>&1 >/dev/null | mine)
{
  echo "\$ gpuscope ${broken[*]}"
  printf '%s\n' "$lines"
  echo
  echo "\$ gpuscope ${whole[*]}"
  head -n 10 <<<"$summary"
  echo "…"
  sed -n '/^copies/,$p' <<<"$summary"
} | python3 scripts/ansi_to_svg.py 140 >docs/run.svg
echo "docs/run.svg"
