"""Work that is the same in every run: kernels, copies of all ways, fills, a graph, two streams; and kernels back to back, timed
by events.

usage: executed.py [STEPS] [--profile]
Prints RAN {…}: CLOCK_MONOTONIC ns around the loop, the time between events around a chain of products, how many kernels of
the chain there are, bytes of the device in use, and with --profile what torch.profiler has seen.
"""
import json
import sys
import time

import torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 50
CHAIN = 100


def now() -> int:
    torch.cuda.synchronize()
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def chain() -> float:
    """Milliseconds between events around products that leave no gap between them."""
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(3):
        torch.mm(a, a, out=out)
    torch.cuda.synchronize()
    # something to do while the host queues what is timed
    torch.mm(a, a, out=out)
    torch.cuda._sleep(20_000_000)
    begin.record()
    for _ in range(CHAIN):
        torch.mm(a, a, out=out)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def captured(inputs: torch.Tensor) -> torch.cuda.CUDAGraph:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        inputs.mul_(1.0).add_(1.0)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(5):
            inputs.mul_(1.0).add_(1.0)
    return graph


def loop() -> float:
    pageable, pinned = torch.randn(1 << 18), torch.randn(1 << 18).pin_memory()
    on_device = torch.empty(1 << 18, device="cuda")
    graph = captured(on_device)
    other, total = torch.cuda.Stream(), 0.0
    for _ in range(STEPS):
        on_device.copy_(pageable)
        on_device.copy_(pinned, non_blocking=True)
        graph.replay()
        filled = torch.zeros(1 << 16, device="cuda")
        other.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(other):
            sums = (on_device * 2).sum()
        torch.cuda.current_stream().wait_stream(other)
        total += (sums + filled.sum()).item()
    return total


def main() -> None:
    torch.manual_seed(7)
    begin = now()
    total = loop()
    end = now()
    elapsed = chain()
    free, all_bytes = torch.cuda.mem_get_info()
    print("RAN", json.dumps({"steps": STEPS, "begin_ns": begin, "end_ns": end, "chain_ms": elapsed, "chain": CHAIN,
                             "used_bytes": all_bytes - free, "total": total}), flush=True)


def profiled() -> None:
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        main()
    kernels = [event for event in found.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    print("PROFILED", json.dumps({"device_events": len(kernels)}), flush=True)


profiled() if "--profile" in sys.argv else main()
