#!/usr/bin/env python3
"""simulate_week.py - a week of a small fleet that never was: 50 jobs of several users on 20 GPUs, with waste that is planted.
usage: simulate_week.py FOLDER     writes FOLDER/week.om, what exporters would have told (OpenMetrics, for promtool tsdb
create-blocks-from openmetrics), and FOLDER/plan.json, what was planted: GPU-seconds by job, user, program and reason"""
import json
import random
import sys
import time
from collections import defaultdict
from pathlib import Path

WEEK = 7 * 86400
JOB_STEP, NODE_STEP = 120, 240  # seconds between scrapes; Prometheus takes a gauge for gone after 300
RETAINED = 3600
UNUSED = 0.02  # share of a job's time in which nothing runs on its GPUs yet
AHEAD = 3600  # beyond now: what is asked for later is still there
NODES, GPUS, JOBS = 5, 4, 50
USERS = ["anna", "bert", "cleo", "emil"]
PROGRAMS = ["train.py", "eval.py", "finetune.py", "serve_model"]
# what the worst job is: GPUs, hours, share of its time without work by reason
WORST = {"user": "dora", "job": "4711", "program": "train_slow.py", "gpus": 4, "hours": 40,
         "reasons": {"host-bound": 0.55, "memory": 0.05}}
LEFT = {"user": "emil", "job": "4712", "program": "notebook", "gpus": 2, "hours": 30, "reasons": {"forgotten": 0.9, "host-bound": 0.05}}


def wanted(rng):
    """The jobs, planted ones first: these find room for certain."""
    yield WORST
    yield LEFT
    for number in range(JOBS - 2):
        yield {"user": rng.choice(USERS), "job": str(5000 + number), "program": rng.choice(PROGRAMS), "gpus": rng.choice([1, 1, 2, 4]),
               "hours": rng.randrange(3, 16), "reasons": {"host-bound": round(rng.uniform(0.02, 0.25), 3),
                                                           "memory": round(rng.uniform(0, 0.03), 3)}}


def placed(jobs, start, rng):
    """Each job on GPUs of one node that are free for its whole time."""
    free = {(node, gpu): start for node in range(NODES) for gpu in range(GPUS)}
    for job in jobs:
        def begin(node):
            return sorted((free[node, gpu], gpu) for gpu in range(GPUS))[job["gpus"] - 1][0]
        node = min(range(NODES), key=begin)
        at = begin(node) + JOB_STEP * rng.randrange(1, 30)
        gpus = [gpu for _, gpu in sorted((free[node, gpu], gpu) for gpu in range(GPUS))[:job["gpus"]]]
        end = at + job["hours"] * 3600
        for gpu in gpus:
            free[node, gpu] = end
        yield {**job, "node": node, "gpus": gpus, "start": at, "end": end}


class Text:
    """OpenMetrics: all series of a metric together."""

    def __init__(self):
        self.families = defaultdict(list)

    def series(self, kind, name, labels, samples):
        quoted = ",".join(f'{label}="{value}"' for label, value in labels.items())
        self.families[kind, name].extend(f"{name}{{{quoted}}} {value:.10g} {at}" for at, value in samples)

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            for (kind, name), lines in sorted(self.families.items()):
                out.write(f"# TYPE {name.removesuffix('_total')} {kind}\n")
                out.write("\n".join(lines) + "\n")
            out.write("# EOF\n")


def device(node, gpu):
    return {"gpu": str(gpu), "uuid": f"GPU-{node}{gpu}", "pci_bus_id": f"00000000:{gpu + 1:02x}:00.0"}


def instance(node):
    return {"instance": f"node{node}:9748", "job": "gpuscope"}


def tell_job(job, text):
    """Counters that grow evenly while it runs, and stay for as long as an exporter keeps them."""
    owner = {"comm": "python", "user": job["user"], "batch_job": job["job"], "slurm_job": job["job"], "program": job["program"], **instance(job["node"])}
    lasts, moments = job["end"] - job["start"], range(job["start"], job["end"] + RETAINED, JOB_STEP)
    grown = [(at, min(at, job["end"]) - job["start"]) for at in moments]

    def counter(name, labels, per_second):
        text.series("counter", name, {**labels, **owner}, [(at, seconds * per_second) for at, seconds in grown])
    for reason, share in job["reasons"].items():
        for gpu in job["gpus"]:
            labels = {"reason": reason, "certainty": "bound", **device(job["node"], gpu)}
            counter("gpuscope_waste_gpu_seconds_total", labels, share)
    tell_reserved(job, text, moments)
    held = [(at, 1e9) for at in range(job["start"], job["end"], NODE_STEP)]
    for gpu in job["gpus"]:
        text.series("gauge", "gpuscope_gpu_process_memory_bytes", {**device(job["node"], gpu), **owner}, held)
    idle = sum(job["reasons"].values())
    counter("gpuscope_gpu_idle_at_least_seconds_total", {}, idle)
    counter("gpuscope_gpu_busy_at_most_seconds_total", {}, 1 - idle)
    counter("gpuscope_hidden_wait_seconds_total", {"kind": "item"}, idle / 10)
    counter("gpuscope_copy_bytes_total", {"direction": "HtoD", "host_memory": "pageable"}, 1e6)
    counter("gpuscope_api_errors_total", {"layer": "runtime", "function": "cudaMalloc", "error": "cudaErrorMemoryAllocation"}, 1 / lasts)


