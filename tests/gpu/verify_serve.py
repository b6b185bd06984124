"""Compares `gpuscope serve` beside a PyTorch training with `gpuscope run` of the same process, nvidia-smi and PyTorch.

Two tracers that know nothing of each other see one process: their counts must be equal, while it lives and after its
end. What `run` says was compared with CUPTI before (verify_work.py). Then what serving costs: the same training with
and without it, in turn.
"""
import json
import re
import signal
import statistics
import subprocess
import sys
import time
import urllib.request

from harness import DEADLINE, GPUSCOPE, HERE, OUT, check, info, lines, sample, samples, say

PORT = 9766
STEPS = 60
ROUNDS = 4
SERIES = re.compile(r'^([a-z_]+)(?:\{(.*)\})? ([-+0-9.eE]+|NaN)$')


EVERYTHING = "api,getters,errors,memory,launches,copies,sync,nvml,xid,self"
WAYS = {
    "as it is": [],
    "driver layer": ["--layer", "driver"],
    "without api and errors": ["--collect", "memory,launches,copies,sync,nvml,xid,self", "--layer", "driver"],
    "with getters": ["--collect", EVERYTHING],
}


class Server:
    """A running exporter."""

    def __init__(self, *options: str):
        self.options = options

    def __enter__(self):
        fixed = ["--listen", f"127.0.0.1:{PORT}", "--labels", "comm,pid", "--nvml-interval", "1s"]
        self.child = subprocess.Popen([GPUSCOPE, "serve", *fixed, *self.options], stderr=subprocess.PIPE, text=True)
        for line in self.child.stderr:
            if "tracing" in line or "yet" in line:
                return self
        raise RuntimeError("gpuscope serve does not start")

    def __exit__(self, *_):
        self.child.send_signal(signal.SIGINT)
        if status := self.child.wait(20):
            say(f"FAIL  serve ends with status {status}")

    def scrape(self):
        start = time.perf_counter()
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=20) as answer:
            text = answer.read().decode()
        return Scrape(text, time.perf_counter() - start)


class Scrape:
    def __init__(self, text: str, seconds: float):
        self.text, self.seconds, self.rows = text, seconds, []
        for line in text.splitlines():
            if match := SERIES.match(line):
                labels = dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
                self.rows.append((match[1], labels, float(match[3])))

    def sum(self, name: str, **labels) -> float:
        fits = [value for known, has, value in self.rows if known == name and labels.items() <= has.items()]
        return sum(fits)

    def by(self, name: str, *keys: str, **labels) -> dict:
        sums: dict = {}
        for known, has, value in self.rows:
            if known == name and labels.items() <= has.items():
                key = tuple(has.get(key, "") for key in keys)
                sums[key] = sums.get(key, 0) + value
        return {key: value for key, value in sums.items() if value}


