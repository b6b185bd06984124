#!/usr/bin/env python3
"""Runs every scenario and program, and compares what they say with what the libraries counted."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

OUT = pathlib.Path(__file__).resolve().parent / "out"
RUNS = [
    "gpusim train 20", "gpusim leak 20", "gpusim churn 10", "gpusim pool 20", "gpusim kinds",
    "gpusim vmm", "gpusim tiny-launches 2000", "gpusim sync-stall 50", "gpusim graph 20",
    "gpusim threads 8 50", "gpusim hammer 10000 1", "gpusim hammer 0 1 4", "gpusim errors",
    "gpusim recursion", "gpusim longjmp", "gpusim thread-exit-midcall", "gpusim exec-midcall",
    "gpusim kill", "gpusim fork", "gpusim late-dlopen", "gpusim static",
    "gpusim-static train 20", "gpusim-static-stripped errors", "gpusim-static threads",
]


def counts(objects, key):
    total = collections.Counter()
    for one in objects:
        total.update(one.get(key, {}))
    return total


# (programs that keep a book, how they end, more of the environment)
PROGRAMS = [
    ("gpusim memory --seed 1 --steps 2000 --threads 4", 0, {}),
    ("gpusim memory --seed 2 --steps 1000 --threads 1 --end leak", 0, {}),
    ("gpusim memory --seed 3 --steps 1000 --devices 3 --end leak", 0, {"GPUSIM_DEVICES": "3"}),
    ("gpusim memory --seed 4 --steps 1000 --devices 2 --end reset", 0, {"GPUSIM_DEVICES": "2"}),
    ("gpusim memory --seed 5 --steps 1000 --devices 2 --end destroy", 0, {"GPUSIM_DEVICES": "2"}),
    ("gpusim memory --seed 6 --steps 500 --end kill", -9, {}),
    ("gpusim memory --seed 7 --steps 500 --end exec", 0, {}),
    ("gpusim memory --seed 8 --steps 1000 --end leak", 0, {"GPUSIM_FAIL": "cuMemAlloc_v2:9,cuMemFree_v2:5+=1,cuMemCreate:2,cuMemUnmap:3=1,cuMemRelease:4=1,cuMemAddressReserve:3,cuMemHostRegister_v2:2+=1"}),
    ("gpusim memory --seed 9 --steps 2000 --end exit", 0, {"GPUSIM_MEMORY": "64MiB"}),
    ("gpusim-static memory --seed 10 --steps 500 --end leak", 0, {}),
    ("gpusim-static-stripped memory --seed 11 --steps 500", 0, {}),
    ("gpusim churn --rate 20000 --seconds 1 --threads 2", 0, {}),
    ("gpusim churn --rate 0 --seconds 1 --threads 3", 0, {}),
    ("gpusim hold --count 20000", 0, {}),
    ("gpusim vmm --steps 200", 0, {}),
    ("gpusim vmm --steps 20 --end leak", 0, {}),
    ("gpusim pools --steps 300", 0, {}),
    ("gpusim graphmem --steps 10", 0, {}),
    ("gpusim ipc --count 5", 0, {}),
    ("gpusim leak --sites 3 --steps 50", 0, {}),
    ("gpusim leak --sites 2 --steps 50", 0, {}),
    ("gpusim-driver 8", 0, {}),
    ("gpusim-driver 8 leak", 0, {}),
    ("gpusim-driver 8 release", 0, {}),
    ("gpusim memory --seed 12 --devices 2", 0, {"GPUSIM_DEVICES": "3", "CUDA_VISIBLE_DEVICES": "2,0"}),
]

# (programs that give work, more of the environment)
WORK = [
    ("gpusim copies --seed 1", {}),
    ("gpusim copies --seed 2 --steps 3000 --bytes 300000", {"GPUSIM_DATA": "1"}),
    ("gpusim copies --seed 3 --steps 1000", {"GPUSIM_DEVICES": "3", "GPUSIM_DATA": "1"}),
    ("gpusim copies --seed 4 --steps 300", {"GPUSIM_COPY_BYTES_PER_US": "1000", "GPUSIM_KERNEL_NS": "300000"}),
    ("gpusim-static copies --seed 5", {"GPUSIM_COPY_BYTES_PER_US": "0", "GPUSIM_KERNEL_NS": "0"}),
    ("gpusim stall --steps 20", {}),
    ("gpusim stall --steps 20 --kernels 3 --sync stream --kernel-ns 300000", {}),
    ("gpusim stall --steps 20 --sync event --kernel-ns 300000", {}),
    ("gpusim streams --seed 1 --steps 1000", {}),
    ("gpusim streams --seed 2 --steps 1000 --left 5 --events-left 0 --kernel-ns 200000", {}),
    ("gpusim graphs --seed 1", {}),
    ("gpusim-static-stripped graphs --seed 2 --replays 50", {}),
    ("gpusim item", {}),
    ("gpusim item --host pinned", {}),
    ("gpusim backpressure --launches 2000", {}),
    ("gpusim backpressure --launches 300", {"GPUSIM_QUEUE": "16"}),
    ("gpusim backpressure --launches 2000", {"GPUSIM_QUEUE": "0"}),
]

FIGURES = ("outstanding", "held_bytes", "allocations", "allocated_bytes", "frees", "freed_bytes", "failed_allocations")
OF_DEVICES = {"device", "managed", "async", "physical", "array", "mipmapped", "graph"}


def books(folder):
    lines = []
    for file in sorted(pathlib.Path(folder).glob("book.*")):
        if file.suffix != ".json":
            said = subprocess.run([OUT / "gpusim", "book", file], capture_output=True, text=True, check=True)
            lines += [json.loads(line) for line in said.stdout.splitlines()]
    return lines


def rows(book):
    return {(row["family"], row["device"]): row for row in book["families"]}


def inconsistencies(book):
    """What must hold in every book, whatever the program did."""
    for row in book["families"] + book["devices"] + [book["host"]]:
        name = f"{book['pid']} {row.get('family', 'total')} {row.get('device')}"
        if row["outstanding"] != row["allocations"] - row["frees"]:
            yield f"{name}: outstanding is not allocations less frees: {row}"
        if row["held_bytes"] != row["allocated_bytes"] - row["freed_bytes"]:
            yield f"{name}: held is not allocated less freed: {row}"
        if row["peak_bytes"] < row["held_bytes"]:
            yield f"{name}: peak is below what is held: {row}"
        ended = row["ended_by"]
        if sum(e["count"] for e in ended) != row["frees"] or sum(e["bytes"] for e in ended) != row["freed_bytes"]:
            yield f"{name}: the ways to go do not add up: {row}"
    for total in book["devices"]:
        own = [r for r in book["families"] if r["device"] == total["device"] and r["family"] in OF_DEVICES]
        for figure in FIGURES:
            if sum(r[figure] for r in own) != total[figure]:
                yield f"{book['pid']} device {total['device']}: {figure} is not the sum of its families"


def differences(said, book, more):
    """What a program says of itself and the book does not, or the other way round."""
    own, kept = rows(said), rows(book)
    for key in sorted(set(own) | set(kept)):
        figures = FIGURES[:2] if key[0] == "pool" else FIGURES
        if key[0] == "pool" and key not in own:
            continue
        for figure in figures:
            pair = own.get(key, {}).get(figure, 0), kept.get(key, {}).get(figure, 0)
            if pair[0] != pair[1]:
                yield f"{book['pid']} {key[0]} {key[1]}: {figure}: program {pair[0]}, book {pair[1]}"
    # A free that fails on demand is not asked what it was to free.
    on_demand = "Free" in os.environ.get("GPUSIM_FAIL", "") + more.get("GPUSIM_FAIL", "")
    for figure in ("failed_frees",) if on_demand else ("failed_frees", "double_frees", "unknown_frees"):
        if said[figure] != book[figure]:
            yield f"{book['pid']} {figure}: program {said[figure]}, book {book[figure]}"


def run_program(command, status, more):
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, GPUSIM_BOOK=f"{folder}/book.%p", **more)
        name, *args = command.split()
        done = subprocess.run([OUT / name, *args], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        said = {(one["pid"]): one for one in (json.loads(l[12:]) for l in done.stdout.splitlines() if l.startswith("GPUSIM-BOOK "))}
        kept = books(folder)
    problems = [] if done.returncode == status else [f"exit status {done.returncode}: {done.stderr.strip()}"]
    problems += [] if said else ["no GPUSIM-BOOK line"]
    first = {}
    for book in kept:
        problems += inconsistencies(book)
        problems += [] if book["inside"] == 0 else [f"{book['inside']} calls never left"]
        first.setdefault(book["pid"], book)
    for pid, one in said.items():
        problems += differences(one, first[pid], more) if pid in first else [f"no book of {pid}"]
    return show(command, done.stdout, problems)


def what_ran(line):
    """What a program calls an operation that is a line of the log of work."""
    if line["op"] == "kernel":
        return f"kernel {line['name']}"
    return " ".join(filter(None, (line["op"], line["direction"], line["host"])))


def impossible(lines, queue):
    """What cannot be in a log of work of one thread, whatever the program did."""
    done, legacy, blocking, kernels = {}, 0, 0, []
    # The end that the call before had to wait for, and when that call began.
    awaited, began = 0, 0
    for line in lines:
        entered = line.get("entered_ns", line.get("submitted_ns", 0))
        if entered > began and entered < awaited:
            yield f"called before a copy was done that is waited for: {line}"
        waits = line.get("blocking") and (line["direction"] in ("DtoH", "HtoH") or line["host"] == "pinned")
        awaited, began = (line["end_ns"], entered) if waits else (0 if entered else awaited, entered or began)
        if "sync" in line:
            waited = [end for stream, end in done.items() if line.get("stream", stream) == stream]
            if "event" not in line and waited and max(waited) > line["returned_ns"]:
                yield f"returned before the work was done: {line}"
        elif "elapsed_ms" in line:
            if abs(line["elapsed_ms"] - (line["end_ns"] - line["start_ns"]) / 1e6) > 1e-6 * abs(line["elapsed_ms"]):
                yield f"not the time between the events: {line}"
        else:
            start, end, stream = line["start_ns"], line["end_ns"], (line["context"], line["stream"])
            if start < max(line["submitted_ns"], done.get(line["stream"], 0)) or end < start:
                yield f"out of order: {line}"
            if line["stream"] == 0:
                if start < blocking:
                    yield f"before the work of a blocking stream: {line}"
                legacy = max(legacy, end)
            if line["stream"] == 2:
                if start < legacy:
                    yield f"before the work of the legacy default stream: {line}"
                blocking = max(blocking, end)
            if line["api"].endswith(("_ptsz", "_ptds")) and stream[1] == 0:
                yield f"in the wrong default stream: {line}"
            done[line["stream"]] = max(done.get(line["stream"], 0), end)
            kernels += [line] if line["op"] == "kernel" else []
    for before, after in zip(kernels, kernels[queue + 1 :]) if queue else ():
        if before["stream"] == after["stream"] and len({k["stream"] for k in kernels}) == 1 and after["submitted_ns"] < before["end_ns"]:
            yield f"more than {queue} kernels in a queue: {after}"


def run_work(command, more):
    """A program's own count of its work against the log, and the log against itself."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "work"
        name, *args = command.split()
        done = subprocess.run([OUT / name, *args], env=dict(os.environ, GPUSIM_WORK=str(log), **more), capture_output=True, text=True)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
    problems = [] if done.returncode == 0 else [f"exit status {done.returncode}: {done.stderr.strip()}"]
    said = [json.loads(l[12:])["work"] for l in done.stdout.splitlines() if l.startswith("GPUSIM-WORK ")]
    ran = collections.defaultdict(lambda: [0, 0])
    for line in lines:
        if "op" in line:
            row = ran[what_ran(line)]
            row[0], row[1] = row[0] + 1, row[1] + line["bytes"]
    if len(said) != 1:
        problems.append("no GPUSIM-WORK line")
    for what in sorted({*ran, *(said[0] if said else ())}):
        own = said[0].get(what, [0, 0]) if said else None
        if own != ran[what]:
            problems.append(f"{what}: program {own}, log {ran[what]}")
    problems += impossible(lines, int(more.get("GPUSIM_QUEUE", 1024)))
    return show(command, done.stdout, problems)


