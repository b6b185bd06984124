"""Trains in steps that wait for their data: each launches twice, loads a batch outside CUDA, and waits for the device.

Arguments: the simulated libcuda, how many steps, and how batches are loaded: `sleep` or `work`. The tests name the lines of
this file.
"""
import ctypes
import sys
import time

cuda = ctypes.CDLL(sys.argv[1])


def check(result):
    if result:
        sys.exit(f"the library said {result}")


def load_batch(how):
    until = time.monotonic() + 0.005
    if how == "sleep":
        return time.sleep(0.005)
    while time.monotonic() < until:
        sum(range(300))


def log():
    time.sleep(0.0015)


def launch(kernel):
    check(cuda.cuLaunchKernel(kernel, 4, 1, 1, 128, 1, 1, 0, None, None, None))


def train(kernel, steps, how):
    for number in range(steps):
        launch(kernel)
        launch(kernel)
        load_batch(how)
        check(cuda.cuCtxSynchronize())
        if number % 50 == 49:
            launch(kernel)
            log()
            check(cuda.cuCtxSynchronize())


check(cuda.cuInit(0))
context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
check(cuda.cuModuleLoadData(ctypes.byref(module), b"\x7fELF" + bytes(60)))
check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"step"))
train(kernel, int(sys.argv[2]), sys.argv[3])
