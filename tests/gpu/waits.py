"""One stream waits for another by an event, over and over: for work that takes milliseconds, and for work that is done.

usage: waits.py ROUNDS
Prints `RAN {…}`: waits of a stream for an event, of the host for an event, for a stream and for the device.
"""
import json
import sys

import torch

ROUNDS = int(sys.argv[1])
CYCLES = 10_000_000

first, second = torch.cuda.Stream(), torch.cuda.Stream()
sums = torch.zeros(1 << 20, device="cuda")
torch.cuda.synchronize()
for _ in range(ROUNDS):
    done, seen = torch.cuda.Event(), torch.cuda.Event()
    with torch.cuda.stream(first):
        torch.cuda._sleep(CYCLES)
        done.record()
    with torch.cuda.stream(second):
        second.wait_event(done)
        sums.add_(1)
        seen.record()
    seen.synchronize()
    second.wait_event(done)
    second.synchronize()
torch.cuda.synchronize()
print("RAN", json.dumps({"stream_for_event": 2 * ROUNDS, "event": ROUNDS, "stream": ROUNDS, "device": 2}), flush=True)
