#!/bin/bash
# platforms.sh - try what each command does on several kernels, as root, with two capabilities, and with none, and write the
# table of docs/platforms.md out of that. Needs target/release/gpuscope and sim/out.
# usage: platforms.sh [--table]     --table: of what the last run said, without another one
# ARCH=arm64: of aarch64, as `scripts/aarch64.sh platforms` calls it
# KERNELS="5.10 6.1 6.12 newest": which Debian kernels; columns of others stay as they are, or none do where nothing is said
set -euo pipefail
cd "$(dirname "$0")/../.."
VM=${GPUSCOPE_VM:-$HOME/.cache/gpuscope-vm}
kept=${KERNELS:+columns}
export LIMIT=${LIMIT:-1600} ARCH=${ARCH:-amd64}
case $ARCH in
  amd64) release=target/release sim=sim/out out=$VM/out SETPRIV=$(command -v setpriv) known="5.10 6.1 6.12 newest" ;;
  *) release=target/aarch64 sim=target/aarch64/sim out=$VM/out/$ARCH known="6.12 newest" ;;
esac
export KERNELS=${KERNELS:-$known}
status=0
if [ "${1:-}" != --table ]; then
  scripts/vm/matrix.sh scripts/vm/platforms-guest.sh $release/gpuscope scripts/vm/summary.sh "$SETPRIV" $sim/gpusim-static $sim/lib*.so.* || status=$?
fi

python3 - docs/platforms.md "$out" "$ARCH" "$kept" $KERNELS <<'PYTHON'
import pathlib, re, sys

page, outputs, processor, kept, *kernels = sys.argv[1:]
RIGHTS = {"root": "root", "two": "`CAP_BPF`, `CAP_PERFMON`", "none": "none"}
BEGIN, END = "<!-- kernels: scripts/vm/platforms.sh -->", "<!-- end of kernels -->"
if processor != "amd64":
    BEGIN = f"<!-- kernels: ARCH={processor} scripts/vm/platforms.sh -->"

path = pathlib.Path(page)
head, rest = path.read_text().split(BEGIN)
table, tail = rest.split(END, 1)
cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines() if kept]
versions = cells[0][2:] if cells else []
rows = {(command, rights): dict(zip(versions, answers)) for command, rights, *answers in cells[2:]}

for kernel in kernels:
    out = pathlib.Path(outputs, f"platforms-guest.{kernel}").read_text(errors="replace")
    up = re.search(r"^VM-UP \S+ (\d+\.\d+)", out, re.M)
    if not up or "VM-RC" not in out:
        sys.exit(f"platforms.sh: the guest of {kernel} did not come to its end")
    versions.append(up[1])
    for answers in rows.values():
        answers.pop(up[1], None)
    for command, rights, answer in re.findall(r"^CELL\|(.*)\|(.*)\|(.*)$", out, re.M):
        rows.setdefault((f"`{command}`", RIGHTS[rights]), {})[up[1]] = answer

versions = sorted(set(versions), key=lambda version: [int(part) for part in version.split(".")])
lines = ["| command | rights | " + " | ".join(versions) + " |", "|---" * (2 + len(versions)) + "|"]
for (command, rights), answers in rows.items():
    cells = [answers.get(version, "not tried") for version in versions]
    lines.append(f"| {command} | {rights} | " + " | ".join(cells) + " |")
path.write_text(head + BEGIN + "\n" + "\n".join(lines) + "\n" + END + tail)
PYTHON
exit $status
