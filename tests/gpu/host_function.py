"""A stream that waits for a function of the host: is that the cause of its idle time?

usage: host_function.py GPUSCOPE     prints the causes of idle time from inside and from outside; exit 1 if it is not named
       host_function.py --work       the program: kernels, then a function that sleeps, so often
"""
import ctypes
import json
import subprocess
import sys

ROUNDS, SLEEP_US = 200, 3000


def work() -> None:
    import torch

    runtime = ctypes.CDLL("libcudart.so.13")
    sleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)
    data, stream = torch.rand(4096, 4096, device="cuda"), torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for number in range(ROUNDS):
            for _ in range(4):
                data = torch.sin(data @ data)
            handle = ctypes.c_void_p(stream.cuda_stream)
            assert runtime.cudaLaunchHostFunc(handle, sleep, ctypes.c_void_p(SLEEP_US)) == 0
            if number % 20 == 19:
                stream.synchronize()
    torch.cuda.synchronize()


def causes(gpuscope: str, engine: str) -> dict:
    command = [gpuscope, "run", "-q", "--engine", engine, "--gpu", "on", "--summary", "json", "--", sys.executable, __file__, "--work"]
    ran = subprocess.run(command, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, timeout=90)
    summary = json.loads(ran.stderr.strip().splitlines()[-1])
    (device,) = summary["gpu"]["devices"]
    return {row["cause"]: (round(row["idle_us"] / 1e3, 1), row["gaps"]) for row in device["idle_causes"]}


def main() -> None:
    if sys.argv[1] == "--work":
        return work()
    named = True
    for engine in ("inside", "kernel"):
        found = causes(sys.argv[1], engine)
        ms = found.get("host-function", (0, 0))[0]
        print(f"{engine}: {found} (ms, gaps); functions slept {ROUNDS * SLEEP_US / 1e3:.0f} ms at least", flush=True)
        # behind every twentieth round the host waits, too
        named &= ms >= 0.9 * ROUNDS * SLEEP_US / 1e3
    sys.exit(not named)


main()
