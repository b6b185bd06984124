"""A CUDA graph of very many small kernels, replayed until so many have run.

usage: nodes.py MILLIONS [--nodes NODES]
Prints READY and the process id, then `RAN {…}`: kernels that graphs have run, replays, seconds, and bytes of the device in use
before the first replay and after the last, by the driver's word.
"""
import json
import os
import sys
import time

import torch

WANTED = float(sys.argv[1]) * 1e6
NODES = int(sys.argv[sys.argv.index("--nodes") + 1]) if "--nodes" in sys.argv else 1000


def used() -> int:
    free, total = torch.cuda.mem_get_info()
    return total - free


def main() -> None:
    sums = torch.zeros(64, device="cuda")
    sums.add_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(NODES):
            sums.add_(1)
    print("READY", os.getpid(), flush=True)
    before, replays, start = used(), 0, time.monotonic()
    while replays * NODES < WANTED:
        for _ in range(20):
            graph.replay()
            replays += 1
        torch.cuda.synchronize()
    seconds = time.monotonic() - start
    told = {
        "kernels": replays * NODES,
        "replays": replays,
        "seconds": round(seconds, 2),
        "used_before": before,
        "used_after": used(),
        "sum": float(sums[0]),
    }
    print("RAN", json.dumps(told), flush=True)


main()
