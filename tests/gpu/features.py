"""Each feature of features.cu alone, and looked at in each way: does the program say the same, and end the same?

usage: features.py GPUSCOPE FEATURES OUT [FEATURE ...]   FEATURES: features.cu, built
Writes OUT/FEATURE.WAY.{said,told} and prints one line a feature; exit status 1 when one differs from alone.
Ways: alone, again (as alone: a program that differs here says nothing), inside, kernel (needs root), visited (by `record -p`, twice,
while it runs; each visit has to end well, too).
"""
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import time

gpuscope, features, out = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
out.mkdir(parents=True, exist_ok=True)
LIMIT = 60


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
        time.sleep(0.7)
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
    "again": lambda feature: ended(start(features, feature)),
    "inside": lambda feature: recorded(feature, "inside"),
    "kernel": lambda feature: recorded(feature, "kernel", "--engine", "kernel"),
    "visited": visited,
}


def look(feature):
    results = {way: run(feature) for way, run in WAYS.items()}
    for way, (code, said, told, _) in results.items():
        (out / f"{feature}.{way}.said").write_text(f"{said}status {code}\n")
        (out / f"{feature}.{way}.told").write_text(told)
    return feature, results


def status(code):
    """As a shell says it, which is what gpuscope passes on."""
    return code if isinstance(code, str) or code >= 0 else 128 - code


def main():
    names = sys.argv[4:] or subprocess.check_output([features], text=True).split()
    worse = 0
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for feature, results in pool.map(look, names):
            alone, said = status(results["alone"][0]), results["alone"][1]
            differ = [way for way, (code, text, _, _) in results.items() if (status(code), text) != (alone, said)]
            worse += bool(differ)
            took = ", ".join(f"{way} {result[3]:.1f}" for way, result in results.items())
            print(f"{feature}: {'same' if not differ else 'DIFFERS: ' + ', '.join(differ)} (status {alone}, {said.strip()!r}; s: {took})",
                  flush=True)
    return 1 if worse else 0


sys.exit(main())