def training(prefix, steps=STEPS):
    """Starts it; (process, pid) once it is ready."""
    command = [*map(str, prefix), sys.executable, str(HERE / "transformer.py"), "train", str(steps), "--wait"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return child, int(wait_for(child, "READY").split()[1])


def wait_for(child, word: str) -> str:
    for line in child.stdout:
        if line.startswith(word):
            return line
    raise RuntimeError(f"no {word}: {child.stderr.read()[-2000:]}")


def go(child) -> dict:
    child.stdin.write("\n")
    child.stdin.flush()
    return json.loads(wait_for(child, "RAN")[3:])


def counts(server: Server) -> None:
    child, pid = training([GPUSCOPE, "run", "-q", "--getters", "--summary", "json", "--stacks", "none", "--"])
    go(child)
    time.sleep(1.5)
    living = server.scrape()
    memory_beside_smi(living, pid)
    child.stdin.write("\n")
    child.stdin.flush()
    _, words = child.communicate(timeout=60)
    time.sleep(1.5)
    ended = server.scrape()
    (OUT / "serve-scrape.txt").write_text(ended.text, encoding="utf-8")
    summary = json.loads(next(line for line in words.splitlines() if line.startswith("{")))
    busiest = sorted(summary["functions"], key=lambda row: -row["calls"])[:24]
    sample("calls", "\n".join(f"{row['calls']:9} {row['layer']:8} {row['name']}" for row in busiest))
    beside_run(summary, ended, str(pid))
    for name in ("gpuscope_launches_total", "gpuscope_copy_bytes_total", "gpuscope_api_calls_total"):
        before, after = living.sum(name, pid=str(pid)), ended.sum(name, pid=str(pid))
        check(f"{name} after the end is at least what it was", True, after >= before > 0)
    check("nothing is held after the end", 0.0, ended.sum("gpuscope_memory_held_bytes", pid=str(pid)))
    lost = {key: value for key, value in ended.by("gpuscope_lost_records_total", "reason").items()}
    check("records lost", {}, lost)


def memory_beside_smi(scrape: Scrape, pid: int) -> None:
    told = subprocess.run(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
                          capture_output=True, text=True).stdout
    sample("nvidia-smi", told)
    used = [int(line.split(",")[1]) << 20 for line in told.splitlines() if line.strip()]
    driver = scrape.sum("gpuscope_memory_driver_bytes", pid=str(pid))
    held = scrape.sum("gpuscope_memory_held_bytes", pid=str(pid)) - scrape.sum(
        "gpuscope_memory_held_bytes", pid=str(pid), family="pinned")
    rest = scrape.sum("gpuscope_memory_unattributed_bytes", pid=str(pid))
    info("held on the device, driver's, unattributed", [held, driver, rest])
    check("driver's bytes are nvidia-smi's, to the MiB", True, any(abs(driver - one) < 1 << 20 for one in used))
    check("held and unattributed add up to the driver's", driver, held + rest)


def beside_run(summary: dict, scrape: Scrape, pid: str) -> None:
    functions = [row for row in summary["functions"] if row["layer"] == "driver"]
    check("calls of the driver", sum(row["calls"] for row in functions),
          int(scrape.sum("gpuscope_api_calls_total", layer="driver", pid=pid)))
    failed = {row["name"]: 0 for row in summary["failures"]}
    for row in summary["failures"]:
        failed[row["name"]] += row["count"]
    of_driver = {name: count for name, count in failed.items() if name.startswith("cu") and not name.startswith("cuda")}
    check("errors of the driver by function", of_driver,
          {key[0]: int(value) for key, value in
           scrape.by("gpuscope_api_errors_total", "function", layer="driver", pid=pid).items()})
    work = max(summary["work"], key=lambda row: sum(stream["submissions"] for stream in row["streams"]))
    copies: dict = {}
    for row in work["copies"]:
        key = (row["direction"] or "unknown", row["host"] or "")
        copies[key] = copies.get(key, 0) + row["bytes"]
    check("bytes copied by direction and memory", {key: value for key, value in copies.items() if value},
          {key: int(value) for key, value in
           scrape.by("gpuscope_copy_bytes_total", "direction", "host_memory", pid=pid).items()})
    kernels = summary["kernels"]
    check("launches", sum(row["launches"] for row in kernels), int(scrape.sum("gpuscope_launches_total", pid=pid)))
    check("launches by kernel and others", int(scrape.sum("gpuscope_launches_total", pid=pid)),
          int(scrape.sum("gpuscope_kernel_launches_total", pid=pid)))
    waits = sum(row["count"] for row in work["waits"])
    check("waits", waits, int(scrape.sum("gpuscope_sync_waits_total", pid=pid)))


def seconds_of(steps: int) -> float:
    child, _ = training([], steps)
    result = go(child)
    child.stdin.write("\n")
    child.stdin.flush()
    child.wait(60)
    return result["seconds"]


def cost() -> None:
    """Each round: bare, then each way; a way's time is divided by the bare one of its round."""
    seconds: dict[str, list[float]] = {name: [] for name in ["bare", *WAYS]}
    for number in range(ROUNDS):
        if DEADLINE - time.monotonic() < 90:
            break
        seconds["bare"].append(seconds_of(2 * STEPS))
        for name, options in WAYS.items():
            with Server(*options) as server:
                seconds[name].append(seconds_of(2 * STEPS))
                scrape = server.scrape()
            if number == 0:
                info(f"{name}: probes hit", scrape.sum("gpuscope_probe_hits_total"))
            if number == 0 and not options:
                own(scrape)
    for name, values in seconds.items():
        if values:
            ratios = [value / bare for value, bare in zip(values, seconds["bare"])]
            info(f"{2 * STEPS} steps, {name} (s), median ratio",
                 [[round(value, 3) for value in values], round(statistics.median(ratios), 3)])


def own(scrape: Scrape) -> None:
    info("scrape took (s), gathering", [round(scrape.seconds, 4), scrape.sum("gpuscope_gather_duration_seconds")])
    info("resident bytes of serve", scrape.sum("process_resident_memory_bytes"))
    info("series", sum(1 for _ in scrape.rows))
    for name in ("process_cpu_seconds_total", "gpuscope_probe_hits_total", "gpuscope_probe_seconds_total"):
        info(name, scrape.sum(name))


def main() -> int:
    with Server("--collect", EVERYTHING) as server:
        counts(server)
        own(server.scrape())
    cost()
    failures = sum(line.startswith("FAIL") for line in lines)
    passes = sum(line.startswith("PASS") for line in lines)
    total = f"{passes} of {passes + failures} comparisons right"
    (OUT / "serve-figures.txt").write_text("\n".join([total, *lines, "", *samples]) + "\n", encoding="utf-8")
    print(total)
    return failures > 0


sys.exit(main())
