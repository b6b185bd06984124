"""What recording costs from inside, beside the other engine and beside CUPTI with a record of each API call.

usage: verify_inside.py GPUSCOPE WORK OUT SECONDS      Started by scripts/verify-gpu-inside.sh.
Ratios of medians of interleaved rounds; ROUNDS of them (5). VERIFY_PARTS: some of "train forward starts" (all). Figures go
to inside-figures.txt in OUT.
"""
import os
import statistics
import sys
import time

from harness import GPUSCOPE, HERE, WORK, Failed, attempt, check, info, last_json, run, write_figures

ROUNDS = int(os.environ.get("ROUNDS", "5"))
TRUES = 300


def ways(program) -> dict[str, list]:
    """How the program is run: alone, by each engine, with CUPTI."""
    records = WORK / "timing.records"
    cupti = ["env", f"CUDA_INJECTION64_PATH={WORK / 'cupti_records.so'}", f"CUPTI_RECORDS={records}"]
    found = {
        "untraced": [],
        "record, inside": record_from("inside"),
        "run -q, inside": [GPUSCOPE, "run", "--engine", "inside", "--summary", "none", "-q", "--"],
        "leaks, inside": [GPUSCOPE, "leaks", "--engine", "inside", "-o", "/dev/null", "--"],
        "CUPTI, kernels and copies": cupti, "CUPTI with API": [*cupti, "CUPTI_API=1"],
    }
    if os.geteuid() == 0:
        found["record, kernel"] = record_from("kernel")
    return {name: [*before, *program] for name, before in found.items()}


def record_from(engine: str) -> list:
    file = WORK / f"timing-{engine}.arrows"
    return [GPUSCOPE, "record", "--engine", engine, "--summary", "none", "-o", file, "--"]


def part_steps(mode: str, steps: int, unit: float, name_of_unit: str, left_out: tuple = ()) -> None:
    program = [sys.executable, HERE / "transformer.py", mode, steps]
    chosen = [way for way in ways(program).items() if way[0] not in left_out]
    times: dict[str, list[float]] = {}
    try:
        for number in range(ROUNDS):
            for name, command in chosen[number % len(chosen):] + chosen[:number % len(chosen)]:
                status, out, err = run(command, 90, log=f"{mode}-{name.replace(' ', '-')}")
                if status:
                    raise Failed(f"{name}: status {status}: {err[-300:]}")
                times.setdefault(name, []).append(last_json(out, "RAN ")["seconds"] / steps)
    finally:
        say_times(mode, times, unit, name_of_unit)


def say_times(mode: str, times: dict[str, list[float]], unit: float, name_of_unit: str) -> None:
    base = statistics.median(times.get("untraced", [float("nan")]))
    for name, values in times.items():
        middle = statistics.median(values)
        info(f"{mode}, {name}: a step, {name_of_unit}, median of {len(values)} (min-max), ratio to untraced",
             f"{middle * unit:.3f} ({min(values) * unit:.3f}-{max(values) * unit:.3f}), {middle / base:.3f}")


def part_starts() -> None:
    """What a start costs under the agent: importing PyTorch, and programs that know nothing of CUDA."""
    torch = [sys.executable, "-c", "import time; s = time.perf_counter(); import torch; print(time.perf_counter() - s)"]
    seconds: dict[str, list[float]] = {"untraced": [], "inside": []}
    for _ in range(ROUNDS):
        for name, before in (("untraced", []), ("inside", [GPUSCOPE, "run", "--engine", "inside", "--summary", "none", "-q", "--"])):
            status, out, _ = run([*before, *torch], 60)
            check(f"import torch, {name}: exit status", 0, status)
            seconds[name].append(float(out.split()[-1]))
    middles = {name: statistics.median(values) for name, values in seconds.items()}
    info("import torch: medians in s, ratio", (middles, round(middles["inside"] / middles["untraced"], 3)))
    loop = ["sh", "-c", f"i=0; while [ $i -lt {TRUES} ]; do /bin/true; i=$((i+1)); done"]
    took = {"untraced": [], "inside": []}
    for _ in range(ROUNDS):
        for name, before in (("untraced", []), ("inside", [GPUSCOPE, "run", "--engine", "inside", "--summary", "none", "-q", "--"])):
            start = time.monotonic()
            run([*before, *loop], 60)
            once = time.monotonic()
            run([*before, "true"], 60)
            took[name].append((2 * once - start - time.monotonic()) / TRUES * 1e6)
    info("/bin/true: medians in us", {name: round(statistics.median(values)) for name, values in took.items()})


def main() -> None:
    left_out = ("CUPTI, kernels and copies", "run -q, inside")
    plan = {
        "train": ("a training step", part_steps, "train", 60, 1e3, "ms", left_out),
        "forward": ("a launch-bound forward pass", part_steps, "forward", 1000, 1e6, "us", left_out),
        "starts": ("starts", part_starts),
    }
    for part in os.environ.get("VERIFY_PARTS", " ".join(plan)).split():
        attempt(*plan[part])
    sys.exit(not write_figures("inside-figures.txt", "inside-samples.txt"))


main()
