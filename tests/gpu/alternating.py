"""What recording costs one running program: switched on and off in turns, so that neither another process nor another minute
of the machine is compared.

usage: alternating.py GPUSCOPE train|forward|ddp ROUNDS SECONDS

The program carries the agent (`gpuscope preload`). In each round nobody looks for SECONDS, then each way of looking has
SECONDS; a step counts where it lies wholly in a turn without the turn's first half (attaching) and last tenth. Prints
for each way the median of its ratios, the turn's median (and mean) step to that of the quiet turns before and after it, and
between which two of them the median of ever so many turns would lie, in 95 of 100 such runs.
ddp: a process for each of GPUS (2), all of them looked at; steps are rank 0's. CHOSEN: some of the ways, by name with `;` between.
"""
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GPUSCOPE, MODE, ROUNDS, SECONDS = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
STEPS_A_SECOND = {"train": 130, "forward": 4500, "ddp": 1000}
WAYS = {
    "record": ["record", "--engine", "inside", "--gpu", "off"],
    "record what is executed": ["record", "--engine", "inside", "--gpu", "on"],
    "leaks": ["leaks", "--engine", "inside"],
    "trace -q": ["trace", "-q", "--engine", "inside"],
    "serve": ["serve", "--listen", "127.0.0.1:9748"],
    "serve with sites": ["serve", "--listen", "127.0.0.1:9748", "--collect", "+sites"],
    "record by the kernel": ["record", "--engine", "kernel", "--gpu", "off"],
}
WAYS = {name: way for name, way in WAYS.items() if name in os.environ.get("CHOSEN", ";".join(WAYS)).split(";")}


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def look(way: list[str], pids: list[int], folder: Path) -> tuple[int, int, str]:
    """The time in which the program was looked at for sure, and what was said; no time where it was not looked at."""
    output = ["-o", str(folder / "now.arrows")] if way[0] == "record" else []
    (folder / "now.arrows").unlink(missing_ok=True)
    began = now()
    whose = [] if way[0] == "serve" else [word for pid in pids for word in ("-p", str(pid))]
    with subprocess.Popen([GPUSCOPE, *way, *output, *whose], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as looking:
        time.sleep(SECONDS)
        ended = now()
        looking.send_signal(signal.SIGINT)
        said = looking.communicate(timeout=60)[1]
    if looking.returncode != 0:
        return ended, ended, said
    return began + (ended - began) // 2, ended - (ended - began) // 10, said


def wait(seconds: float) -> tuple[int, int]:
    began = now()
    time.sleep(seconds)
    return began + (now() - began) // 10, now()


def step_of(begins: list[int], turn: tuple[int, int], middle) -> float:
    steps = [after - begin for begin, after in zip(begins, begins[1:]) if turn[0] <= begin and after <= turn[1]]
    return middle(steps) if steps else float("nan")


def working() -> list[int]:
    """The program's processes, without what has started them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(word.endswith("transformer.py") for word in words[1:4]) and "torch.distributed.run" not in words:
            found.append(int(folder.name))
    return found


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    times = folder / "times"
    total = ROUNDS * (1 + 2 * len(WAYS)) * SECONDS + 20
    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", os.environ.get("GPUS", "2")] if MODE == "ddp" else []
    program = subprocess.Popen(
        [GPUSCOPE, "preload", "--", "python3", *ranks, "tests/gpu/transformer.py", MODE, str(int(total * STEPS_A_SECOND[MODE])),
         "--times", str(times), "--end-on-interrupt"], stdout=subprocess.PIPE, text=True, start_new_session=True)
    for line in program.stdout:
        if line.startswith("BEGIN"):
            break
    turns, pids = [], working()
    for _ in range(ROUNDS):
        for name, way in WAYS.items():
            before = wait(SECONDS / 2)
            began, ended, said = look(way, pids, folder)
            turns.append((name, before, (began, ended), wait(SECONDS / 2), said))
    if MODE == "ddp":  # ranks that end at different steps would wait for each other; each leads a session of its own
        for pid in [program.pid, *pids]:
            os.kill(pid, signal.SIGKILL)
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=120)
    begins = [int(line) for line in times.read_text(encoding="ascii").split("\n")[:-1]]
    report(begins, turns)


def bounds_of_median(values: list[float]) -> tuple[float, float]:
    """Distribution-free, from the ranks of the sorted values; of few values the least and the most."""
    ordered, half = sorted(values), 0.98 * math.sqrt(len(values))
    low, high = math.floor(len(values) / 2 - half), math.ceil(len(values) / 2 + half)
    return ordered[max(low, 0)], ordered[min(high, len(values) - 1)]


def report(begins: list[int], turns: list) -> None:
    for name in WAYS:
        mine = [turn for turn in turns if turn[0] == name]
        for middle in (statistics.median, statistics.mean):
            quiet = [(step_of(begins, before, middle) + step_of(begins, after, middle)) / 2 for _, before, _, after, _ in mine]
            ratios = [step_of(begins, turn, middle) / other for (_, _, turn, _, _), other in zip(mine, quiet)]
            ratios, all_turns = [ratio for ratio in ratios if not math.isnan(ratio)], len(ratios)
            low, high = bounds_of_median(ratios)
            print(f"{MODE}: {name}: {middle.__name__} {statistics.median(ratios):.3f} (95 %: {low:.3f} to {high:.3f};",
                  f"{len(ratios)} of {all_turns} turns, {min(ratios):.3f} to {max(ratios):.3f})",
                  f"quiet {statistics.median(quiet) / 1e6:.3f} ms", flush=True)
        print("    " + mine[-1][4].strip().replace("\n", "\n    ")[-400:])


main()
