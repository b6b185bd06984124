#!/usr/bin/env python3
"""Runs every scenario and compares what the program says with what the libraries counted."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

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
    human = next((l for l in done.stdout.splitlines() if not l.startswith("GPUSIM ")), "")
    print("FAIL" if problems else "ok  ", f"{command:32}", human)
    for problem in problems:
        print("      ", problem)
    return not problems


if __name__ == "__main__":
    sys.exit(0 if all([run(c) for c in (sys.argv[1:] or RUNS)]) else 1)
