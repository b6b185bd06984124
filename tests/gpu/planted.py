"""Loops of CuPy with one planted reason why the device waits, and one without.

usage: planted.py loader|item|tiny|pageable|alloc|compile|throttled|sound [SECONDS]
loader: each batch comes from a worker process that takes 4 ms for it.
item: a value is read in each step, before the host keeps its books.
tiny: additions of 1,024 numbers, one by one.
pageable: 16 MiB of pageable memory are copied in each step.
alloc: memory of 64 MiB comes from the driver in each step and goes back to it.
compile: PTX that is new to the driver is loaded in each tenth step, once the loop has run for 1.5 s without.
throttled: three processes that only count share the processor with the loop.
sound: products one after the other, waited for once in 30 steps.
Prints `RAN {…}`.
"""
import json
import multiprocessing
import os
import random
import subprocess
import sys
import time

os.environ.setdefault("CUDA_CACHE_DISABLE", "1")
CASE = sys.argv[1]
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 1.2

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry planted(.param .u64 numbers) {
  .reg .f32 %f<4>; .reg .b64 %a<4>; .reg .b32 %t<2>;
  ld.param.u64 %a1, [numbers]; cvta.to.global.u64 %a2, %a1;
  mov.u32 %t1, %tid.x; mul.wide.u32 %a3, %t1, 4; add.s64 %a2, %a2, %a3;
  ld.global.f32 %f1, [%a2];
BODY
  st.global.f32 [%a2], %f1; ret;
}"""


def batches(queue) -> None:
    while True:
        time.sleep(0.004)
        queue.put(1.0)


def count() -> None:
    while True:
        pass


def started(work, *arguments) -> None:
    multiprocessing.Process(target=work, args=arguments, daemon=True).start()


def books() -> float:
    return sum(sorted(random.random() for _ in range(1500))[:100])


def products(cupy, size: int):
    """One step of that many products, one after the other."""
    factor = cupy.random.rand(2048, 2048, dtype=cupy.float32) / 1024
    kept = [factor, cupy.empty_like(factor)]

    def step(number: int) -> None:
        for _ in range(size):
            cupy.matmul(factor, kept[0], out=kept[1])
            kept.reverse()

    return step, kept


def loader(cupy):
    work, _ = products(cupy, 2)
    queue = multiprocessing.Queue(1)
    started(batches, queue)

    def step(number: int) -> None:
        queue.get()
        work(number)

    return step


def item(cupy):
    work, kept = products(cupy, 2)

    def step(number: int) -> None:
        work(number)
        kept[0].sum().item()
        books()

    return step


def tiny(cupy):
    numbers = cupy.zeros(1024, dtype=cupy.float32)

    def step(number: int) -> None:
        for _ in range(100):
            cupy.add(numbers, 1, out=numbers)
        if number % 20 == 19:
            cupy.cuda.Device().synchronize()

    return step


def pageable(cupy):
    import numpy
    work, _ = products(cupy, 2)
    host = numpy.ones(4 << 20, dtype=numpy.float32)
    there = cupy.empty(4 << 20, dtype=cupy.float32)

    def step(number: int) -> None:
        there.set(host)
        work(number)

    return step


def alloc(cupy):
    work, _ = products(cupy, 2)
    cupy.cuda.set_allocator(None)

    def step(number: int) -> None:
        scratch = cupy.empty(64 << 20, dtype=cupy.uint8)
        scratch.fill(number % 7)
        work(number)

    return step


def compile_late(cupy):
    work, _ = products(cupy, 2)
    numbers = cupy.zeros(32, dtype=cupy.float32)
    begin = time.perf_counter()

    def step(number: int) -> None:
        work(number)
        if time.perf_counter() - begin > 1.5 and number % 10 == 0:
            body = "\n".join(f"  mul.f32 %f2, %f1, 0f3F8{k % 10}{number % 1000:04d}; fma.rn.f32 %f1, %f2, %f1, %f2;" for k in range(800))
            kernel = cupy.cuda.function.Module()
            kernel.load(PTX.replace("BODY", body).encode())
            kernel.get_function("planted")((1,), (32,), (numbers,))
            KEPT.append(kernel)

    return step


def throttled(cupy):
    os.sched_setaffinity(0, {os.cpu_count() - 1})
    for _ in range(3):
        started(count)
    work, _ = products(cupy, 2)

    def step(number: int) -> None:
        work(number)
        cupy.cuda.Device().synchronize()
        books()

    return step


def sound(cupy):
    work, _ = products(cupy, 10)

    def step(number: int) -> None:
        work(number)
        if number % 30 == 29:
            cupy.cuda.Device().synchronize()

    return step


KEPT: list = []


def main() -> None:
    cases = {"loader": loader, "item": item, "tiny": tiny, "pageable": pageable, "alloc": alloc, "compile": compile_late,
             "throttled": throttled, "sound": sound}
    if CASE == "loader":
        multiprocessing.set_start_method("spawn")
    import cupy
    step = cases[CASE](cupy)
    for number in range(5):
        step(number)
    cupy.cuda.Device().synchronize()
    end = time.perf_counter() + SECONDS + (1.5 if CASE == "compile" else 0)
    steps = 0
    while time.perf_counter() < end:
        step(steps)
        steps += 1
    cupy.cuda.Device().synchronize()
    print("RAN", json.dumps({"case": CASE, "steps": steps}), flush=True)


if __name__ == "__main__":
    main()
