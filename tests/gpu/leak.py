"""A training loop with a planted leak: `forget` keeps one tensor of each step in a list.

Usage: leak.py [STEPS=40] [BYTES=3000000] [PAUSE=0 seconds a step]; the last line says what PyTorch's own allocator counts.
"""
import json
import sys
import time

import torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 40
BYTES = int(sys.argv[2]) if len(sys.argv) > 2 else 3_000_000
PAUSE = float(sys.argv[3]) if len(sys.argv) > 3 else 0
KEPT = []


def forget():
    KEPT.append(torch.empty(BYTES, dtype=torch.uint8, device="cuda"))  # the leak


def work(weight):
    out = torch.randn(64, 1024, device="cuda") @ weight
    return torch.relu(out).sum()


def main():
    weight = torch.randn(1024, 1024, device="cuda")
    for _ in range(STEPS):
        work(weight)
        forget()
        time.sleep(PAUSE)
    torch.cuda.synchronize()
    time.sleep(1.5)
    stats = torch.cuda.memory_stats()
    keys = ["requested_bytes.all.current", "allocated_bytes.all.current", "reserved_bytes.all.current",
            "allocation.all.current", "allocation.all.allocated", "allocation.all.freed"]
    with open(__file__, encoding="utf-8") as source:
        line = next(number for number, text in enumerate(source, 1) if text.rstrip().endswith("# the leak"))
    print("LEAK " + json.dumps({"line": line, "kept": STEPS * BYTES, **{key: stats.get(key) for key in keys}}), flush=True)


main()
