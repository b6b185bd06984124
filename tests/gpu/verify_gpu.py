"""What gpuscope says that the GPU executed, against CUPTI's own records in a run of their own, and against CUDA events.

usage: verify_gpu.py GPUSCOPE WORK OUT SECONDS      Started by scripts/verify-gpu-activity.sh.
Figures go to activity-figures.txt in OUT. VERIFY_PARTS: some of "counts frameworks collectives events clock kernel user profiler occupancy memory train
forward" (all); ROUNDS of the last two (3). VERIFY_FRAMEWORKS: some of "eager graph compile jax cupy" (all).
"""
import collections
import json
import os
import statistics
import sys
from pathlib import Path

from cupti import DIRECTIONS, Records
from harness import GPUSCOPE, HERE, WORK, Failed, attempt, check, info, last_json, run, sample, say, write_figures

ROUNDS = int(os.environ.get("ROUNDS", "3"))
PROGRAM = [sys.executable, HERE / "executed.py"]
STEPS = 50


def near(what: str, expected: float, got: float, share: float) -> bool:
    good = abs(got - expected) <= share * abs(expected)
    say(f"{'PASS' if good else 'FAIL'}  {what}: expected {expected:.6g} within {share:.1%}, got {got:.6g}")
    return good


def by_cupti(program, log) -> tuple[Records, dict]:
    """The program with CUPTI alone."""
    for old in WORK.glob("alone.*"):
        old.unlink()
    status, out, err = run([*program], 90, log=log, env={
        "CUDA_INJECTION64_PATH": str(WORK / "cupti_records.so"), "CUPTI_RECORDS": str(WORK / "alone")})
    if status:
        raise Failed(f"status {status}: {err[-300:]}")
    files = sorted(WORK.glob("alone.*"), key=lambda file: file.stat().st_size)
    if not files:
        raise Failed(f"no records: {err[-300:]}")
    if len(files) > 1:
        info("processes that CUPTI was in, and the size of what it told of each", [file.stat().st_size for file in files])
    # a framework's compiler has processes of its own, which give the device nothing to do
    return Records(files[-1]), last_json(out, "RAN ") if "RAN " in out else {}


class Traced:
    """A run of gpuscope: its lines, its summary, what the program says."""

    def __init__(self, program, options, log, limit=120.0, before=()):
        self.file = WORK / f"{log}.jsonl"
        command = [*before, GPUSCOPE, "run", "--summary", "json", "-o", self.file, *options, "--", *program]
        self.status, self.out, self.err = run(command, limit, log=log)
        if self.status:
            raise Failed(f"{log}: status {self.status}: {self.err[-500:]}")
        self.summary = last_json(self.err)
        self.ran = last_json(self.out, "RAN ") if "RAN " in self.out else {}
        self.gpu = self.summary["gpu"]
        with open(self.file, encoding="utf-8") as lines:
            self.lines = [json.loads(line) for line in lines if '"type":"gpu"' in line or '"category":"launch"' in line]
        self.work = [line for line in self.lines if line["type"] == "gpu"]
        self.launches = [line for line in self.lines if line["type"] == "userspace" and line["layer"] == "driver"]

    def device(self) -> dict:
        if len(self.gpu["devices"]) != 1:
            raise Failed(f"devices: {self.gpu}")
        return self.gpu["devices"][0]


def check_coverage(traced: Traced, what: str) -> None:
    coverage = traced.gpu["coverage"]
    info(f"{what}: coverage", coverage)
    # a framework's compiler has processes of its own
    check(f"{what}: CUPTI is seen", {True}, {one["seen"] for one in coverage})
    check(f"{what}: CUPTI asks for our clock", {"asked"}, {one["clock"] for one in coverage})
    missing = [sum(one[name] for name in ("lost", "dropped", "invalid", "malformed")) for one in coverage]
    check(f"{what}: records that are missing", 0, sum(missing))
    check(f"{what}: certainty", "measured", traced.device()["certainty"])


