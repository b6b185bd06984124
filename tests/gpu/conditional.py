"""Which kinds of records CUPTI may be asked for beside graphs with conditional nodes; gpuscope is not asked.

usage: conditional.py FEATURES RECORDS.so ROUNDS PROGRAM[=SAMPLES] KINDS[@MS] ...
FEATURES, RECORDS.so: features.cu and cupti_records.c, built. PROGRAM: conditional (of FEATURES) or posterior (posterior.py).
KINDS: letters k (kernels), c (copies), f (fills), g (graphs as a whole); MS: CUPTI is asked to hand over so often.
Prints for each KINDS how many of ROUNDS ended with status 0, all beside each other, and the records of one that did.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

features, library, rounds, program = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
name, _, samples = program.partition("=")
PROGRAMS = {
    "conditional": [features, "conditional", samples or "50"],
    "posterior": [sys.executable, str(pathlib.Path(__file__).parent / "posterior.py"), samples or "200"],
}


def counted(folder):
    records = collections.Counter()
    for file in pathlib.Path(folder).iterdir():
        for line in file.read_text(errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:  # the last line of one that was ended
                continue
            records[record["kind"] + (" of graphs" if record.get("graph") else "")] += 1
    return records


def run(asked):
    kinds, _, ms = asked.partition("@")
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "CUDA_INJECTION64_PATH": os.path.abspath(library)}
        env |= {"CUPTI_RECORDS": folder + "/r", "CUPTI_KINDS": kinds} | ({"CUPTI_FLUSH_MS": ms} if ms else {})
        try:
            done = subprocess.run(PROGRAMS[name], env=env, capture_output=True, timeout=170)
        except subprocess.TimeoutExpired:
            return "HANGS", {}
        return done.returncode, counted(folder)


def main():
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        futures = {asked: [pool.submit(run, asked) for _ in range(rounds)] for asked in sys.argv[5:]}
        for asked, runs in futures.items():
            results = [one.result() for one in runs]
            good = [records for status, records in results if status == 0]
            print(f"{program} {asked}: {len(good)} of {rounds}; {dict(good[0]) if good else ''}", flush=True)


main()
