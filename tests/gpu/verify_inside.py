"""What recording costs from inside, beside the other engine and beside CUPTI with a record of each API call.

usage: verify_inside.py GPUSCOPE WORK OUT SECONDS      Started by scripts/verify-gpu-inside.sh.
Ratios of medians of interleaved rounds, of the median step of each; ROUNDS of them (5). LEFT_OUT: ways
that are not taken, by name with `;` between. VERIFY_PARTS: some of "later train forward starts" (all), and "ddp" on GPUS (2).
later: calls of a program that runs already and carries the agent, as often as it is looked at. Figures go
to inside-figures.txt in OUT.
"""
import json
import os
import signal
import statistics
import subprocess
import sys
import time

from harness import GPUSCOPE, HERE, WORK, Failed, attempt, check, info, last_json, run, write_figures

ROUNDS = int(os.environ.get("ROUNDS", "5"))
TRUES = 300
# a process for each GPU
RANKS = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", os.environ.get("GPUS", "2")]


def ways(program) -> dict[str, list]:
    """How the program is run: alone, by each engine, with CUPTI."""
    records = WORK / "timing.records"
    cupti = ["env", f"CUDA_INJECTION64_PATH={WORK / 'cupti_records.so'}", f"CUPTI_RECORDS={records}"]
    found = {
        "untraced": [],
        "record, inside": record_from("inside"),
        "record, inside, --gpu off": record_from("inside", "--gpu", "off"),
        "run -q, inside": [GPUSCOPE, "run", "--engine", "inside", "--summary", "none", "-q", "--"],
        "leaks, inside": [GPUSCOPE, "leaks", "--engine", "inside", "-o", "/dev/null", "--"],
        "preload, nobody looks": [GPUSCOPE, "preload", "--folder", WORK / "preload", "--"],
        "CUPTI, kernels and copies": cupti, "CUPTI with API": [*cupti, "CUPTI_API=1"],
    }
    if os.geteuid() == 0:
        found["record, kernel"] = record_from("kernel")
    return {name: [*before, *program] for name, before in found.items()}


def record_from(engine: str, *options: str) -> list:
    file = WORK / f"timing-{engine}.arrows"
    return [GPUSCOPE, "record", "--engine", engine, *options, "--summary", "none", "-o", file, "--"]


def part_steps(mode: str, steps: int, unit: float, name_of_unit: str, left_out: tuple = ()) -> None:
    program = [sys.executable, HERE / "transformer.py", mode, steps]
    if mode == "ddp":
        program = [*RANKS, *program[1:]]
    chosen = [way for way in ways(program).items() if way[0] not in left_out]
    times: dict[str, list[float]] = {}
    try:
        for number in range(ROUNDS):
            for name, command in chosen[number % len(chosen):] + chosen[:number % len(chosen)]:
                status, out, err = run(command, 90, log=f"{mode}-{name.replace(' ', '-')}")
                if status:
                    raise Failed(f"{name}: status {status}: {err[-300:]}")
                times.setdefault(name, []).append(last_json(out, "STEP ")["median_ms"] / 1e3)
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


def part_later() -> None:
    """Looked at five times while it runs: each time what it calls meanwhile, and no more."""
    program = [GPUSCOPE, "preload", "--folder", WORK / "preload", "--", sys.executable, HERE / "later.py"]
    child = subprocess.Popen([str(word) for word in program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(number: int) -> str:
        child.stdin.write(f"{number}\n")
        child.stdin.flush()
        return child.stdout.readline().strip()

    check("later: the program is ready", "did 1", tell(1))
    for look in range(5):
        steps = 1000 * (look + 1)
        tracer = subprocess.Popen(
            [str(GPUSCOPE), "trace", "-p", str(child.pid), "--engine", "inside", "-q", "--summary", "json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for_line(tracer.stderr, "Ctrl-C ends it")
        check(f"later, look {look + 1}: the program goes on", f"did {steps}", tell(steps))
        tracer.send_signal(signal.SIGINT)
        out, err = tracer.communicate(timeout=30)
        summary = json.loads((out.strip() or err.strip()).splitlines()[-1])
        calls = {row["name"]: row["calls"] for row in summary["functions"] if row["layer"] == "runtime"}
        check(f"later, look {look + 1}: waits for the device", steps, calls.get("cudaDeviceSynchronize"))
        check(f"later, look {look + 1}: launches", steps, calls.get("cudaLaunchKernel"))
        check(f"later, look {look + 1}: lost", 0, summary["lost_events"])
        tell(10)
    child.stdin.close()
    check("later: exit status", 0, child.wait(timeout=60))


def wait_for_line(stream, text: str) -> None:
    for line in stream:
        if text in line:
            return
    raise Failed(f"nobody said {text!r}")


def main() -> None:
    left_out = tuple(os.environ.get("LEFT_OUT", "run -q, inside").split(";"))
    plan = {
        "later": ("a program that runs already", part_later),
        "train": ("a training step", part_steps, "train", 200, 1e3, "ms", left_out),
        "ddp": ("a training step of several ranks", part_steps, "ddp", 200, 1e3, "ms", left_out),
        "forward": ("a launch-bound forward pass", part_steps, "forward", 4000, 1e6, "us", left_out),
        "starts": ("starts", part_starts),
    }
    usual = " ".join(part for part in plan if part != "ddp")
    for part in os.environ.get("VERIFY_PARTS", usual).split():
        attempt(*plan[part])
    sys.exit(not write_figures("inside-figures.txt", "inside-samples.txt"))


main()