def compare(what: str, alone: Records, traced: Traced) -> None:
    check(f"{what}: CUPTI alone is complete", True, alone.complete())
    kernels = collections.Counter(row["name"] for row in alone.work if row["kind"] == "kernel")
    told = {kernel["symbol"]: kernel["runs"] for kernel in traced.device()["by_kernel"]}
    check(f"{what}: kernels by name", {}, {name: (count, told.get(name)) for name, count in kernels.items()
                                           if told.get(name) != count})
    check(f"{what}: kernels that CUPTI alone has not", {}, {name: runs for name, runs in told.items() if name not in kernels})
    check(f"{what}: kernels in all", sum(kernels.values()), traced.device()["kernels"])
    in_graphs = sum(1 for row in alone.work if row["kind"] == "kernel" and row["graph"])
    check(f"{what}: of these in graphs", in_graphs, traced.device()["in_graphs"])
    copies = collections.Counter()
    for row in alone.work:
        if row["kind"] == "copy":
            copies[DIRECTIONS.get(row["copy_kind"]), "count"] += 1
            copies[DIRECTIONS.get(row["copy_kind"]), "bytes"] += row["bytes"]
    found = collections.Counter()
    for row in traced.device()["copies"]:
        found[row["direction"], "count"] += row["count"]
        found[row["direction"], "bytes"] += row["bytes"]
    check(f"{what}: copies and bytes by direction", dict(copies), dict(found))
    memsets = sum(1 for row in alone.work if row["kind"] == "memset")
    check(f"{what}: memsets", memsets, traced.device()["memsets"])
    lines = collections.Counter(line["activity"] for line in traced.work)
    check(f"{what}: lines of kernels, copies and memsets", len([row for row in alone.work]), sum(lines.values()))
    shares = {name: sum(row["end"] - row["start"] for row in alone.work if row["kind"] == "kernel") / 1e3
              for name in ("kernels",)}
    info(f"{what}: time of kernels, us: CUPTI alone, gpuscope", (round(shares["kernels"]), round(traced.device()["kernel_us"])))


def idle_share(what: str, alone: Records, ran: dict, traced: Traced) -> None:
    """How much of the loop nothing ran: of two runs, so near is enough."""
    first, last = ran["begin_ns"], ran["end_ns"]
    share = alone.idle_within(first, last) / (last - first)
    start = traced_start(traced)
    first, last = traced.ran["begin_ns"], traced.ran["end_ns"]
    spans = sorted((start + round(line["ts"] * 1e9), start + round(line["ts"] * 1e9 + line["duration_us"] * 1e3))
                   for line in traced.work)
    busy, until = 0, first
    for begin, end in spans:
        begin, end = max(begin, until), min(end, last)
        busy += max(0, end - begin)
        until = max(until, min(end, last))
    info(f"{what}: idle share of the loop: CUPTI alone, gpuscope", (round(share, 4), round(1 - busy / (last - first), 4)))


def traced_start(traced: Traced) -> int:
    with open(traced.file, encoding="utf-8") as lines:
        return json.loads(next(lines))["start_monotonic_ns"]


def part_counts() -> None:
    alone, ran = by_cupti([*PROGRAM, STEPS], "alone")
    traced = Traced([*PROGRAM, STEPS], ["--engine", "inside", "--gpu", "on"], "inside")
    check_coverage(traced, "inside")
    compare("inside", alone, traced)
    idle_share("inside", alone, ran, traced)
    sample("lines", "\n".join(json.dumps(line) for line in traced.work[:20]))
    sample("device", json.dumps(traced.device(), indent=1), 80)
    status, out, err = run([GPUSCOPE, "run", "-q", "--engine", "inside", "--", *PROGRAM, STEPS], 90, log="text")
    check("as text: status", 0, status)
    sample("summary as text", err[err.find("GPU, as executed"):], 40)


