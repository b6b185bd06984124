"""Allocates GPU memory from nested functions of several threads.

Arguments: the simulated libcuda, then how many threads. Says "ready", waits for a line, allocates, says "done" and
waits for another line. The tests name the lines of this file: keep `tests/support/callers.rs` in step.
"""
import ctypes
import functools
import sys
import threading

cuda = ctypes.CDLL(sys.argv[1])
allocate = cuda.cuMemAlloc_v2


def check(result):
    if result:
        sys.exit(f"the library said {result}")


class Layer:
    def forward(self, size):
        pointer = ctypes.c_uint64()
        check(
            allocate(
                ctypes.byref(pointer),
                ctypes.c_size_t(size),
            )
        )
        return pointer.value


def generate(sizes):
    layer = Layer()
    for size in sizes:
        yield layer.forward(size)


def recurse(depth, size):
    if depth:
        return recurse(depth - 1, size)
    return sorted([size], key=lambda size: Layer().forward(size))


def größe(size):
    return Layer().forward(size)


def work(number):
    check(cuda.cuCtxSetCurrent(context))
    list(generate([100 + number]))
    recurse(3, 200 + number)
    größe(300 + number)
    functools.reduce(lambda total, size: total + Layer().forward(size), [400 + number], 0)


def step(word):
    print(word, flush=True)
    sys.stdin.readline()


check(cuda.cuInit(0))
context = ctypes.c_void_p()
check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
step("ready")
Layer().forward(1)
threads = [threading.Thread(target=work, args=(n,)) for n in range(int(sys.argv[2]))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
step("done")