def tell_reserved(job, text, moments):
    """What Slurm gave it: it begins to use its GPUs when a part of its time is over."""
    owner = {"slurm_job": job["job"], "batch_job": job["job"], **instance(job["node"])}
    unused_until = job["start"] + UNUSED * (job["end"] - job["start"])
    for gpu in job["gpus"]:
        labels = {**device(job["node"], gpu), **owner}
        times = [(at, min(at, job["end"])) for at in moments]
        waste = {"reason": "reserved-unused", "certainty": "bound", **labels}
        for name, series, seconds in [
                ("gpuscope_reserved_gpu_seconds_total", labels, lambda at: at - job["start"]),
                ("gpuscope_reserved_bound_gpu_seconds_total", labels, lambda at: max(at - unused_until, 0)),
                ("gpuscope_waste_gpu_seconds_total", waste, lambda at: min(at, unused_until) - job["start"])]:
            text.series("counter", name, series, [(at, seconds(now)) for at, now in times])
        text.series("gauge", "gpuscope_reserved", labels, [(at, 1) for at in range(job["start"], job["end"], NODE_STEP)])


def tell_nodes(start, end, text):
    """What there is as long as a node is."""
    moments = range(start, end + 1, NODE_STEP)

    def gauge(name, labels, value, kind="gauge"):
        text.series(kind, name, labels, [(at, value) for at in moments])
    for node in range(NODES):
        here = instance(node)
        version = "0.1.0" if node else "0.0.9"
        gauge("gpuscope_build_info", {"version": version, "commit": "abc", **here}, 1)
        gauge("gpuscope_traced_processes", here, 3)
        gauge("gpuscope_lost_records_total", {"reason": "work_ring", **here}, 0, "counter")
        gauge("gpuscope_coverage_gaps", {"of": "machine", **here}, 2 if node == 3 else 0)
        gauge("gpuscope_memory_held_bytes", {"family": "device", "comm": "python", **here}, 1e9)
        gauge("gpuscope_gpu_xid_errors_total", {"xid": "31", **device(node, 0), **here}, 1, "counter")
        for gpu in range(GPUS):
            labels = {**device(node, gpu), **here}
            gauge("gpuscope_gpu_info", {**labels, "name": "Simulated", "minor": gpu, "driver": "580.1"}, 1)
            gauge("gpuscope_gpu_utilization_ratio", labels, 0.5)
            gauge("gpuscope_gpu_memory_used_bytes", labels, 4e10)
            gauge("gpuscope_gpu_memory_total_bytes", labels, 8e10)
            gauge("gpuscope_gpu_power_watts", labels, 400)


def planted(jobs):
    """GPU-seconds without work."""
    sums = {name: defaultdict(float) for name in ("job", "user", "program", "reason")}
    for job in jobs:
        for reason, share in job["reasons"].items():
            seconds = share * (job["end"] - job["start"]) * len(job["gpus"])
            for name in ("job", "user", "program"):
                sums[name][job[name]] += seconds
            sums["reason"][reason] += seconds
        unused = UNUSED * (job["end"] - job["start"]) * len(job["gpus"])
        sums["reason"]["reserved-unused"] += unused
        for name, of in [("job", job["job"]), ("user", job["user"]), ("program", "")]:  # nothing has run yet
            sums[name][of] += unused
    return sums


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    now = int(time.time()) // NODE_STEP * NODE_STEP
    rng = random.Random(50)
    jobs = list(placed(wanted(rng), now - WEEK + AHEAD, rng))
    late = [job for job in jobs if job["end"] > now]
    assert not late, late
    text = Text()
    for job in jobs:
        tell_job(job, text)
    tell_nodes(now - WEEK - NODE_STEP, now + AHEAD, text)
    text.write(folder / "week.om")
    bound = sum(len(job["gpus"]) * (job["end"] - job["start"]) for job in jobs)
    plan = {"jobs": len(jobs), "bound_seconds": bound, "gpu_seconds": NODES * GPUS * WEEK, "worst": {name: WORST[name] for name in ("job", "user", "program")},
            "waste": planted(jobs)}
    (folder / "plan.json").write_text(json.dumps(plan, indent=1))


main()
