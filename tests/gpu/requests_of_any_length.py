"""A small inference server: four threads answer requests out of a queue, as they come or padded to a multiple of 64.

usage: requests_of_any_length.py [--padded]
250 requests a second for eight seconds; prints how many were answered and how long they took.
"""
import queue
import random
import sys
import threading
import time

import torch
from torch import nn

PADDED = "--padded" in sys.argv
ROOM = 64
DEVICE = torch.device("cuda")
LAYER = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
MODEL = nn.TransformerEncoder(LAYER, 6, enable_nested_tensor=False).to(DEVICE).half().eval()
EMBEDDING = nn.Embedding(30000, 512).to(DEVICE).half()
REQUESTS: queue.Queue = queue.Queue()
LATENCIES: list[float] = []


def hidden(tokens: list[int]) -> torch.Tensor:
    if not PADDED:
        return MODEL(EMBEDDING(torch.tensor(tokens).to(DEVICE)[None]))
    room = -(-len(tokens) // ROOM) * ROOM
    words = torch.tensor(tokens + [0] * (room - len(tokens))).to(DEVICE)[None]
    unused = torch.arange(room, device=DEVICE)[None] >= len(tokens)
    return MODEL(EMBEDDING(words), src_key_padding_mask=unused)[:, : len(tokens)]


def answer() -> None:
    while (request := REQUESTS.get()) is not None:
        came, tokens = request
        with torch.no_grad():
            hidden(tokens).float().mean(dim=1).softmax(-1).max().item()
        LATENCIES.append(time.time() - came)


def main() -> None:
    random.seed(1)
    threads = [threading.Thread(target=answer) for _ in range(4)]
    for thread in threads:
        thread.start()
    end = time.time() + 8
    while time.time() < end:
        REQUESTS.put((time.time(), [random.randrange(30000) for _ in range(random.randrange(16, 512))]))
        time.sleep(0.004)
    for _ in threads:
        REQUESTS.put(None)
    for thread in threads:
        thread.join()
    LATENCIES.sort()
    median, late = (LATENCIES[int(len(LATENCIES) * part)] * 1e3 for part in (0.5, 0.99))
    print(f"{len(LATENCIES)} answers, median {median:.1f} ms, p99 {late:.1f} ms", flush=True)


main()
