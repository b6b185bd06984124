"""A transformer's work, four ways: trained step by step, by several ranks (DDP), replayed as a CUDA graph, or compiled (Triton); or
small layers.

usage: transformer.py train|ddp|graph|compile|forward [STEPS] [--wait] [--times FILE] [--end-on-interrupt]
ddp: started by torchrun, a process for each GPU; rank 0 speaks.
forward: 20 linear layers of 64, a batch of 8, where the host's launches are all that takes time.
Prints READY and the process id; with --wait a line of stdin is awaited. Then `BEGIN ns`, STEPS steps, `END ns` (both
CLOCK_MONOTONIC, the device idle at each), `RAN {…}` with what the program knows of its own launches, and with --wait
another line is awaited. FILE gets a line for each step: when it began (CLOCK_MONOTONIC ns). With --end-on-interrupt, SIGINT ends the
steps before their number is reached.
"""
import json
import os
import signal
import sys
import time

import torch

MODE = sys.argv[1]
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 20
WAIT = "--wait" in sys.argv
TIMES = sys.argv[sys.argv.index("--times") + 1] if "--times" in sys.argv else None
ENDED: list[int] = []
if "--end-on-interrupt" in sys.argv:
    signal.signal(signal.SIGINT, lambda number, _: ENDED.append(number))

RANK = int(os.environ.get("RANK", "0")) if MODE == "ddp" else 0


def model() -> torch.nn.Module:
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.1, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda()


def ranks_step():
    """The same training, whose gradients all ranks share."""
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    return training_step(torch.nn.parallel.DistributedDataParallel(model()))


def training_step(net=None):
    """Forward, backward and optimizer in mixed precision; the loss is read in every step."""
    net = net or model()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    batches = [torch.randn(16, 128, 512).pin_memory() for _ in range(4)]

    def step(number: int) -> float:
        inputs = batches[number % 4].cuda(non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = (net(inputs) - inputs).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def graph_replay():
    """One graph of a forward pass; each step replays it and reads one number."""
    net = model().eval()
    inputs = torch.randn(16, 128, 512, device="cuda")
    side = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(side):
        for _ in range(3):
            net(inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        outputs = net(inputs).square().mean()

    def step(_: int) -> float:
        graph.replay()
        return outputs.item()

    return step


def compiled_step():
    """The same forward pass through torch.compile."""
    net = torch.compile(model().eval())
    inputs = torch.randn(16, 128, 512, device="cuda")

    def step(_: int) -> float:
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
            return torch.nn.functional.gelu(net(inputs) * 2 + 1).square().mean().item()

    return step


def forward_step():
    """Launch-bound: the device waits for the host."""
    net = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(20)]).cuda().eval()
    inputs = torch.randn(8, 64, device="cuda")

    def step(number: int) -> float:
        with torch.no_grad():
            outputs = net(inputs)
        return outputs.sum().item() if number % 100 == 99 else 0.0

    return step


def mark(name: str) -> None:
    torch.cuda.synchronize()
    say(name, time.clock_gettime_ns(time.CLOCK_MONOTONIC))


def say(*words) -> None:
    if RANK == 0:
        print(*words, flush=True)


def keep(begins: list[int]) -> None:
    """The median is less moved by a neighbour's work than the mean."""
    steps = sorted(after - begin for begin, after in zip(begins, begins[1:]))
    say("STEP", json.dumps({"median_ms": steps[len(steps) // 2] / 1e6, "steps": len(steps)}))


def main() -> None:
    torch.manual_seed(7)
    steps = {"train": training_step, "ddp": ranks_step, "graph": graph_replay, "compile": compiled_step, "forward": forward_step}
    step = steps[MODE]()
    for number in range(3):
        step(number)
    torch.cuda.synchronize()
    say("READY", os.getpid())
    if WAIT:
        sys.stdin.readline()
    mark("BEGIN")
    start = time.perf_counter()
    begins, result = [], 0.0
    times = open(TIMES, "w", encoding="ascii", buffering=1) if TIMES and RANK == 0 else None
    for number in range(STEPS):
        if ENDED:
            break
        begins.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
        if times:
            times.write(f"{begins[-1]}\n")
        result = step(number)
    seconds = time.perf_counter() - start
    mark("END")
    keep(begins)
    graphs = STEPS if MODE == "graph" else 0
    ran = {"steps": STEPS, "graph_launches": graphs, "result": result, "seconds": seconds}
    say("RAN", json.dumps(ran))
    if WAIT:
        sys.stdin.readline()
    if MODE == "ddp":
        torch.distributed.destroy_process_group()


main()
