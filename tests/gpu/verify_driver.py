"""Compares what `gpuscope run --layer kernel` says with what a preloaded library counts in the same process, with what
each CUDA call was found to ask of driver 580, and with the program's own memory; then what following it costs."""
import collections
import json
import re
import statistics
import subprocess
import sys
import time
import urllib.request

from harness import DEADLINE, GPUSCOPE, HERE, OUT, WORK, attempt, check, info, left, run, sample, say, traced
from harness import write_figures

TABLES = HERE.parent.parent / "catalog" / "nvidia"
PYTHON = sys.executable

# of one process with one context, driver 580.159.04, CUDA 13.0
IOCTLS = {
    "cuInit": 107, "cuCtxCreate_v2": 355, "cuMemAlloc_v2": 4, "cuMemAllocHost_v2": 3, "cuMemcpyHtoD_v2": 0,
    "cuModuleLoadData": 0, "cuModuleGetFunction": 0, "cuLaunchKernel": 0, "cuCtxSynchronize": 0, "cuStreamCreate": 1,
    "cuStreamSynchronize": 0, "cuMemHostRegister_v2": 5, "cuIpcGetMemHandle": 1, "cuMemFree_v2": 3, "cuCtxDestroy_v2": 212,
}
IN_CONTEXT = {
    "RM_ALLOC HOPPER_CHANNEL_GPFIFO_A": 20, "RM_ALLOC HOPPER_COMPUTE_A": 8, "RM_ALLOC HOPPER_DMA_COPY_A": 20,
    "RM_ALLOC KEPLER_CHANNEL_GROUP_A": 4, "RM_ALLOC NV01_EVENT_OS_EVENT": 8, "UVM_REGISTER_CHANNEL": 20,
    "RM_CONTROL NVA06C_CTRL_CMD_GPFIFO_SCHEDULE": 4, "UVM_CREATE_EXTERNAL_RANGE": 27,
}


def table(name: str):
    return [line.split() for line in (TABLES / name).read_text().splitlines() if line and line[0] != "#"]


def names():
    calls = {("f", int(row[0], 16)): row[1] for row in table("escapes.txt")}
    calls |= {("u", int(row[0], 16)): row[1] for row in table("uvm.txt")}
    classes = {int(row[0], 16): row[1] for row in table("classes.txt")}
    controls = {}
    for row in table("controls.txt"):
        first, last = row[2].split("-") if len(row) > 2 else ("535", "595")
        if int(first) <= 580 <= int(last):
            controls[int(row[0], 16)] = row[1]
    return calls, classes, controls


def counted_inside(path) -> collections.Counter:
    """What the preloaded library has counted, by the names of the tables."""
    calls, classes, controls = names()
    counts: collections.Counter = collections.Counter()
    for family, nr, subject, count in (line.split() for line in path.read_text().splitlines()):
        name = calls.get((family, int(nr, 16)), f"{'nvidia' if family == 'f' else 'nvidia-uvm'} ioctl {int(nr, 16):#x}")
        if subject != "-":
            known = controls if nr == "2a" else classes
            name += " " + known.get(int(subject, 16), f"{int(subject, 16):#x}")
        counts[name] += int(count)
    return counts


def is_ioctl(record) -> bool:
    return record["layer"] == "kernel" and record["name"] not in ("open", "close", "mmap", "poll")


