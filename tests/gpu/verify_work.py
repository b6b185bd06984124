"""Compares what gpuscope says of kernels, copies and idle time with CUPTI's records and the programs' own clocks.

usage: verify_work.py GPUSCOPE WORK OUT SECONDS      Started by scripts/verify-gpu-work.sh.
WORK holds the built programs and libraries; work-figures.txt, work-samples.txt and logs go to OUT.
"""
import os
import re
import shutil
import signal
import sys
import time

from cupti import Copies, Records
from harness import (GPUSCOPE, HERE, INSIDE, LAUNCHES, OUT, WORK, Failed, Live, attempt, check, counting, info, last_json,
                     read_counts, run, sample, trace, traced, write_figures)
from work_summary import Work, graph_kernel_runs, kernel_runs, launches, unnamed

LOGS = WORK / "logs"
ROUNDS = 100
BANDWIDTH_SIZES = [(64 << 10, 400), (1 << 20, 200), (16 << 20, 40), (256 << 20, 6)]
# a call of that many bytes takes so little time that the probes of its own measurement show in it
MEASURABLE_BYTES = 1 << 20


# ---- running with CUPTI inside ----

def recorded(program, name: str):
    """The command with CUPTI's records written to the logs."""
    library = WORK / "cupti_records.so"
    return ["env", f"CUDA_INJECTION64_PATH={library}", f"CUPTI_RECORDS={LOGS / name}.records", *program]


def records_of(name: str, pid: int | None = None) -> Records:
    """Of the process, else of the one with the most records."""
    found = [Records(path) for path in LOGS.glob(f"{name}.records.*")]
    found = [records for records in found if pid in (None, records.pid)]
    if not found:
        raise Failed(f"{name}: CUPTI wrote nothing")
    records = max(found, key=lambda records: len(records.work))
    check(f"{name}: CUPTI's records are complete", True, records.complete())
    info(f"{name}: CUPTI's clock against CLOCK_MONOTONIC", f"within {records.clock_error_ns()} ns")
    return records


def marks(out: str) -> tuple[int, int]:
    return tuple(int(re.search(rf"^{name} (\d+)$", out, re.M)[1]) for name in ("BEGIN", "END"))


def from_start(program, name: str):
    """(stdout, summary, records) of a program that is traced from its start."""
    status, out, summary = traced(recorded(program, name), ["-q"], name, 150)
    check(f"{name}: exit status", 0, status)
    return out, summary, records_of(name)


def attached_late(program, name: str, last: str):
    """The same of a program that is attached to when it says READY; `last` is its last line."""
    with Live(recorded(program, name), f"{name}-program") as live:
        pid = int(live.await_line("READY", 150).split()[1])
        with trace(["-p", pid, "-q"], name) as tracer:
            live.send_line()
            live.await_line(f"^{last}", 100)
            time.sleep(0.3)
            summary = last_json(tracer.finish(signal.SIGINT))
        live.send_line()
        out = live.finish()
    check(f"{name}: program's exit status", 0, live.child.returncode)
    return out, summary, records_of(name, pid)


def work_of(name: str, summary: dict, records: Records) -> Work:
    work = Work(summary, records.pid)
    if not work.known():
        raise Failed(f"{name}: the summary says nothing of work")
    check(f"{name}: records of work lost", 0, sum(work.lost().values()))
    return work


# ---- comparing ----

def check_named(name: str, summary: dict) -> None:
    total, without = launches(summary), unnamed(summary)
    share = 1 - sum(without.values()) / max(total, 1)
    info(f"{name}: launches, kernels, launches without a name", (total, len(summary["kernels"]), without))
    check(f"{name}: at least 99.9 % of launches named", True, total > 0 and share >= 0.999)


def check_kernels(what: str, made: dict[str, int], seen: dict[str, int]) -> None:
    names = {*made, *seen}
    differ = {name: (made.get(name, 0), seen.get(name, 0)) for name in names if made.get(name, 0) != seen.get(name, 0)}
    check(f"{what}, {len(names)} kernels: runs, kernels that differ (CUPTI, gpuscope)", (sum(made.values()), {}),
          (sum(seen.values()), dict(list(differ.items())[:8])))


def folded(copies: dict[tuple, Copies]) -> dict[tuple, Copies]:
    """Without the host's end."""
    sums: dict[tuple, Copies] = {}
    for (direction, _), made in copies.items():
        sums.setdefault((direction, None), Copies()).add(made.count, made.bytes)
    return sums


