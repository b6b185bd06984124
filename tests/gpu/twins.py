"""What looking at a program costs it, beside its twin: two programs that do the same at the same time, each on a GPU of its own, of
which one alone is looked at. What the machine does to both is not counted as the cost of looking.

usage: twins.py GPUSCOPE train|forward PAIRS TURNS SECONDS [start|cupti]
       twins.py --asks PROGRAM ARGUMENT…      what is run for cupti: SIGUSR2 has it ask CUPTI
Both carry the agent (`gpuscope preload`); by turns the first and the second GPU's is looked at. First nobody looks and `record`
looks, in TURNS turns of SECONDS each; then `record --gpu on` looks for as long in one go: CUPTI, once asked, costs also while nobody
asks, so that turns of it would compare it with itself. start: each way, and CUPTI alone, from the start of a program instead, as one
looks at what one starts. cupti: CUPTI alone, asked while the program works, without gpuscope. Both need CUPTI=cupti_records.so
(cupti_records.c). A turn's figure is the median step of the program by that of its twin; a way's
is the median of those by that of the quiet turns, and between which two it lies in 95 of 100 resamplings.
"""
import ctypes
import os
import random
import runpy
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CUPTI = os.environ.get("CUPTI")


def asks(program: list[str]) -> None:
    signal.signal(signal.SIGUSR2, lambda *_: ctypes.CDLL(CUPTI).InitializeInjection())
    sys.argv = program
    sys.path.insert(0, os.path.dirname(program[0]))
    runpy.run_path(program[0], run_name="__main__")


if sys.argv[1] == "--asks":
    asks(sys.argv[2:])
    sys.exit()

GPUSCOPE, MODE, PAIRS, TURNS, SECONDS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
WHEN = sys.argv[6] if len(sys.argv) > 6 else "turns"
RECORD = [GPUSCOPE, "record", "--engine", "inside", "--gpu"]
ENDLESS = "100000000"
RESAMPLINGS = 2000


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Program:
    """One that works on a GPU, with half of the processors for itself, and writes down when its steps begin."""

    def __init__(self, gpu: int, folder: Path, under: list[str]) -> None:
        self.times = folder / f"times{gpu}"
        half = os.cpu_count() // 2
        cpus = f"{gpu * half}-{gpu * half + half - 1}"
        command = ["taskset", "-c", cpus, *under, "tests/gpu/transformer.py", MODE, ENDLESS, "--times",
                   str(self.times), "--end-on-interrupt"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu)})

    def wait_for_work(self) -> None:
        for line in self.process.stdout:
            if line.startswith("READY"):
                self.pid = int(line.split()[1])
            if line.startswith("BEGIN"):
                return

    def end(self) -> list[int]:
        os.kill(self.pid, signal.SIGINT)
        self.process.communicate(timeout=60)
        return [int(line) for line in self.times.read_text(encoding="ascii").split("\n")[:-1]]


def step_of(begins: list[int], turn: tuple[int, int]) -> float:
    steps = [after - begin for begin, after in zip(begins, begins[1:]) if turn[0] <= begin and after <= turn[1]]
    return statistics.median(steps) if steps else float("nan")


def quiet() -> tuple[int, int]:
    began = now()
    time.sleep(SECONDS)
    return began + (now() - began) // 4, now()