def context() -> None:
    trace, inside = WORK / "context.jsonl", WORK / "context.ioctls"
    program = ["env", f"IOCTLS_FILE={inside}", f"LD_PRELOAD={WORK / 'ioctls.so'}", PYTHON, HERE / "context.py"]
    options = ["-o", trace, "--layer", "driver,kernel"]
    status, _, summary = traced(program, options, "context")
    check("context.py ends well under trace", 0, status)
    records = [json.loads(line) for line in trace.read_text().splitlines()]
    calls = {record["event_id"]: record for record in records if record["type"] == "userspace"}
    below: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    orphans = 0
    for record in records:
        if record["type"] == "kernel" and is_ioctl(record):
            parent = calls.get(record.get("parent_id"))
            orphans += parent is None
            below[parent["name"] if parent else "-"][record["name"]] += 1
    for name, expected in IOCTLS.items():
        check(f"ioctls within {name}", expected, sum(below[name].values()))
    for name, expected in IN_CONTEXT.items():
        check(f"{name} within cuCtxCreate_v2", expected, below["cuCtxCreate_v2"][name])
    info("ioctls outside of any CUDA call", f"{orphans} {dict(below['-'].most_common(6))}")
    lines = collections.Counter(record["name"] for record in records if record["type"] == "kernel" and is_ioctl(record))
    totals = {f["name"]: f["calls"] for f in summary["functions"] if is_ioctl(f)}
    expected = counted_inside(inside)
    check("ioctls by name, totals against the preloaded library", {}, difference(expected, totals))
    check("ioctls by name, lines against the preloaded library", {}, difference(expected, lines))
    check("ioctls in all", sum(expected.values()), sum(totals.values()))
    undecoded = [r for r in records if r["type"] == "kernel" and r.get("notes")]
    info("calls with a note", collections.Counter(note for r in undecoded for note in r["notes"]))
    answered = [r for r in records if r["type"] == "kernel" and is_ioctl(r)]
    info("answers", collections.Counter(r.get("error", "-") for r in answered))
    nested = [r for r in answered if r.get("parent_id") in calls]
    inside_parent = sum(calls[r["parent_id"]]["ts"] <= r["ts"] and ends(r) <= ends(calls[r["parent_id"]]) + 1e-6
                        for r in nested)
    check("ioctls that lie within their caller's time", len(nested), inside_parent)
    shares = {f["name"]: f.get("driver_calls", 0) for f in summary["functions"] if f["layer"] == "driver"}
    in_driver = {name: count for name, count in shares.items() if name in IOCTLS}
    others = collections.Counter(calls[r["parent_id"]]["name"] for r in records
                                 if r["type"] == "kernel" and r.get("parent_id") in calls)
    check("calls counted to each function", {n: others[n] for n in in_driver}, in_driver)
    held = summary["driver_objects"][-1]
    info("objects at the end", json.dumps(held))
    check("channels, contexts and video memory that are left", (0, 0, 0),
          (held["channels"], held["context_shares"], held["vidmem"]["count"]))
    check("nothing was lost or unseen", (0, []), (summary["lost_events"], summary["unseen"]))


def ends(record) -> float:
    return record["ts"] + record["duration_us"] / 1e6


def difference(expected, got) -> dict:
    keys = set(expected) | set(got)
    return {key: (expected.get(key, 0), got.get(key, 0)) for key in keys if expected.get(key, 0) != got.get(key, 0)}


def leave() -> None:
    status, _, summary = traced([PYTHON, HERE / "context.py", "--leave"], ["-q", "--layer", "driver,kernel"], "leave")
    held = summary["driver_objects"][-1]
    info("objects of a process that gives nothing back", json.dumps(held))
    check("its channels and contexts at its end", (0, 20, 1), (status, held["channels"], held["context_shares"]))
    check("its 64 MiB are among the video memory that was taken", True, held["vidmem"]["bytes"] >= 64 << 20)
    _, _, err = run([GPUSCOPE, "run", "-q", "--layer", "all", "--", PYTHON, HERE / "context.py"])
    sample("gpuscope run -q --layer all -- python3 context.py", err, 60)
    command = [GPUSCOPE, "run", "--layer", "all", "--filter", "cuMemAlloc*", "--filter", "RM_*", "--filter", "UVM_*",
               "--summary", "none", "--", PYTHON, HERE / "context.py"]
    _, out, _ = run(command)
    lines = out.splitlines()
    at = next((i for i, line in enumerate(lines) if "cuMemAlloc_v2" in line), 0)
    sample("one allocation, with what it asks", "\n".join(lines[at:at + 6]))


