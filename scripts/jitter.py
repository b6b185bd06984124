#!/usr/bin/env python3
"""Runs a command while processes stand still for a moment again and again, as on a machine that has no time for them.

usage: jitter.py LONGEST_MS NAME… -- COMMAND…     NAME: of a program's file, such as gpuscope

The status is the command's. What fails under it and not without rests on when things happen."""
import os
import random
import signal
import subprocess
import sys
import time

SHORTEST_S = 0.02
BETWEEN_S = (0.02, 0.3)
STANDING = "TtZX"


def running(names):
    """Processes of programs of these names that do not stand still already."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            name = os.path.basename(os.readlink(f"/proc/{entry}/exe"))
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                state = stat.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if name in names and state not in STANDING:
            yield int(entry)


def stop_one(names, longest_s):
    """Whether there was one to be stopped."""
    found = list(running(names))
    if not found:
        return False
    chosen = random.choice(found)
    try:
        os.kill(chosen, signal.SIGSTOP)
        try:
            time.sleep(random.uniform(SHORTEST_S, longest_s))
        finally:
            os.kill(chosen, signal.SIGCONT)
    except ProcessLookupError:
        return False
    return True


def main(arguments):
    if "--" not in arguments or len(arguments) < 4:
        sys.exit(__doc__)
    split = arguments.index("--")
    longest_s, names, command = float(arguments[0]) / 1e3, set(arguments[1:split]), arguments[split + 1 :]
    stops = 0
    with subprocess.Popen(command) as child:
        while child.poll() is None:
            stops += stop_one(names, longest_s)
            time.sleep(random.uniform(*BETWEEN_S))
    print(f"jitter.py: {stops} stops", file=sys.stderr)
    return child.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