def check_copies(name: str, records: Records, work: Work, hosts: bool) -> None:
    made, seen = records.copies(), work.copies()
    if not hosts:
        info(f"{name}: hosts' ends, CUPTI's and gpuscope's", (made, seen))
        made, seen = folded(made), folded(seen)
    untold = seen.pop((None, None), Copies())
    if untold.count:
        check_untold(name, made, seen, untold)
        return
    for key in sorted({*made, *seen}, key=str):
        check(f"{name}: copies {key[0]} {key[1] or ''}", made.get(key, Copies()), seen.get(key, Copies()))


def check_untold(name: str, made: dict, seen: dict, untold: Copies) -> None:
    """Where gpuscope says of some copies that it does not know their direction: the others are right, none is lost."""
    missing = {}
    for key in {*made, *seen}:
        one, other = made.get(key, Copies()), seen.get(key, Copies())
        if one != other:
            missing[key] = Copies(one.count - other.count, one.bytes - other.bytes)
    info(f"{name}: copies whose direction is not known, and where they belong", (untold, missing))
    check(f"{name}: none is put where it does not belong", True,
          all(copies.count > 0 and copies.bytes >= 0 for copies in missing.values()))
    check(f"{name}: copies in all", sum(copies.count for copies in made.values()),
          untold.count + sum(copies.count for copies in seen.values()))


def check_idle(name: str, records: Records, work: Work, share: float | None = None) -> None:
    """`records`: those of the window and no others, where the summary does not say when it was."""
    bounds = work.window_bounds()
    true_idle = records.idle_within(*bounds) if bounds else work.window_ns() - records.busy_ns()
    true_busy = work.window_ns() - true_idle
    reached = work.idle_ns() / true_idle if true_idle > 0 else 1.0
    info(f"{name}: window, true idle, idle at least (ms), share reached, certainty, notes",
         (*(round(value / 1e6, 3) for value in (work.window_ns(), true_idle, work.idle_ns())), round(reached, 4),
          work.certainty(), work.notes()))
    check(f"{name}: idle at least <= true idle", True, work.idle_ns() <= true_idle)
    check(f"{name}: busy at most >= true busy", True, work.busy_ns() >= true_busy)
    check(f"{name}: they add up to the window (within 1 us)", True,
          abs(work.idle_ns() + work.busy_ns() - work.window_ns()) <= 1000)
    if share is not None:
        check(f"{name}: idle at least reaches {share:.0%} of it", True, reached >= share)


# ---- parts ----

def part_transformer(mode: str, steps: int) -> None:
    name = f"transformer-{mode}"
    counts = WORK / f"{name}.counts"
    out, summary, records = from_start(counting([sys.executable, HERE / "transformer.py", mode, steps], counts), name)
    made = read_counts(counts)
    check_named(name, summary)
    check(f"{name}: launches, against the independent counter", sum(made.get(n, 0) for n in LAUNCHES),
          launches(summary))
    if mode == "compile":
        triton = sum(runs for kernel, runs in kernel_runs(summary).items() if kernel.startswith("triton_"))
        check(f"{name}: kernels by Triton are among them", True, triton >= steps)
    check_kernels(f"{name}: launches", records.kernels(False), kernel_runs(summary))
    check_kernels(f"{name}: in graphs", records.kernels(True), graph_kernel_runs(summary))
    work = work_of(name, summary, records)
    check(f"{name}: graph launches", last_json(out, "RAN ")["graph_launches"] + (3 if mode == "graph" else 0),
          work.graphs()["launches"])
    check(f"{name}: kernels by graph launches", sum(records.kernels(True).values()), work.graphs()["kernels"])
    check_copies(name, records, work, hosts=True)
    check_idle(name, records, work)


def part_transformer_late(mode: str, steps: int) -> None:
    name = f"transformer-{mode}-late"
    out, summary, records = attached_late([sys.executable, HERE / "transformer.py", mode, steps, "--wait"], name, "RAN")
    during = records.between(*marks(out))
    if mode != "graph":
        check_named(name, summary)
    check_kernels(f"{name}: launches", during.kernels(False), kernel_runs(summary))
    work = work_of(name, summary, records)
    check(f"{name}: graph launches", last_json(out, "RAN ")["graph_launches"], work.graphs()["launches"])
    check_copies(name, during, work, hosts=False)
    check_idle(name, during, work)


