"""What CUPTI may be asked for beside programs whose graphs can fail then; gpuscope is not asked.

usage: graph_kinds.py RECORDS.so ROUNDS PROGRAM ASKED ...
RECORDS.so: cupti_records.c, built. PROGRAM: posterior:SAMPLES (posterior.py), a name of programs.py, or FILE[:ARGUMENT], a program that is built
(features.cu, graph_copies.cu). ASKED: variables of cupti_records.c without `CUPTI_`: KINDS=kcf,FLUSH_MS=100,AT_COPY=c
Prints for each ASKED how many of ROUNDS ended with status 0, all beside each other, and the records of one that did; with BUFFER_BYTES= how late
its buffers came, in ms behind the end of their first kernel: the median, the longest.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

library, rounds, program = sys.argv[1], int(sys.argv[2]), sys.argv[3]
here = pathlib.Path(__file__).parent
name, *arguments = program.split(":")
if name == "posterior":
    COMMAND = [sys.executable, str(here / "posterior.py"), *arguments]
elif os.path.exists(name):
    COMMAND = [os.path.abspath(name), *arguments]
else:
    COMMAND = [sys.executable, str(here / "programs.py"), program]


def counted(folder):
    records, late = collections.Counter(), []
    for file in pathlib.Path(folder).iterdir():
        for line in file.read_text(errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:  # the last line of one that was ended
                continue
            records[record["kind"] + (" of graphs" if record.get("graph") else "")] += 1
            if record["kind"] == "late":
                late.append(record["first"] // 1000)
    if late:
        records["late by ms"] = (sorted(late)[len(late) // 2], max(late))
    return records


def run(asked):
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "CUDA_INJECTION64_PATH": os.path.abspath(library)}
        env |= {"CUPTI_RECORDS": folder + "/r"} | {"CUPTI_" + name: value for name, value in (one.split("=") for one in asked.split(","))}
        try:
            done = subprocess.run(COMMAND, env=env, capture_output=True, timeout=170)
        except subprocess.TimeoutExpired:
            return "HANGS", counted(folder)
        return done.returncode, counted(folder)


def main():
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        futures = {asked: [pool.submit(run, asked) for _ in range(rounds)] for asked in sys.argv[4:]}
        for asked, runs in futures.items():
            results = [one.result() for one in runs]
            unasked = sum(not records for _, records in results)
            good = [records for status, records in results if status == 0]
            print(f"{program} {asked}: {len(good)} of {rounds}; {unasked} without CUPTI; {dict(good[0]) if good else ''}", flush=True)


main()