def looking(pid: int, gpu: str, turns: int, folder: Path) -> list[tuple[int, int]]:
    """Turns in which it was looked at; none where it was not."""
    (folder / "now.arrows").unlink(missing_ok=True)
    with subprocess.Popen([*RECORD, gpu, "-o", str(folder / "now.arrows"), "-p", str(pid)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as recorder:
        time.sleep(SECONDS / 2)
        found = [quiet() for _ in range(turns)]
        recorder.send_signal(signal.SIGINT)
        said = recorder.communicate(timeout=60)[1]
    if recorder.returncode != 0:
        print("not looked at:", said[-300:], flush=True)
        return []
    return found


def bounds(ways: list[float], others: list[float]) -> tuple[float, float]:
    again = lambda values: statistics.median(random.choices(values, k=len(values)))
    found = sorted(again(ways) / again(others) for _ in range(RESAMPLINGS))
    return found[RESAMPLINGS // 40], found[-RESAMPLINGS // 40]


def started(folder: Path, under: list[list[str]]) -> list[Program]:
    both = [Program(gpu, folder, way) for gpu, way in enumerate(under)]
    for program in both:
        program.wait_for_work()
    time.sleep(2)
    return both


def from_start(looked_at: int) -> dict[str, list[float]]:
    """The same of programs that are started under each way."""
    figures = {}
    for way in ("quiet", "record", "record what is executed", "CUPTI alone"):
        folder = Path(tempfile.mkdtemp())
        under = {"quiet": [], "record": [*RECORD, "off", "-o", str(folder / "now.arrows"), "--"],
                 "record what is executed": [*RECORD, "on", "-o", str(folder / "now.arrows"), "--"],
                 "CUPTI alone": ["env", f"CUDA_INJECTION64_PATH={CUPTI}", f"CUPTI_RECORDS={folder / 'records'}"]}[way]
        both = started(folder, [[*(under if gpu == looked_at else []), sys.executable] for gpu in (0, 1)])
        turns = [quiet() for _ in range(TURNS)]
        begins = [program.end() for program in both]
        figures[way] = [step_of(begins[looked_at], turn) / step_of(begins[1 - looked_at], turn) for turn in turns]
    return figures


def by_gpuscope(pid: int, folder: Path) -> dict[str, list[tuple[int, int]]]:
    turns = {"quiet": [], "record": []}
    for _ in range(TURNS):
        turns["quiet"].append(quiet())
        turns["record"] += looking(pid, "off", 1, folder)
    return {**turns, "record what is executed": looking(pid, "on", TURNS, folder)}


def by_cupti(pid: int) -> dict[str, list[tuple[int, int]]]:
    before = [quiet() for _ in range(TURNS)]
    os.kill(pid, signal.SIGUSR2)
    time.sleep(3)
    return {"quiet": before, "CUPTI alone": [quiet() for _ in range(TURNS)]}


def pair(looked_at: int) -> dict[str, list[float]]:
    folder = Path(tempfile.mkdtemp())
    asks_itself = [sys.executable, __file__, "--asks"]
    both = started(folder, [asks_itself if WHEN == "cupti" else [GPUSCOPE, "preload", "--", sys.executable]] * 2)
    pid = both[looked_at].pid
    turns = by_cupti(pid) if WHEN == "cupti" else by_gpuscope(pid, folder)
    begins = [program.end() for program in both]
    mine, twins = begins[looked_at], begins[1 - looked_at]
    print(f"{MODE}: GPU {looked_at}: a quiet step takes {statistics.median(step_of(mine, turn) for turn in turns['quiet']) / 1e6:.2f} ms, "
          f"the twin's {statistics.median(step_of(twins, turn) for turn in turns['quiet']) / 1e6:.2f} ms", flush=True)
    figures = {way: [step_of(mine, turn) / step_of(twins, turn) for turn in of] for way, of in turns.items()}
    return {way: [figure for figure in of if figure == figure] for way, of in figures.items()}


def main() -> None:
    random.seed(1)
    together: dict[str, list[float]] = {}
    for number in range(PAIRS):
        figures = from_start(number % 2) if WHEN == "start" else pair(number % 2)
        usual = statistics.median(figures["quiet"])
        for way, of in figures.items():
            if not of:
                continue
            together.setdefault(way, []).extend(figure / usual for figure in of)
            low, high = bounds(of, figures["quiet"])
            print(f"{MODE}: GPU {number % 2}: {way}: {statistics.median(of) / usual:.3f} (95 %: {low:.3f} to {high:.3f}; {len(of)} turns)", flush=True)
    for way, of in together.items():
        low, high = bounds(of, together["quiet"])
        print(f"{MODE}: all: {way}: {statistics.median(of):.3f} (95 %: {low:.3f} to {high:.3f}; {len(of)} turns)", flush=True)


main()
