"""What the comparisons with a real GPU share: figures, programs that are run, traced and talked to.

The command line of each is GPUSCOPE WORK OUT SECONDS: the binary, where the built programs lie, where figures go, and
how long all of it may take.
"""
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
import traceback
from pathlib import Path

GPUSCOPE, WORK, OUT = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve()
DEADLINE = time.monotonic() + float(sys.argv[4])
HERE = Path(__file__).resolve().parent
LAUNCHES = ["cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz",
            "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz"]

# what only the kernel's engine does (what runs already is watched from outside) is left out with the other
INSIDE = os.environ.get("GPUSCOPE_ENGINE") == "inside"

lines: list[str] = []
samples: list[str] = []


def say(text: str) -> None:
    lines.append(text)
    print(text, flush=True)


def check(what: str, expected, got) -> bool:
    good = expected == got
    say(f"{'PASS' if good else 'FAIL'}  {what}: expected {expected}, got {got}")
    return good


def info(what: str, value) -> None:
    say(f"INFO  {what}: {value}")


def sample(title: str, text: str, limit: int = 50) -> None:
    cut = text.splitlines()
    more = [f"… {len(cut) - limit} more lines"] if len(cut) > limit else []
    samples.append("\n".join([f"===== {title} =====", *cut[:limit], *more, ""]))


class Failed(Exception):
    """A part cannot go on."""


# ---- running things ----

def left(limit: float) -> float:
    rest = DEADLINE - time.monotonic()
    if rest < 2:
        raise Failed("no time left")
    return min(limit, rest)


def run(command, limit=60.0, env=None, log=None):
    """(exit status, stdout, stderr); the whole process group is killed at the limit."""
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, text=True, errors="replace", start_new_session=True,
                             env={**os.environ, **(env or {})})
    limit = left(limit)
    try:
        out, err = child.communicate(timeout=limit)
    except BaseException as error:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        keep(log, command, "killed", out, err)
        if isinstance(error, subprocess.TimeoutExpired):
            raise Failed(f"took more than {limit:.0f} s: {' '.join(map(str, command))}") from None
        raise
    keep(log, command, child.returncode, out, err)
    return child.returncode, out, err


def keep(log, command, status, out, err) -> None:
    if log:
        text = f"$ {' '.join(map(str, command))}\n--- status {status}\n--- stdout\n{out}\n--- stderr\n{err}\n"
        (WORK / "logs" / f"{log}.log").write_text(text)


def last_json(text: str, mark: str = "{"):
    found = [line for line in text.splitlines() if line.startswith(mark)]
    if not found:
        raise Failed(f"no line with {mark} in: {text[-400:]!r}")
    return json.loads(found[-1][found[-1].index("{"):])


def traced(program, options, log, limit=60.0):
    """(status, stdout, summary) of `gpuscope run`."""
    command = [GPUSCOPE, "run", "--getters", "--summary", "json", *options, "--", *program]
    status, out, err = run(command, limit, log=log)
    return status, out, last_json(err)


def counting(program, counts: Path):
    """The command with every libcuda call counted into `counts`, by a library of our own beside what is loaded already."""
    beside = f"LD_PRELOAD={WORK / 'counter.so'}${{LD_PRELOAD:+:$LD_PRELOAD}}"
    return ["env", f"CUDA_CALLS_FILE={counts}", "sh", "-c", f'{beside} exec "$@"', "sh", *program]


def read_counts(path: Path) -> dict[str, int]:
    names = re.findall(r"FUNCTION\(\d+, (\w+)\)", (WORK / "names.h").read_text())
    raw = path.read_bytes()
    numbers = struct.unpack(f"<{len(names)}Q", raw[: 8 * len(names)])
    return {name: number for name, number in zip(names, numbers) if number}


class Live:
    """A process whose output is read line by line and that can be written to."""

    def __init__(self, command, log, read="stdout"):
        self.log, self.read, self.text = log, read, ""
        errors = open(WORK / "logs" / f"{log}.other", "w")
        pipes = {"stdout": errors, "stderr": errors, read: subprocess.PIPE}
        self.child = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, start_new_session=True,
                                      **pipes)
        self.pipe = getattr(self.child, read)
        self.pid = self.child.pid

    def await_line(self, pattern: str, limit: float) -> str:
        end = time.monotonic() + left(limit)
        while True:
            found = re.search(f"^.*{pattern}.*$\n", self.text, re.M)
            if found:
                return found.group(0)
            rest = end - time.monotonic()
            ready = select.select([self.pipe], [], [], max(rest, 0))[0]
            data = os.read(self.pipe.fileno(), 65536) if ready else b""
            if not data:
                raise Failed(f"{self.log}: no line with {pattern!r} (status {self.child.poll()}): {self.text[-500:]!r}")
            self.text += data.decode(errors="replace")

    def send_line(self) -> None:
        self.child.stdin.write(b"\n")
        self.child.stdin.flush()

    def finish(self, how=None, limit=30.0) -> str:
        """Ends it, by a signal or by closing its stdin, and returns all it wrote."""
        if how is not None:
            self.child.send_signal(how)
        self.child.stdin.close()
        end = time.monotonic() + left(limit)
        while time.monotonic() < end:
            if select.select([self.pipe], [], [], 0.2)[0]:
                data = os.read(self.pipe.fileno(), 65536)
                if not data:
                    break
                self.text += data.decode(errors="replace")
        try:
            self.child.wait(left(10))
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.log}: did not end") from None
        finally:
            (WORK / "logs" / f"{self.log}.log").write_text(self.text)
        return self.text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()


def trace(options, log) -> Live:
    """`gpuscope trace`, once it traces."""
    live = Live([GPUSCOPE, "trace", "--getters", "--summary", "json", *options], log, read="stderr")
    live.await_line(r"tracing \d+ functions", 60)
    return live


# ---- parts ----

def attempt(name: str, part, *arguments) -> None:
    """One part; its failure is a line."""
    start = time.monotonic()
    say(f"---- {name} ----")
    try:
        left(1e9)
        part(*arguments)
    except Failed as failure:
        say(f"FAIL  {name}: {failure}")
    except Exception:  # one broken part must not stop the others
        say(f"FAIL  {name}: {traceback.format_exc(limit=3)}")
    info(f"{name}: took", f"{time.monotonic() - start:.1f} s")


def write_figures(name: str, samples_name: str) -> bool:
    """Whether no line is a FAIL."""
    failed = [line for line in lines if line.startswith("FAIL")]
    passed = sum(line.startswith("PASS") for line in lines)
    verdict = f"{passed} passed, {len(failed)} failed"
    (OUT / name).write_text("\n".join([verdict, *failed, "", *lines, ""]))
    (OUT / samples_name).write_text("\n".join(samples))
    return not failed