def part_frameworks() -> None:
    """PyTorch step by step, as a graph and compiled, JAX, CuPy: what ran, by kernel, and the time of it."""
    programs = {"eager": ["transformer.py", "train", 20], "graph": ["transformer.py", "graph", 20], "compile": ["transformer.py", "compile", 20],
                "jax": ["frameworks.py", "jax"], "cupy": ["frameworks.py", "cupy"]}
    chosen = os.environ.get("VERIFY_FRAMEWORKS", " ".join(programs)).split()
    for name, (file, *words) in programs.items():
        if name not in chosen:
            continue
        try:
            program = [sys.executable, HERE / file, *words]
            if name == "compile":  # what is compiled is kept, and how it is compiled is found out by trying
                run(program, 120, log="first-compile")
            alone, _ = by_cupti(program, f"alone-{name}")
            traced = Traced(program, ["--engine", "inside", "--gpu", "on", "--filter", "@launch"], f"traced-{name}")
            check_coverage(traced, name)
            compare(name, alone, traced)
            times = sum(row["end"] - row["start"] for row in alone.work if row["kind"] == "kernel") / 1e3
            info(f"{name}: time of kernels, ratio to CUPTI alone", round(traced.device()["kernel_us"] / times, 4))
        except Failed as failure:
            say(f"FAIL  {name}: {failure}")


def part_collectives() -> None:
    """Two ranks and NCCL: kernels by name, of both devices together."""
    if run(["nvidia-smi", "-L"], 20, log="devices")[1].count("GPU ") < 2:
        info("collectives: left out", "one device")
        return
    program = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, HERE / "collectives.py"]
    for old in WORK.glob("alone.*"):
        old.unlink()
    status, _, err = run(program, 120, log="alone-collectives", env={
        "CUDA_INJECTION64_PATH": str(WORK / "cupti_records.so"), "CUPTI_RECORDS": str(WORK / "alone")})
    if status:
        raise Failed(f"status {status}: {err[-300:]}")
    ranks = [Records(file) for file in WORK.glob("alone.*")]
    ranks = [rank for rank in ranks if rank.work]
    check("collectives: ranks that CUPTI alone has seen, all complete", [True, True], [rank.complete() for rank in ranks])
    traced = Traced(program, ["--engine", "inside", "--gpu", "on", "--filter", "@launch"], "traced-collectives")
    check("collectives: devices", 2, len(traced.gpu["devices"]))
    alone = collections.Counter(row["name"] for rank in ranks for row in rank.work if row["kind"] == "kernel")
    told = collections.Counter()
    for device in traced.gpu["devices"]:
        told.update({kernel["symbol"]: kernel["runs"] for kernel in device["by_kernel"]})
    check("collectives: kernels by name", {}, {name: (alone[name], told[name]) for name in alone | told if alone[name] != told[name]})
    info("collectives: kernels, of them NCCL's", (sum(alone.values()), sum(count for name, count in alone.items() if "nccl" in name)))
    kinds = collections.Counter(row["kind"] for rank in ranks for row in rank.work)
    copies = sum(row["count"] for device in traced.gpu["devices"] for row in device["copies"])
    check("collectives: copies, memsets", (kinds["copy"], kinds["memset"]), (copies, sum(device["memsets"] for device in traced.gpu["devices"])))


def part_events() -> None:
    """A chain of products: the sum of their times is that between the events around them."""
    for engine in ("inside",):
        traced = Traced([*PROGRAM, 5], ["--engine", engine, "--gpu", "on"], f"events-{engine}")
        runs = collections.Counter(line["name"] for line in traced.work if line["activity"] == "kernel")
        products = [line for line in traced.work if line["activity"] == "kernel"]
        products.sort(key=lambda line: line["ts"])
        last = products[-traced.ran["chain"]:]
        names = {line["name"] for line in last}
        check(f"{engine}: the chain is of one kernel", 1, len(names))
        total = sum(line["duration_us"] for line in last) / 1e3
        span = (last[-1]["ts"] - last[0]["ts"]) * 1e3 + last[-1]["duration_us"] / 1e3
        near(f"{engine}: from first to last of the chain, ms, against events", traced.ran["chain_ms"], span, 0.005)
        info(f"{engine}: sum of the chain's kernels, ms, of that", (round(total, 3), round(total / traced.ran["chain_ms"], 4)))
        info(f"{engine}: kernels", dict(runs.most_common(4)))


