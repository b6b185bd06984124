"""Compares `gpuscope leaks` with what programs on a real GPU hold. Usage: verify_memory.py GPUSCOPE WORK OUT"""
import json
import os
import re
import subprocess
import sys
import threading
import time

GPUSCOPE, WORK, OUT = sys.argv[1:4]
FIGURES, SAMPLES = [], []


def say(kind, text):
    FIGURES.append(f"{kind:5} {text}")
    print(FIGURES[-1], flush=True)


def check(holds, text):
    say("PASS" if holds else "FAIL", text)


def run(command, env=None, timeout=150):
    environment = dict(os.environ, **(env or {}))
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=timeout, check=False)
    return done, time.monotonic() - start


def leaks(name, command, env=None, options=()):
    """The last report, and what the program wrote."""
    report = f"{WORK}/{name}.jsonl"
    start = time.monotonic()
    process = subprocess.Popen([GPUSCOPE, "leaks", "--json", "-o", report, *options, "--", *command], text=True,
                               env=dict(os.environ, **(env or {})), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    peaks = [0]
    watcher = threading.Thread(target=watch, args=(process.pid, peaks))
    watcher.start()
    out, error = process.communicate(timeout=150)
    watcher.join()
    done = subprocess.CompletedProcess(process.args, process.returncode, out, error)
    with open(report, encoding="utf-8") as lines:
        last = json.loads(lines.read().splitlines()[-1])
    say("INFO", f"{name}: status {done.returncode}, {time.monotonic() - start:.1f} s, gpuscope's peak RSS {peaks[0] // 1024} MiB")
    if last["notes"]:
        say("INFO", f"{name}: notes {last['notes']}")
    return last, done


def watch(pid, peaks):
    """Keeps the peak RSS in KiB of a process until it ends."""
    while True:
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                found = re.search(r"VmHWM:\s+(\d+)", status.read())
        except OSError:
            return
        if not found:
            return
        peaks[0] = max(peaks[0], int(found[1]))
        time.sleep(0.02)


def biggest(report):
    held = lambda process: sum(device["held_bytes"] for device in process["devices"])
    return max(report["processes"], key=held)


def leak_of(done):
    return json.loads(re.search(r"^LEAK (.*)$", done.stdout, re.M)[1])


def planted(process, leak, family):
    """Bytes held at the peak by call sites whose stack has the planted line, in one family."""
    here = lambda frame: (frame.get("file") or "").endswith("leak.py") and frame.get("line") == leak["line"]
    sites = [site for site in process["sites"] if site["family"] == family and any(map(here, site["stack"] or []))]
    return sum(site["bytes_at_peak"] for site in sites), sites


def pytorch(mode, env):
    name = "torch-" + mode
    report, done = leaks(name, [sys.executable, "tests/gpu/leak.py"], env)
    if "LEAK " not in done.stdout:
        say("FAIL", f"{name}: the program failed: {done.stderr[-600:]}")
        return
    leak, process = leak_of(done), biggest(report)
    held, sites = planted(process, leak, "tensor")
    check(held == leak["kept"], f"{name}: the line of the leak holds {held} bytes in tensors, planted {leak['kept']}")
    tensors = next(f for f in process["families"] if f["family"] == "tensor")
    if mode != "uncached":
        check(tensors["allocations"] == leak["allocation.all.allocated"],
              f"{name}: {tensors['allocations']} tensors allocated, PyTorch counts {leak['allocation.all.allocated']}")
        check(tensors["peak_bytes"] >= leak["requested_bytes.all.current"],
              f"{name}: peak of tensors {tensors['peak_bytes']}, PyTorch at the end of its loop {leak['requested_bytes.all.current']}")
        segments = process["tensors"]
        check(segments["segment_bytes"] == leak["reserved_bytes.all.current"],
              f"{name}: segments {segments['segment_bytes']}, PyTorch reserved {leak['reserved_bytes.all.current']}")
    driver_family = {"cached": "device", "uncached": "device", "expandable": "physical"}[mode]
    below, _ = planted(process, leak, driver_family)
    say("INFO", f"{name}: {below} bytes of {driver_family} memory were asked for from that line")
    if mode == "uncached":
        check(below == leak["kept"], f"{name}: the driver's allocations of that line are {below} bytes")
    for device in process["devices"]:
        say("INFO", f"{name}: device {device['device']} {device['name']}: held {device['held_bytes']}, peak {device['peak_bytes']}, "
            f"the driver says {device['driver_bytes']}, unattributed {device['unattributed_bytes']}")
    check(any(device["driver_bytes"] for device in process["devices"]), f"{name}: NVML's figure is there")
    say("INFO", f"{name}: anomalies {process['anomalies']}, lost {process['lost']}")
    if sites:
        frames = [f"{f.get('file') and os.path.basename(f['file'])}:{f.get('line')} {f['function'][:60]}" for f in sites[0]["stack"][:20]]
        SAMPLES.append(f"## {name}: stack of the planted leak\n" + "\n".join(frames))
    text, _ = run([GPUSCOPE, "leaks", "--top", "3", "--", sys.executable, "tests/gpu/leak.py"], env)
    SAMPLES.append(f"## {name}: gpuscope leaks --top 3\n" + text.stderr)


def late():
    """Attached in the middle: the first tensors are not known, and not invented."""
    program = subprocess.Popen([sys.executable, "tests/gpu/leak.py", "4000", "1000000", "0.01"], stdout=subprocess.PIPE, text=True)
    time.sleep(9)
    report = f"{WORK}/late.jsonl"
    run([GPUSCOPE, "leaks", "--json", "-o", report, "-p", str(program.pid), "--duration", "4s"])
    program.kill()
    with open(report, encoding="utf-8") as lines:
        process = biggest(json.loads(lines.read().splitlines()[-1]))
    check(process["late"], f"late: said to be late; {process['devices']}")


def virtual_memory():
    report, done = leaks("vmm", [f"{WORK}/vmm", "16", "leak"])
    process = biggest(report)
    families = {f["family"]: (f["held_bytes"], f["outstanding"], f["device"]) for f in process["families"]}
    say("INFO", f"vmm: {done.stdout.strip()[:300]} {done.stderr.strip()[:200]} -> {families}")
    check(families.get("physical", (0,))[0] == 16 * (2 << 20), f"vmm: physical memory held {families.get('physical')}")
    for device in process["devices"]:
        say("INFO", f"vmm: {device}")


def cost():
    program = f"{WORK}/memory"
    if not os.path.exists(program):
        return say("FAIL", "cost: the program was not built")
    pair = lambda text: float(re.search(r"PAIR ([\d.]+)", text)[1])
    rounds = []
    for _ in range(3):
        plain = pair(run([program, "20000"])[0].stdout)
        counted = pair(run([GPUSCOPE, "run", "-q", "--summary", "none", "--filter", "!@alloc", "--filter", "!@free", "--", program, "20000"])[0].stdout)
        watched = pair(run([GPUSCOPE, "leaks", "-o", "/dev/null", "--", program, "20000"])[0].stdout)
        rounds.append((plain, counted, watched))
    for plain, counted, watched in rounds:
        say("INFO", f"cost: cudaMalloc+cudaFree {plain:.0f} ns alone, {counted:.0f} ns with all others hooked, {watched:.0f} ns with gpuscope leaks")
    report, done = leaks("held", [program, "1000", "500"])
    process = biggest(report)
    check(process["devices"][0]["held_bytes"] == 500 << 20, f"held: {process['devices'][0]}")


def training():
    """A step of a small training loop, alone and watched."""
    leaks = [GPUSCOPE, "leaks", "-o", "/dev/null"]
    for mode, command in 2 * [("alone", []), ("leaks", [*leaks, "--"]), ("leaks --stacks none", [*leaks, "--stacks", "none", "--"])]:
        done, _ = run([*command, sys.executable, "tests/gpu/train.py"], timeout=200)
        say("INFO", f"training {mode}: {done.stdout.strip().splitlines()[-1][:200] if done.stdout.strip() else done.stderr[-200:]}")


def main():
    done, _ = run([GPUSCOPE, "doctor"])
    SAMPLES.append("## gpuscope doctor\n" + done.stdout + done.stderr)
    for step in (virtual_memory, cost,
                 lambda: pytorch("cached", {}),
                 lambda: pytorch("uncached", {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}),
                 lambda: pytorch("expandable", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
                 late, training):
        if step is late and os.environ.get("GPUSCOPE_ENGINE") == "inside":
            continue
        try:
            step()
        except Exception as error:  # pylint: disable=broad-except
            say("FAIL", f"{getattr(step, '__name__', 'step')}: {type(error).__name__}: {error}")
    passed = sum(line.startswith("PASS") for line in FIGURES)
    failed = sum(line.startswith("FAIL") for line in FIGURES)
    FIGURES.insert(0, f"{passed} of {passed + failed} comparisons are equal")
    with open(f"{OUT}/memory-figures.txt", "w", encoding="utf-8") as out:
        out.write("\n".join(FIGURES) + "\n")
    with open(f"{OUT}/memory-samples.txt", "w", encoding="utf-8") as out:
        out.write("\n\n".join(SAMPLES) + "\n")
    return failed > 0


sys.exit(main())