def run_work_killed():
    """A program killed at any moment leaves a log of whole lines."""
    problems, counts = [], []
    for number in range(10):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "work"
            command = [OUT / "gpusim", "copies", "--steps", "100000000", "--seed", str(number)]
            with subprocess.Popen(command, env=dict(os.environ, GPUSIM_WORK=str(log)), stdout=subprocess.DEVNULL) as program:
                time.sleep(0.05 + 0.013 * number)
                program.kill()
            # the kernel may cut the write that the signal meets
            text = log.read_text()
            lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
            problems += impossible(lines, 1024)
            counts.append(len(lines))
    return show("gpusim copies, killed 10 times", f"{min(counts)} to {max(counts)} lines", problems)


def run_killed():
    """A program killed from outside at any moment leaves a book that adds up."""
    problems, held = [], []
    for number in range(20):
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, GPUSIM_BOOK=f"{folder}/book.%p")
            command = [OUT / "gpusim", "memory", "--steps", "100000000", "--seed", str(number), "--fork", "0"]
            with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as program:
                time.sleep(0.05 + 0.013 * number)
                live = books(folder)
                program.kill()
            kept = books(folder)
            for book in live + kept:
                problems += inconsistencies(book)
            problems += [] if kept else ["no book"]
            held += [sum(t["held_bytes"] for t in book["devices"]) for book in kept]
    return show("gpusim memory, killed 20 times", f"held {min(held)} to {max(held)} bytes", problems)


