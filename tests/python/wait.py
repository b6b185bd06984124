"""Waits for the device at two lines, each time for a kernel that was launched just before.

Arguments: the simulated libcuda, and how many steps. The tests name the lines of this file.
"""
import ctypes
import sys
import time

cuda = ctypes.CDLL(sys.argv[1])


def check(result):
    if result:
        sys.exit(f"the library said {result}")


def launch(kernel):
    check(cuda.cuLaunchKernel(kernel, 4, 1, 1, 128, 1, 1, 0, None, None, None))


def train(kernel):
    launch(kernel)
    check(cuda.cuCtxSynchronize())


def validate(kernel):
    launch(kernel)
    check(cuda.cuCtxSynchronize())


check(cuda.cuInit(0))
context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
check(cuda.cuModuleLoadData(ctypes.byref(module), b"\x7fELF" + bytes(60)))
check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"step"))
for number in range(int(sys.argv[2])):
    time.sleep(0.001)
    train(kernel)
    if number % 4 == 3:
        validate(kernel)
