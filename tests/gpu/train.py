"""A small transformer trained with a fixed seed: prints each loss to the last bit, then the time of the loop.

usage: train.py [STEPS] [--wait]
--wait: warm-up steps, `READY pid`, a line of stdin, STEPS steps, `DONE`, a line of stdin, end.
"""
import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch  # noqa: E402  (the setting above must come first)

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
WAIT = "--wait" in sys.argv


def model(width: int, vocabulary: int) -> torch.nn.Module:
    layer = torch.nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
    return torch.nn.Sequential(
        torch.nn.Embedding(vocabulary, width),
        torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
        torch.nn.Linear(width, vocabulary),
    )


def step(net, optimizer, batch) -> float:
    tokens = batch.cuda(non_blocking=True)
    logits = net(tokens[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.item()


def main() -> None:
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True, warn_only=True)
    net = model(256, 1000).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    batches = [torch.randint(0, 1000, (16, 65)).pin_memory() for _ in range(8)]
    for i in range(5):
        print("LOSS", step(net, optimizer, batches[i % 8]).hex(), flush=True)
    torch.cuda.synchronize()
    if WAIT:
        print("READY", os.getpid(), flush=True)
        sys.stdin.readline()
    start = time.perf_counter()
    for i in range(STEPS):
        print("LOSS", step(net, optimizer, batches[i % 8]).hex(), flush=True)
    torch.cuda.synchronize()
    print("SECONDS", time.perf_counter() - start, flush=True)
    if WAIT:
        print("DONE", flush=True)
        sys.stdin.readline()


main()
