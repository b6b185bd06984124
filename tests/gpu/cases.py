"""Training loops with one defect each, and the same without it.

usage: cases.py churn|item|tiny|sleepy|server|saturated|healthy [STEPS] [--fixed]
churn: a scratch buffer of 1 GiB is taken from the driver and given back in each step. --fixed: it is kept.
item: the loss is read in each step, before the host keeps its books. --fixed: it is summed up on the device and read
once, so that the books are kept while the device works.
tiny: a deep model of tiny layers, launched kernel by kernel. --fixed: the same as one CUDA graph.
sleepy: the host sleeps 5 ms in each short step, and nobody waits. --fixed: it does not.
server: requests wait in a queue, and each is answered by itself, from pageable memory. --fixed: up to 32 are answered at once, and 32
steps are one.
saturated: a thousand products of some 20 us each a step, launched as fast as it goes: nothing is wrong with it.
healthy: batches come from pinned memory while the one before is computed; nothing is read until the end.
Prints `SECONDS s` of the loop, the device idle at both ends.
"""
import random
import sys
import time

import torch

CASE = sys.argv[1]
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 200
FIXED = "--fixed" in sys.argv


def network(width: int, layers: int) -> torch.nn.Module:
    parts = [part for _ in range(layers) for part in (torch.nn.Linear(width, width), torch.nn.GELU())]
    return torch.nn.Sequential(*parts).cuda()


def training(width: int, layers: int, batch: int):
    """One step of training on a batch that lies on the device: the loss, not read."""
    net = network(width, layers)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)

    def step(inputs: torch.Tensor) -> torch.Tensor:
        loss = (net(inputs) - inputs).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    inputs = torch.randn(batch, width, device="cuda")
    return step, inputs


def churn():
    step, inputs = training(2048, 4, 4096)
    kept = torch.empty(1 << 30, dtype=torch.uint8, device="cuda") if FIXED else None

    def one() -> None:
        scratch = kept if FIXED else torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        scratch.zero_()
        step(inputs)
        if not FIXED:
            del scratch
            torch.cuda.empty_cache()

    return one, lambda: None


def books() -> float:
    """What a host does beside training, in less than a millisecond."""
    return sum(sorted(random.random() for _ in range(2000))[:100])


def item():
    step, inputs = training(1024, 8, 4096)
    total = torch.zeros((), device="cuda")
    read = []

    def one() -> None:
        loss = step(inputs)
        if FIXED:
            total.add_(loss)
        else:
            read.append(loss.item())
        books()

    return one, lambda: read.append(total.item())


def tiny():
    net = network(64, 100).eval()
    inputs = torch.randn(8, 64, device="cuda")
    if not FIXED:
        return torch.no_grad()(lambda: net(inputs)), lambda: None
    side = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(side):
        for _ in range(3):
            net(inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        net(inputs)
    return graph.replay, lambda: None


def sleepy():
    step, inputs = training(512, 2, 256)

    def one() -> None:
        step(inputs)
        if not FIXED:
            time.sleep(0.005)

    return one, lambda: None


def server():
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    net = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda().half().eval()
    request, at_once = torch.randn(1, 64, 512).half(), 32 if FIXED else 1
    numbers, waiting, answers = iter(range(1 << 30)), [], []

    def one() -> None:
        waiting.append(request)
        if next(numbers) % at_once != at_once - 1:
            return
        with torch.no_grad():
            answers.extend(net(torch.cat(waiting).cuda()).mean(dim=(1, 2)).cpu())
        waiting.clear()

    return one, lambda: None


def saturated():
    factor = torch.randn(2048, 2048, device="cuda", dtype=torch.half)
    product = torch.empty_like(factor)

    def one() -> None:
        for _ in range(1000):
            torch.mm(factor, factor, out=product)

    return one, lambda: None


def healthy():
    step, _ = training(2048, 6, 4096)
    batches = [torch.randn(4096, 2048).pin_memory() for _ in range(4)]
    copies, copied, used = torch.cuda.Stream(), [torch.cuda.Event() for _ in range(2)], [torch.cuda.Event() for _ in range(2)]
    inputs = [torch.empty(4096, 2048, device="cuda") for _ in range(2)]
    numbers = iter(range(1 << 30))

    def fetch(number: int) -> None:
        with torch.cuda.stream(copies):
            copies.wait_event(used[number % 2])
            inputs[number % 2].copy_(batches[number % 4], non_blocking=True)
            copied[number % 2].record(copies)

    fetch(0)

    def one() -> None:
        number = next(numbers)
        fetch(number + 1)
        torch.cuda.current_stream().wait_event(copied[number % 2])
        step(inputs[number % 2])
        used[number % 2].record()

    return one, lambda: None


def main() -> None:
    torch.manual_seed(7)
    cases = {
        "churn": churn, "item": item, "tiny": tiny, "sleepy": sleepy, "server": server, "saturated": saturated, "healthy": healthy,
    }
    one, end = cases[CASE]()
    for _ in range(64 if CASE == "server" else 10):
        one()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(STEPS):
        one()
    end()
    torch.cuda.synchronize()
    print("SECONDS", time.perf_counter() - start, flush=True)


main()