def part_copies() -> None:
    _, summary, records = from_start([WORK / "copies"], "copies")
    check_copies("copies", records, work_of("copies", summary, records), hosts=True)


def part_copies_late() -> None:
    _, summary, records = attached_late([WORK / "copies", "--wait"], "copies-late", "DONE")
    check_copies("copies-late", records, work_of("copies-late", summary, records), hosts=False)


def part_bandwidth(size: int, count: int, manner: str) -> None:
    name = f"bandwidth-{size >> 10}K-{manner}"
    status, out, summary = traced([WORK / "bandwidth", size, count, manner], ["-q"], name)
    check(f"{name}: exit status", 0, status)
    work = Work(summary)
    if not work.known():
        raise Failed(f"{name}: the summary says nothing of work")
    for own in last_json(out, "BANDWIDTH ")["rows"]:
        rows = work.copy_rows(own["direction"], own["host"])
        what = f"{manner} copies of {size >> 10} KiB, {own['direction']} {own['host']}"
        check(f"{what}: count, bytes", [(own["count"], own["bytes"])], [(row["count"], row["bytes"]) for row in rows])
        for row in rows:
            compare_bandwidth(what, size, manner, own["bytes"] / own["seconds"], row)


def compare_bandwidth(what: str, size: int, manner: str, own: float, row: dict) -> None:
    if not row["bytes_per_second"]:
        check(f"{what}: a bandwidth is said", True, False)
        return
    ratio = row["bytes_per_second"] / own
    info(f"{what}: the program measures, gpuscope says (GB/s), ratio, certainty",
         (round(own / 1e9, 2), round(row["bytes_per_second"] / 1e9, 2), round(ratio, 3), row["certainty"]))
    if manner == "asynchronous":
        check(f"{what}: not more than events measure, but for 10 %", True, ratio <= 1.1)
    elif size >= MEASURABLE_BYTES:
        check(f"{what}: within 10 %", (True, "measured"), (0.9 <= ratio <= 1.1, row["certainty"]))


def part_idle(scenario: str) -> None:
    out, summary, records = from_start([WORK / "idle", scenario, ROUNDS], scenario)
    work = work_of(scenario, summary, records)
    check_idle(scenario, records, work, 0.8 if scenario.startswith("wait_") else None)
    own = last_json(out, "ELAPSED ")
    count, total_ms = work.elapsed()
    check(f"{scenario}: times between events, their sum within 1 us each", (own["count"], True),
          (count, abs(own["ms"] - total_ms) <= 1e-3 * max(own["count"], 1)))


def part_text() -> None:
    program = [sys.executable, HERE / "transformer.py", "train", 20]
    _, _, err = run([GPUSCOPE, "run", "-q", "--", *program], 90, log="text")
    sample("gpuscope run -q -- python3 transformer.py train 20", err, 150)
    _, _, err = run([GPUSCOPE, "run", "-q", "--", WORK / "copies"], 60, log="text-copies")
    sample("gpuscope run -q -- copies", err, 120)


def main() -> None:
    LOGS.mkdir(exist_ok=True)
    parts = os.environ.get("VERIFY_PARTS", "transformer late copies bandwidth idle text").split()
    _, scenarios, _ = run([WORK / "idle", "list"])
    modes = [("train", 20), ("graph", 50), ("compile", 20)]
    plan = {
        "idle": [(scenario, part_idle, scenario) for scenario in scenarios.split()],
        "copies": [("copies", part_copies), *([] if INSIDE else [("copies-late", part_copies_late)])],
        "bandwidth": [(f"bandwidth {size} {manner}", part_bandwidth, size, count, manner)
                      for size, count in BANDWIDTH_SIZES for manner in ("synchronous", "asynchronous")],
        "transformer": [(f"transformer {mode[0]}", part_transformer, *mode) for mode in modes],
        "late": [] if INSIDE else [(f"transformer {mode[0]}, late", part_transformer_late, *mode) for mode in modes],
        "text": [("text", part_text)],
    }
    for part in parts:
        for name, *call in plan[part]:
            attempt(name, *call)
    good = write_figures("work-figures.txt", "work-samples.txt")
    shutil.make_archive(str(OUT / "work-logs"), "gztar", LOGS)
    sys.exit(not good)


main()