def part_clock() -> None:
    """Nothing begins before its call: the nth of a name before the nth call that launched it."""
    traced = Traced([*PROGRAM, 20], ["--engine", "inside", "--gpu", "on"], "clock")
    launches = collections.defaultdict(list)
    for line in traced.launches:
        if line.get("kernel"):
            launches[line["kernel"]].append(line["ts"])
    early, all_of, delays = 0, 0, []
    begun = collections.defaultdict(list)
    for line in traced.work:
        if line["activity"] == "kernel" and not line.get("graph"):
            begun[line["name"]].append(line["ts"])
    for name, times in begun.items():
        calls = sorted(launches.get(name, []))
        if len(calls) != len(times):
            info("clock: launches and runs differ", (name[:60], len(calls), len(times)))
            continue
        for call, begin in zip(calls, sorted(times)):
            all_of += 1
            early += begin < call
            delays.append((begin - call) * 1e6)
    check("clock: kernels that begin before they were launched", 0, early)
    check("clock: kernels that were compared are most", True, all_of > 0.8 * sum(map(len, begun.values())))
    if delays:
        info("clock: from the launch's entry to the begin, us: least, median", (round(min(delays), 1), round(statistics.median(delays), 1)))


def part_kernel() -> None:
    """The other engine, where this machine lets programs into the kernel."""
    status, _, err = run([GPUSCOPE, "run", "-q", "--engine", "kernel", "--summary", "none", "--", "true"], 60, log="may")
    if status:
        info("kernel: left out", err.splitlines()[-1:] or status)
        return
    alone, _ = by_cupti([*PROGRAM, STEPS], "alone-kernel")
    traced = Traced([*PROGRAM, STEPS], ["--engine", "kernel", "--gpu", "on"], "kernel")
    check_coverage(traced, "kernel")
    compare("kernel", alone, traced)


def part_user() -> None:
    """A user without any right."""
    there = Path("/tmp/gpuscope-activity-user")
    there.mkdir(exist_ok=True)
    os.chmod(there, 0o777)
    program = there / "executed.py"
    program.write_text((HERE / "executed.py").read_text())
    binary = there / "gpuscope"
    binary.write_bytes(GPUSCOPE.read_bytes())
    os.chmod(binary, 0o755)
    before = ["env", "-u", "GPUSCOPE_ENGINE", f"HOME={there}", f"TMPDIR={there}", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
              "--bounding-set=-all"]
    command = [*before, binary, "run", "-q", "--summary", "json", "--gpu", "on", "--", sys.executable, program, STEPS]
    status, _, err = run(command, 90, log="user")
    check("user: status", 0, status)
    gpu = last_json(err)["gpu"]
    check("user: CUPTI is seen", [True], [one["seen"] for one in gpu["coverage"]])
    check("user: kernels were executed", True, gpu["devices"][0]["kernels"] > STEPS)


def part_profiler() -> None:
    """A program that profiles itself, alone, with gpuscope, and with --gpu off."""
    ways = {"alone": [], "auto": [GPUSCOPE, "run", "-q", "--engine", "inside", "--summary", "json", "--"],
            "off": [GPUSCOPE, "run", "-q", "--engine", "inside", "--gpu", "off", "--summary", "json", "--"]}
    for name, before in ways.items():
        status, out, err = run([*before, *PROGRAM, 5, "--profile"], 120, log=f"profiler-{name}")
        check(f"profiler, {name}: status", 0, status)
        info(f"profiler, {name}: device events that it has", last_json(out, "PROFILED ")["device_events"])
        if name == "auto":
            info("profiler, auto: coverage", last_json(err)["gpu"]["coverage"])
        said = [line for line in err.splitlines() if "upti" in line.lower() and not line.startswith("{")]
        info(f"profiler, {name}: said", said[:4])


