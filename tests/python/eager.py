"""Launches short kernels, each after a little work of Python: a device that waits for its host, which is never outside CUDA for a
millisecond.

Arguments: the simulated libcuda, how many steps, and, if a thread is to launch instead, its library and how often it does so
at once; 0: it launches what it is handed, after some work of Python. The tests name its functions.
"""
import ctypes
import sys
import time

cuda = ctypes.CDLL(sys.argv[1])


def check(result):
    if result:
        sys.exit(f"the library said {result}")


def work(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def launch(kernel):
    check(cuda.cuLaunchKernel(kernel, 4, 1, 1, 128, 1, 1, 0, None, None, None))


def forward(kernel):
    for _ in range(10):
        work(0.0004)
        launch(kernel)


def backward(thread, times):
    thread.launch_in_thread(times)


def prepare():
    work(0.004)


def optimize(kernel):
    for _ in range(10):
        work(0.0002)
        launch(kernel)


check(cuda.cuInit(0))
context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
check(cuda.cuModuleLoadData(ctypes.byref(module), b"\x7fELF" + bytes(60)))
check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"step"))
steps = int(sys.argv[2])
if len(sys.argv) > 3:
    thread, at_once = ctypes.CDLL(sys.argv[3]), int(sys.argv[4])
    start = thread.start_thread if at_once else thread.start_dispatcher
    start(cuda.cuCtxSetCurrent, context, cuda.cuLaunchKernel, kernel)
    for _ in range(20 * steps // at_once if at_once else steps):
        if at_once:
            launch(kernel)
            backward(thread, at_once)
        else:
            prepare()
            thread.hand_over()
    steps = 0
for _ in range(steps):
    forward(kernel)
    optimize(kernel)
check(cuda.cuCtxSynchronize())