def loop() -> None:
    ways = {"untraced": None, "driver": ["-q", "--layer", "driver"], "driver,kernel": ["-q", "--layer", "driver,kernel"]}
    times: dict[str, list[float]] = {way: [] for way in ways}
    losses = {}
    for _ in range(2):
        for way, options in ways.items():
            program = [PYTHON, HERE / "train.py", "60"]
            command = program if options is None else [GPUSCOPE, "run", "--summary", "json", *options, "--", *program]
            status, out, err = run(command, 60)
            *loss, last = out.strip().splitlines()
            losses.setdefault(way, loss)
            times[way].append(float(re.findall(r"[0-9.]+", last)[-1]))
            if options and "kernel" in options[-1]:
                functions = json.loads([l for l in err.splitlines() if l.startswith("{")][-1])["functions"]
                ioctls = sum(f["calls"] for f in functions if is_ioctl(f))
                info("ioctls of the training, in all", ioctls)
    check("losses are the same to the last bit", True, all(loss == losses["untraced"] for loss in losses.values()))
    base = statistics.median(times["untraced"])
    for way, seconds in times.items():
        info(f"loop, {way}", f"{[round(s, 3) for s in seconds]} s, {statistics.median(seconds) / base:.3f} of untraced")


def others() -> None:
    _, _, summary = traced(["nvidia-smi"], ["-q", "--layer", "kernel"], "smi")
    ioctls = [f for f in summary["functions"] if is_ioctl(f)]
    info("nvidia-smi", f"{sum(f['calls'] for f in ioctls)} ioctls, {len(ioctls)} kinds, unseen {summary['unseen']}")
    unnamed = [f["name"] for f in ioctls if re.search(r" 0x[0-9a-f]+$", f["name"])]
    info("of these without a name", unnamed[:20])


def kernel_log() -> list[str]:
    _, log, _ = run(["dmesg"])
    return [line for line in log.splitlines() if "NVRM: Xid" in line]


def fault() -> None:
    trace, before = WORK / "fault.jsonl", kernel_log()
    status, out, summary = traced([PYTHON, HERE / "context.py", "--fault"], ["-o", trace, "--layer", "all"], "fault")
    info("a kernel that writes where nothing is", f"status {status}, {out.strip()}")
    xids = [line for line in trace.read_text().splitlines() if '"type":"xid"' in line]
    info("Xids in the trace", xids)
    found = kernel_log()[len(before):]
    info("kernel log", found)
    if found:
        check("an Xid of this process is in the trace", True, bool(xids))
    info("summary", {key: summary.get(key) for key in ("xids", "unseen")})


def serve() -> None:
    command = [GPUSCOPE, "serve", "--listen", "127.0.0.1:9767", "--collect", "driver,self", "--labels", "comm"]
    server = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            if "tracing" in line or "yet" in line:
                break
        inside = WORK / "served.ioctls"
        program = ["env", f"IOCTLS_FILE={inside}", f"LD_PRELOAD={WORK / 'ioctls.so'}", PYTHON, HERE / "context.py"]
        run(program)
        time.sleep(2.5)
        text = urllib.request.urlopen("http://127.0.0.1:9767/metrics", timeout=10).read().decode()
        pattern = r'^gpuscope_driver_calls_total\{(.*)\} ([0-9.e+]+)$'
        served: collections.Counter = collections.Counter()
        for labels, value in re.findall(pattern, text, re.M):
            if 'comm="python' in labels:
                served[re.search(r'call="([^"]*)"', labels)[1]] += int(float(value))
        check("serve --collect driver against the preloaded library", {}, difference(counted_inside(inside), served))
        sample("serve", "\n".join(line for line in text.splitlines() if "gpuscope_driver" in line), 12)
    finally:
        server.terminate()
        server.wait(left(20))


def machine() -> None:
    for words in (["doctor"], ["functions", "--kernel"]):
        _, out, err = run([GPUSCOPE, *words])
        sample(" ".join(words), out + err, 40)


attempt("a context", context)
if "--context" in sys.argv:
    sys.exit(0 if write_figures("driver-figures.txt", "driver-samples.txt") else 1)
attempt("what is left", leave)
attempt("a fault", fault)
attempt("serve", serve)
attempt("other programs", others)
attempt("this machine", machine)
if DEADLINE - time.monotonic() > 60:
    attempt("a training loop", loop)
else:
    say("FAIL  no time for the training loop")
sys.exit(0 if write_figures("driver-figures.txt", "driver-samples.txt") else 1)
