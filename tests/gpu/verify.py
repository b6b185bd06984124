"""Compares what gpuscope counts with what CUDA programs on a real GPU made. Started by scripts/verify-gpu.sh.

usage: verify.py GPUSCOPE WORK OUT SECONDS      WORK holds the built programs; figures, samples and logs go to OUT.

Each part is independent: one that fails or runs out of time is a FAIL line, and the next one is run.
"""
import gzip
import json
import os
import re
import shutil
import signal
import statistics
import sys
import time
from pathlib import Path

import harness
from harness import (GPUSCOPE, HERE, INSIDE, LAUNCHES, OUT, WORK, Failed, Live, check, counting, info, last_json, lines,
                     read_counts, run, sample, trace, traced)

VARIANTS = os.environ.get("VERIFY_VARIANTS", "shared static stripped perthread").split()
# what the runtime may ask of the driver before it initializes it
LOOK_UPS = {"cuGetProcAddress", "cuGetProcAddress_v2", "cuDriverGetVersion", "cuGetExportTable"}


# ---- comparing ----

def by_name(summary, layer: str) -> dict[str, int]:
    return {f["name"]: f["calls"] for f in summary["functions"] if f["layer"] == layer}


def plain(name: str) -> str:
    return re.sub(r"_(ptsz|ptds)$", "", name)


def folded(calls: dict[str, int]) -> dict[str, int]:
    result: dict[str, int] = {}
    for name, number in calls.items():
        result[plain(name)] = result.get(plain(name), 0) + number
    return result


def check_each(what: str, made: dict[str, int], seen: dict[str, int]) -> None:
    """Every name on its own; the line shows the sums and only the names that differ."""
    names = sorted({*made, *seen})
    differ = {name: (made.get(name, 0), seen.get(name, 0)) for name in names if made.get(name, 0) != seen.get(name, 0)}
    check(f"{what}, {len(names)} functions: calls, functions that differ", (sum(made.values()), {}),
          (sum(seen.values()), differ))


def compare_runtime(what: str, own: dict, summary) -> None:
    """Each function that the program counts itself."""
    seen = folded(by_name(summary, "runtime"))
    check_each(f"{what}: runtime", own["calls"], {name: seen.get(name, 0) for name in own["calls"]})
    errors = {}
    for f in summary["functions"]:
        if f["layer"] == "runtime" and f["errors"]:
            errors[plain(f["name"])] = errors.get(plain(f["name"]), 0) + f["errors"]
    check(f"{what}: failed calls by name", own["errors"], {name: errors.get(name, 0) for name in own["errors"]})
    compare_copies(what, own["calls"], summary)


def compare_copies(what: str, own: dict, summary) -> None:
    made = own["cudaMemcpy"] + own["cudaMemcpyAsync"]
    check(f"{what}: copies with a direction, runtime", made,
          sum(c["calls"] for c in summary["copies"] if c["layer"] == "runtime"))
    launches = own["cudaLaunchKernel"] + own["cudaLaunchKernelExC"]
    driver = by_name(summary, "driver")
    check(f"{what}: launches in the driver", launches, sum(driver.get(name, 0) for name in LAUNCHES))


def compare_driver(what: str, counts: dict[str, int], summary) -> None:
    """Every function of libcuda, against the independent counter."""
    seen = by_name(summary, "driver")
    check_each(f"{what}: driver, against the independent counter", counts, seen)
    check(f"{what}: cuLaunchKernel + cuLaunchKernelEx and their twins", sum(counts.get(n, 0) for n in LAUNCHES),
          sum(seen.get(n, 0) for n in LAUNCHES))
    info(f"{what}: launches by function", {name: counts[name] for name in LAUNCHES if name in counts})


def complete(what: str, summary) -> None:
    check(f"{what}: lost events, malformed events", (0, 0), (summary["lost_events"], summary["malformed_events"]))
    info(f"{what}: unseen", summary["unseen"])


