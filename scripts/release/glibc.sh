#!/bin/bash
# glibc.sh - fails where a program needs a newer glibc than it may.
# usage: glibc.sh PROGRAM [NEWEST]       NEWEST: 2.28 unless said
set -euo pipefail
program=${1:?usage: glibc.sh PROGRAM [NEWEST]} newest=${2:-2.28}
needed=$(readelf --version-info --wide "$program" | grep -o 'GLIBC_[0-9.]*' | sort -u -V | sed 's/^GLIBC_//')
[ -n "$needed" ] || { echo "glibc.sh: $program: no version of glibc is named: is it linked to it?" >&2; exit 1; }
most=$(tail -1 <<<"$needed")
if [ "$(printf '%s\n' "$most" "$newest" | sort -V | tail -1)" != "$newest" ]; then
  echo "glibc.sh: $program needs glibc $most, newer than $newest:" >&2
  objdump -T "$program" | grep -F "GLIBC_$most" >&2
  exit 1
fi
echo "glibc: $most; libraries: $(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | xargs)"
