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
for place in ["gpuscope", "programs", "out"]:
    asked.add_argument(place)
asked.add_argument("names", nargs="*")
asked.add_argument("--limit", type=float, default=60, help="seconds that a program may take")
asked.add_argument("--visit-after", type=float, default=0.7, help="seconds before each visit")
asked.add_argument("--beside", type=int, default=6, help="programs that run beside each other")
asked.add_argument("--ways", default="inside,kernel,visited")
asked = asked.parse_intermixed_args()
gpuscope, programs, out, LIMIT = asked.gpuscope, asked.programs, pathlib.Path(asked.out), asked.limit
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


def visited(name):
    program = start(gpuscope, "preload", "--", programs, name)
    visits = []
    for _ in range(2):
        time.sleep(asked.visit_after)
        if program.poll() is None:
            visit = start(gpuscope, "record", "-o", str(out / f"{name}.visit{len(visits)}.gscope"), "-p",
                          str(program.pid), "--duration", "700ms")
            visits.append(ended(visit))
    code, said, told, took = ended(program)
    if any(visit[0] for visit in visits):
        said += f"visits ended with {[visit[0] for visit in visits]}\n"
    return code, said, told + "".join(f"--- visit {v[0]}\n{v[2]}" for v in visits), took


def recorded(name, way, *options):
    return ended(start(gpuscope, "record", "-o", str(out / f"{name}.{way}.gscope"), *options, "--",
                       programs, name))


WAYS = {
    "alone": lambda name: ended(start(programs, name)),
    "inside": lambda name: recorded(name, "inside"),
    "kernel": lambda name: recorded(name, "kernel", "--engine", "kernel"),
    "visited": visited,
}


def look(name):
    results = {way: WAYS[way](name) for way in ["alone", *asked.ways.split(",")]}
    differ = [way for way, result in results.items() if outcome(result) != outcome(results["alone"])]
    if differ:
        results["again"] = WAYS["alone"](name)
        differ += ["AGAIN"] * (outcome(results["again"]) != outcome(results["alone"]))
    for way, (code, said, told, _) in results.items():
        (out / f"{name}.{way}.said").write_text(f"{said}status {code}\n")
        (out / f"{name}.{way}.told").write_text(told)
    return name, results, differ


def outcome(result):
    """What a program said, and its status as a shell says it, which is what gpuscope passes on."""
    code, said = result[:2]
    return code if isinstance(code, str) or code >= 0 else 128 - code, said


def main():
    names = asked.names or subprocess.check_output([programs], text=True).split()
    worse = 0
    with concurrent.futures.ThreadPoolExecutor(asked.beside) as pool:
        for name, results, differ in pool.map(look, names):
            status, said = outcome(results["alone"])
            differ += ["SAYS NOTHING"] * (status == 1 and not said)
            worse += bool(differ)
            took = ", ".join(f"{way} {result[3]:.1f}" for way, result in results.items())
            print(f"{name}: {'same' if not differ else 'DIFFERS: ' + ', '.join(differ)} (status {status}, {said.strip()!r}; s: {took})",
                  flush=True)
    return 1 if worse else 0


sys.exit(main())