def part_occupancy() -> None:
    """What the driver says of each kernel, against what follows from CUPTI's limits of the device."""
    traced = Traced([sys.executable, HERE / "occupancy.py"], ["--gpu", "on"], "occupancy")
    told = {kernel["symbol"]: kernel for kernel in traced.device()["by_kernel"]}
    driver = traced.ran["kernels"]
    check("occupancy: kernels", sorted(driver), sorted(told))
    other = {name: (one["percent"], told[name]["occupancy_percent"], told[name]["limited_by"]) for name, one in driver.items()
             if abs((told[name]["occupancy_percent"] or 0) - one["percent"]) > 0.02}
    check(f"occupancy of {len(driver)} kernels, where it is not the driver's", {}, other)
    info("occupancy: limits", dict(collections.Counter(kernel["limited_by"] for kernel in told.values())))


def part_memory() -> None:
    used = {}
    for name, before in {"untraced": [], "off": ["--gpu", "off"], "on": ["--gpu", "on"]}.items():
        command = [GPUSCOPE, "run", "-q", "--summary", "none", "--engine", "inside", *before, "--"] if before else []
        status, out, _ = run([*command, *PROGRAM, 20], 90, log=f"memory-{name}")
        check(f"memory, {name}: status", 0, status)
        used[name] = last_json(out, "RAN ")["used_bytes"]
    more = (used["on"] - used["untraced"]) / (1 << 20)
    info("memory of the device in use, MiB", {name: round(value / (1 << 20), 1) for name, value in used.items()})
    check("memory: at most 100 MiB more", True, more <= 100)


def part_steps(mode: str, steps: int, unit: float, name_of_unit: str) -> None:
    program = [sys.executable, HERE / "transformer.py", mode, steps]
    record = lambda gpu: [GPUSCOPE, "record", "--engine", "inside", "--gpu", gpu, "--summary", "none", "-o",
                          WORK / f"{mode}-{gpu}.arrows", "--"]
    ways = {"untraced": [], "--gpu off": record("off"), "--gpu on": record("on")}
    times = collections.defaultdict(list)
    names = list(ways)
    for number in range(ROUNDS):
        for name in names[number % len(names):] + names[:number % len(names)]:
            status, out, err = run([*ways[name], *program], 90, log=f"{mode}-{name.replace(' ', '-')}")
            if status:
                raise Failed(f"{name}: status {status}: {err[-300:]}")
            times[name].append(last_json(out, "RAN ")["seconds"] / steps)
    base = statistics.median(times["untraced"])
    for name, values in times.items():
        middle = statistics.median(values)
        info(f"{mode}, record {name}: a step, {name_of_unit}, median of {len(values)} (min-max), ratio to untraced",
             f"{middle * unit:.3f} ({min(values) * unit:.3f}-{max(values) * unit:.3f}), {middle / base:.3f}")


def main() -> None:
    plan = {
        "counts": ("counts against CUPTI alone", part_counts),
        "frameworks": ("counts of frameworks against CUPTI alone", part_frameworks),
        "collectives": ("counts of two ranks against CUPTI alone", part_collectives),
        "events": ("times against CUDA events", part_events),
        "clock": ("nothing begins before its call", part_clock),
        "kernel": ("with the kernel's engine", part_kernel),
        "user": ("a user without any right", part_user),
        "profiler": ("a program with torch.profiler", part_profiler),
        "occupancy": ("theoretical occupancy against the driver's", part_occupancy),
        "memory": ("memory of the device", part_memory),
        "train": ("cost of a training step", part_steps, "train", 60, 1e3, "ms"),
        "forward": ("cost of a launch-bound forward pass", part_steps, "forward", 1000, 1e6, "us"),
    }
    for part in os.environ.get("VERIFY_PARTS", " ".join(plan)).split():
        attempt(*plan[part])
    sys.exit(not write_figures("activity-figures.txt", "activity-samples.txt"))


main()
