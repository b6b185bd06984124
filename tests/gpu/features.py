"""Each program of a list alone, and looked at in each way: does it say the same, and end the same?

usage: features.py GPUSCOPE PROGRAMS OUT [NAME ...]   PROGRAMS: features.cu, built, or programs.py: says its names, runs one
Writes OUT/NAME.WAY.{said,told} and prints one line a program; exit status 1 when one differs from alone.
Ways: alone, inside, kernel (needs root), visited (by `record -p`, twice, while it runs; each visit has to end well, too), and alone
once more where one differs: a program that does so then says nothing.
"""
import argparse
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import time

asked = argparse.ArgumentParser(usage=__doc__)
for name in ["gpuscope", "programs", "out"]:
    asked.add_argument(name)
asked.add_argument("names", nargs="*")
asked.add_argument("--limit", type=float, default=60, help="seconds that a program may take")
asked.add_argument("--visit-after", type=float, default=0.7, help="seconds before each visit")
asked.add_argument("--beside", type=int, default=6, help="programs that run beside each other")
asked.add_argument("--ways", default="inside,kernel,visited")
asked = asked.parse_intermixed_args()
gpuscope, features, out, LIMIT = asked.gpuscope, asked.programs, pathlib.Path(asked.out), asked.limit
out.mkdir(parents=True, exist_ok=True)


def ended(process):
    """What a program said and how it ended, and after how long."""
    began = time.monotonic()
    try:
        said, told = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, told = process.communicate()
        return "HANGS", said, told, LIMIT
    return process.returncode, said, told, time.monotonic() - began


def start(*command):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, start_new_session=True)


def visited(feature):
    program = start(gpuscope, "preload", "--", features, feature)
    visits = []
    for _ in range(2):
        time.sleep(asked.visit_after)
        if program.poll() is None:
            visit = start(gpuscope, "record", "-o", str(out / f"{feature}.visit{len(visits)}.gscope"), "-p",
                          str(program.pid), "--duration", "700ms")
            visits.append(ended(visit))
    code, said, told, took = ended(program)
    if any(visit[0] for visit in visits):
        said += f"visits ended with {[visit[0] for visit in visits]}\n"
    return code, said, told + "".join(f"--- visit {v[0]}\n{v[2]}" for v in visits), took


def recorded(feature, way, *options):
    return ended(start(gpuscope, "record", "-o", str(out / f"{feature}.{way}.gscope"), *options, "--",
                       features, feature))


WAYS = {
    "alone": lambda feature: ended(start(features, feature)),
    "inside": lambda feature: recorded(feature, "inside"),
    "kernel": lambda feature: recorded(feature, "kernel", "--engine", "kernel"),
    "visited": visited,
}


def look(feature):
    results = {way: WAYS[way](feature) for way in ["alone", *asked.ways.split(",")]}
    differ = [way for way, result in results.items() if outcome(result) != outcome(results["alone"])]
    if differ:
        results["again"] = WAYS["alone"](feature)
        differ += ["AGAIN"] * (outcome(results["again"]) != outcome(results["alone"]))
    for way, (code, said, told, _) in results.items():
        (out / f"{feature}.{way}.said").write_text(f"{said}status {code}\n")
        (out / f"{feature}.{way}.told").write_text(told)
    return feature, results, differ


def outcome(result):
    """What a program said, and its status as a shell says it, which is what gpuscope passes on."""
    code, said = result[:2]
    return code if isinstance(code, str) or code >= 0 else 128 - code, said


def main():
    names = asked.names or subprocess.check_output([features], text=True).split()
    worse = 0
    with concurrent.futures.ThreadPoolExecutor(asked.beside) as pool:
        for feature, results, differ in pool.map(look, names):
            status, said = outcome(results["alone"])
            worse += bool(differ)
            took = ", ".join(f"{way} {result[3]:.1f}" for way, result in results.items())
            print(f"{feature}: {'same' if not differ else 'DIFFERS: ' + ', '.join(differ)} (status {status}, {said.strip()!r}; s: {took})",
                  flush=True)
    return 1 if worse else 0


sys.exit(main())