def records(path: Path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def compare_lines(what: str, path: Path, summary) -> None:
    """The JSON lines against the exact totals, and the first driver calls."""
    seen: dict[str, int] = {}
    first = []
    for record in records(path):
        if record["type"] == "userspace":
            seen[record["name"]] = seen.get(record["name"], 0) + 1
            if record["layer"] == "driver" and len(first) < 2000:
                first.append((record["ts"], record["name"]))
    quiet = set(summary["counted_only"])
    totals = {f["name"]: f["calls"] for f in summary["functions"] if f["name"] not in quiet}
    check_each(f"{what}: totals against lines", totals, seen)
    order = [name for _, name in sorted(first) if name not in LOOK_UPS]
    check(f"{what}: first driver call after look-ups", "cuInit", order[0] if order else None)


# ---- parts ----

def part_doctor() -> None:
    status, out, _ = run([GPUSCOPE, "doctor"], 60, log="doctor")
    check("doctor: exit status", 0, status)
    sample("gpuscope doctor", out, 80)
    status, out, _ = run([GPUSCOPE, "doctor", "--json"], 60, log="doctor-json")
    check("doctor --json: exit status, one object", (0, True), (status, isinstance(json.loads(out), dict)))


def part_programs(variant: str) -> None:
    program = [WORK / f"calls-{variant}", 2000, 3]
    what = f"calls, {variant}"
    status, out, _ = run(program, log=f"calls-{variant}-alone")
    alone = last_json(out, "COUNTS ")
    check(f"{what}: untraced exit status", 0, status)
    path = WORK / f"{variant}.jsonl"
    status, out, summary = traced(program, ["-o", path], f"calls-{variant}-traced")
    own = last_json(out, "COUNTS ")
    check(f"{what}: exit status", 0, status)
    check(f"{what}: result", alone["checksum"], own["checksum"])
    info(f"{what}: attached", summary["attached"])
    compare_runtime(what, own, summary)
    complete(what, summary)
    compare_lines(what, path, summary)
    counts = WORK / f"{variant}.counts"
    status, out, summary = traced(counting(program, counts), ["-q"], f"calls-{variant}-counted")
    own = last_json(out, "COUNTS ")
    check(f"{what}, with the independent counter: exit status, result", (0, alone["checksum"]), (status, own["checksum"]))
    compare_runtime(f"{what}, with the independent counter", own, summary)
    compare_driver(what, read_counts(counts), summary)


def part_text() -> None:
    path = WORK / "sample.txt"
    status, _, err = run([GPUSCOPE, "run", "-o", path, "--", WORK / f"calls-{VARIANTS[0]}", 40, 1], log="text")
    check("text output: exit status", 0, status)
    text = path.read_text()
    sample("gpuscope run -o sample.txt -- calls 40 1", text)
    launches = [line for line in text.splitlines() if "LaunchKernel" in line]
    sample("… its launches", "\n".join(launches), 8)
    sample("… the summary on stderr", err, 70)
    path = WORK / f"{VARIANTS[0]}.jsonl"
    if path.exists():
        with open(path, encoding="utf-8") as file:
            sample("the first JSON lines of calls 2000 3", "".join(line for line, _ in zip(file, range(20))), 20)


def part_late_exact() -> None:
    with Live([WORK / f"calls-{VARIANTS[0]}", 1500, 2, "--wait"], "late-program") as program:
        program.await_line("READY", 30)
        pid = program.pid
        status, out, _ = run([GPUSCOPE, "doctor", "-p", pid], 60, log="doctor-p")
        check("doctor -p: exit status, names libcuda", (0, True), (status, "libcuda" in out))
        sample("gpuscope doctor -p PID", out, 80)
        status, out, _ = run([GPUSCOPE, "functions", "-p", pid], 60, log="functions-p")
        check("functions -p: exit status, cuLaunchKernel and cudaLaunchKernel listed", (0, True, True),
              (status, "cuLaunchKernel" in out, "cudaLaunchKernel" in out))
        sample("gpuscope functions -p PID", out, 25)
        info("functions -p: lines", len(out.splitlines()))
        with trace(["-p", pid, "-q"], "late-trace") as tracer:
            program.send_line()
            own = last_json(program.await_line("COUNTS", 60), "COUNTS ")
            time.sleep(0.3)
            summary = last_json(tracer.finish(signal.SIGINT))
        program.send_line()
        program.finish()
        check("late trace -p: program's exit status", 0, program.child.returncode)
        compare_runtime("late trace -p", own, summary)
        complete("late trace -p", summary)


def part_late_running() -> None:
    path = WORK / "loop.jsonl"
    with Live([WORK / "loop-shared", 6, 50], "loop-program") as program:
        program.await_line("READY", 30)
        time.sleep(0.5)
        with trace(["-p", program.pid, "--filter", "cudaLaunchKernel*", "-o", path, "--duration", "2s"], "loop-trace") as tracer:
            summary = last_json(tracer.finish(None, 30))
        own = last_json(program.finish(None, 30), "LOOP ")
    numbers = [record["args"].get("sharedMem") for record in records(path) if record["type"] == "userspace"]
    gaps = [(a, b) for a, b in zip(numbers, numbers[1:]) if b != (a + 1) % 16384]
    check("late trace -p of a running loop: launches seen one after another without a gap", (True, []),
          (len(numbers) > 100, gaps[:5]))
    check("late trace -p of a running loop: lines and total", len(numbers), sum(by_name(summary, "runtime").values()))
    check("late trace -p of a running loop: result", own["launches"], own["checksum"])
    info("late trace -p of a running loop: launches made, seen in 2 s", (own["launches"], len(numbers)))


def part_all() -> None:
    """The libraries are mapped by a waiting process already, so that all of the second one is seen."""
    with Live([WORK / f"calls-{VARIANTS[0]}", 10, 1, "--wait"], "all-waiting") as waiting:
        waiting.await_line("READY", 30)
        with trace(["--all", "-q"], "all-trace") as tracer:
            status, out, _ = run([WORK / f"calls-{VARIANTS[0]}", 1000, 2], log="all-program")
            own = last_json(out, "COUNTS ")
            time.sleep(0.3)
            summary = last_json(tracer.finish(signal.SIGINT))
        waiting.send_line()
        waiting.await_line("COUNTS", 30)
        waiting.send_line()
        waiting.finish()
    check("trace --all: program's exit status", 0, status)
    compare_runtime("trace --all", own, summary)
    check("trace --all: lost events", 0, summary["lost_events"])
    info("trace --all: unseen", summary["unseen"])


def part_killed() -> None:
    with Live([WORK / "loop-shared", 4, 50], "killed-program") as program:
        program.await_line("READY", 30)
        with trace(["-p", program.pid, "-o", WORK / "killed.jsonl"], "killed-trace") as tracer:
            time.sleep(1)
            tracer.child.kill()
            tracer.child.wait()
        own = last_json(program.finish(None, 30), "LOOP ")
        check("SIGKILL of gpuscope: the program's exit status", 0, program.child.returncode)
        check("SIGKILL of gpuscope: the program's result", own["launches"], own["checksum"])


def part_torch() -> None:
    train = [sys.executable, HERE / "train.py", 30]
    status, out, err = run(train, 90, log="torch-alone")
    if status:
        raise Failed(f"train.py fails untraced: {err[-300:]}")
    losses = re.findall("^LOSS (.*)$", out, re.M)
    info("torch: losses, first and last", (float.fromhex(losses[0]), float.fromhex(losses[-1])))
    status, again, _ = run(train, 60, log="torch-alone-again")
    check("torch: two untraced runs give the same losses", losses, re.findall("^LOSS (.*)$", again, re.M))
    path = WORK / "torch.jsonl"
    status, out, summary = traced(train, ["-o", path], "torch-traced", 90)
    check("torch: exit status", 0, status)
    check("torch: losses to the last bit", losses, re.findall("^LOSS (.*)$", out, re.M))
    info("torch: attached", summary["attached"])
    info("torch: counted only", summary["counted_only"])
    complete("torch", summary)
    compare_lines("torch", path, summary)
    counts = WORK / "torch.counts"
    status, out, summary = traced(counting(train, counts), ["-q"], "torch-counted", 90)
    check("torch, with the independent counter: exit status", 0, status)
    check("torch, with the independent counter: losses", losses, re.findall("^LOSS (.*)$", out, re.M))
    compare_driver("torch", read_counts(counts), summary)
    with open(path, encoding="utf-8") as file:
        launches = (line for line in file if '"category":"launch"' in line)
        sample("launches of the PyTorch loop as JSON lines", "".join(line for line, _ in zip(launches, range(10))), 10)


def part_framework(name: str) -> None:
    """Another framework: its result, and its driver calls against the independent counter."""
    program = [sys.executable, HERE / "frameworks.py", name]
    status, out, err = run(program, 120, log=f"{name}-alone")
    if status:
        raise Failed(f"frameworks.py {name} fails untraced: {err[-300:]}")
    alone = re.findall("^RESULT (.*)$", out, re.M)
    counts = WORK / f"{name}.counts"
    status, out, summary = traced(counting(program, counts), ["-q"], f"{name}-counted", 120)
    check(f"{name}: exit status, result", (0, alone), (status, re.findall("^RESULT (.*)$", out, re.M)))
    compare_driver(name, read_counts(counts), summary)
    complete(name, summary)


def part_torch_text() -> None:
    path = WORK / "torch.txt"
    status, _, err = run([GPUSCOPE, "run", "-o", path, "--", sys.executable, HERE / "train.py", 5], 90, log="torch-text")
    check("torch, text: exit status", 0, status)
    text = path.read_text().splitlines()
    middle = len(text) * 3 // 4
    sample("the middle of a PyTorch training loop as text", "\n".join(text[middle:middle + 50]))
    sample("its summary", err, 80)


def part_torch_late() -> None:
    counts = WORK / "torch-late.counts"
    command = counting([sys.executable, HERE / "train.py", 20, "--wait"], counts)
    with Live(command, "torch-late-program") as program:
        program.await_line("READY", 90)
        with trace(["-p", program.pid, "-q"], "torch-late-trace") as tracer:
            before = read_counts(counts)
            program.send_line()
            program.await_line("DONE", 60)
            time.sleep(0.3)
            after = read_counts(counts)
            summary = last_json(tracer.finish(signal.SIGINT))
        program.send_line()
        program.finish()
    made = {name: number - before.get(name, 0) for name, number in after.items() if number != before.get(name, 0)}
    compare_driver("torch, late trace -p", made, summary)
    complete("torch, late trace -p", summary)


def rounds(what: str, ways: dict, seconds_of, count: int) -> None:
    """Interleaved runs; ratios of medians to the untraced one."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(count):
        names = list(ways)
        for name in names[number % len(names):] + names[:number % len(names)]:
            status, out, _ = run(ways[name], 60)
            if status:
                raise Failed(f"{name}: status {status}")
            times[name].append(seconds_of(out))
    base = statistics.median(times["untraced"])
    for name, values in times.items():
        middle = statistics.median(values)
        info(f"{what}, {name}: median of {count} (min–max), ratio to untraced",
             f"{middle:.4f} s ({min(values):.4f}–{max(values):.4f}), {middle / base:.3f}")


def ways_to_trace(program) -> dict:
    quiet = [GPUSCOPE, "run", "--summary", "none"]
    return {
        "untraced": program,
        "-q": [*quiet, "-q", "--", *program],
        "-q, driver only": [*quiet, "-q", "--layer", "driver", "--", *program],
        "jsonl": [*quiet, "-o", WORK / "timing.jsonl", "--", *program],
        "text": [*quiet, "-o", WORK / "timing.txt", "--", *program],
    }


def part_time_calls() -> None:
    program = [WORK / f"calls-{VARIANTS[0]}", 20000, 1]
    rounds("time of calls 20000 1", ways_to_trace(program), lambda out: last_json(out, "COUNTS ")["seconds"], 3)


def part_time_torch() -> None:
    program = [sys.executable, HERE / "train.py", 60]
    seconds = lambda out: float(re.findall("^SECONDS (.*)$", out, re.M)[-1])  
    rounds("time of 60 training steps", ways_to_trace(program), seconds, 3)


# ---- all of it ----

def attempt(name: str, part, *arguments) -> None:
    harness.attempt(name, part, *arguments)
    write()


def write() -> None:
    harness.write_figures("figures.txt", "samples.txt")
    for name in ("shared.jsonl", "torch.jsonl"):
        source = WORK / name
        if source.exists() and not (OUT / f"{name}.gz").exists():
            head = b"".join(line for line, _ in zip(open(source, "rb"), range(20000)))
            (OUT / f"{name}.gz").write_bytes(gzip.compress(head))


def main() -> None:
    (WORK / "logs").mkdir(exist_ok=True)
    plan = {
        "doctor": [("doctor", part_doctor)],
        "calls": [(f"calls, {variant}", part_programs, variant) for variant in VARIANTS],
        "text": [("text", part_text)],
        "late": [("late trace -p, exact", part_late_exact), ("late trace -p of a running loop", part_late_running),
                 ("trace --all", part_all), ("SIGKILL", part_killed)],
        "torch": [("torch", part_torch), ("torch, text", part_torch_text)],
        "torch-late": [("torch, late", part_torch_late)],
        "others": [(framework, part_framework, framework) for framework in ("jax", "cupy")],
        "time": [("time of calls", part_time_calls)],
        "torch-time": [("time of torch", part_time_torch)],
    }
    parts = os.environ.get("VERIFY_PARTS", " ".join(plan)).split()
    for part in parts:
        if "torch" in part and "VERIFY_NO_TORCH" in os.environ or "late" in part and INSIDE:
            continue
        for name, *call in plan[part]:
            attempt(name, *call)
    shutil.make_archive(str(OUT / "logs"), "gztar", WORK / "logs")
    sys.exit(any(line.startswith("FAIL") for line in lines))


main()