def show(command, stdout, problems):
    human = next((l for l in stdout.splitlines() if not l.startswith("GPUSIM")), "")
    print("FAIL" if problems else "ok  ", f"{command:32}", human)
    for problem in problems[:20]:
        print("      ", problem)
    return not problems


def run(command):
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, GPUSIM_LEDGER=f"{folder}/%p")
        name, *args = command.split()
        done = subprocess.run([OUT / name, *args], env=env, capture_output=True, text=True)
        said = [json.loads(l[7:]) for l in done.stdout.splitlines() if l.startswith("GPUSIM ")]
        layers = {"runtime": [], "driver": []}
        for file in pathlib.Path(folder).glob("*.json"):
            for line in file.read_text().splitlines():
                one = json.loads(line)
                layers[one["layer"]].append(one)
    problems = []
    if done.returncode not in ((-9,) if args[0] == "kill" else (0,)):
        problems.append(f"exit status {done.returncode}: {done.stderr.strip()}")
    runtime, driver = layers["runtime"], layers["driver"]
    # `static` and `late-dlopen` replace a program that registered its kernels first.
    said_calls, counted = counts(said, "calls"), counts(runtime, "calls")
    if args[0] in ("static", "late-dlopen"):
        for name in ("__cudaRegisterFatBinary", "__cudaRegisterFunction", "__cudaRegisterFatBinaryEnd"):
            counted[name] -= 8 if name.endswith("Function") else 1
    for name in sorted(set(said_calls) | set(counted)):
        if said_calls[name] != counted[name]:
            problems.append(f"{name}: program {said_calls[name]}, ledger {counted[name]}")
    said_driver = counts(said, "driver_calls")
    for name in said_driver:
        if said_driver[name] != counts(driver, "calls")[name]:
            problems.append(f"{name}: program {said_driver[name]}, ledger {counts(driver, 'calls')[name]}")

    def errors(objects):
        total = collections.Counter()
        for one in objects:
            for name, codes in one.get("errors", {}).items():
                for code, n in codes.items():
                    total[name, code] += n
        return total

    if errors(said) != errors(runtime):
        problems.append(f"errors: program {dict(errors(said))}, ledger {dict(errors(runtime))}")
    launches = sum(o["launches"] for o in said), sum(o["launches"] for o in driver)
    if launches[0] != launches[1]:
        problems.append(f"launches: program {launches[0]}, driver {launches[1]}")
    if not said:
        problems.append("no GPUSIM line")
    return show(command, done.stdout, problems)


if __name__ == "__main__":
    results = [run(c) for c in (sys.argv[1:] or RUNS)]
    if not sys.argv[1:]:
        results += [run_program(*program) for program in PROGRAMS] + [run_killed()]
        results += [run_work(*program) for program in WORK] + [run_work_killed()]
    sys.exit(0 if all(results) else 1)
