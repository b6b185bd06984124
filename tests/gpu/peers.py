"""What a training costs under gpuscope and under torch.profiler, in processes of their own, in turns; and what each leaves.

usage: peers.py GPUSCOPE ROUNDS [MODE [STEPS]]      MODE: of transformer.py (train)
       peers.py --profiled FILE STACKS PROGRAM ARGUMENT…      what is run for torch.profiler: writes its trace
KEPT: a folder for the last file of each way.
Prints for each way the median of its steps by the median of untraced ones, the time from the last step to the end of the process,
and the bytes of what it wrote.
"""
import collections
import json
import os
import runpy
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def profiled(file: str, stacks: bool, program: list[str]) -> None:
    from torch.profiler import ProfilerActivity, profile
    sys.argv = program
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=stacks) as found:
        runpy.run_path(program[0], run_name="__main__")
    found.export_chrome_trace(file)


def main(gpuscope: str, rounds: int, mode: str = "train", steps: str = "100") -> None:
    work = Path(tempfile.mkdtemp())
    program = [str(HERE / "transformer.py"), mode, steps]
    record = lambda *options: [gpuscope, "record", "--engine", "inside", *options, "-o", str(work / "written"), "--", sys.executable]
    under = lambda stacks: [sys.executable, __file__, "--profiled", str(work / "written"), stacks]
    ways = {"untraced": [sys.executable], "gpuscope record": record(), "gpuscope record --stacks launch": record("--stacks", "launch"),
            "torch.profiler": under(""), "torch.profiler, with_stack": under("1")}
    found = collections.defaultdict(list)
    for number in range(rounds):
        names = list(ways)[number % len(ways):] + list(ways)[:number % len(ways)]
        for name in names:
            (work / "written").unlink(missing_ok=True)
            ended = subprocess.run([*ways[name], *program], capture_output=True, text=True, timeout=120, check=False)
            over = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            said = {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in ended.stdout.splitlines() if " " in line}
            if ended.returncode or "STEP" not in said:
                print(f"{mode}: {name}: status {ended.returncode}: {ended.stderr[-300:]}", flush=True)
                continue
            if "KEPT" in os.environ and (work / "written").exists():
                shutil.copy(work / "written", Path(os.environ["KEPT"]) / "".join(letter if letter.isalnum() else "_" for letter in name))
            written = (work / "written").stat().st_size if (work / "written").exists() else 0
            found[name].append((json.loads(said["STEP"])["median_ms"], (over - int(said["END"])) / 1e9, written))
    base = statistics.median(row[0] for row in found["untraced"])
    for name, rows in found.items():
        step, after, written = (statistics.median(row[at] for row in rows) for at in range(3))
        print(f"{mode}: {name}: step {step:.3f} ms ({min(row[0] for row in rows):.3f}-{max(row[0] for row in rows):.3f}), {step / base:.3f} of untraced; "
              f"{after:.1f} s from the last step to the end; {written / (1 << 20):.1f} MiB", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--profiled":
        profiled(sys.argv[2], bool(sys.argv[3]), sys.argv[4:])
    else:
        main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
