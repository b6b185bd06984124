"""Has a thread that Python has not started call back into Python, and allocate GPU memory itself in between.

Arguments: the simulated libcuda, the library of that thread, how often. Waits for two lines.
"""
import ctypes
import sys

cuda, thread = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
context = ctypes.c_void_p()


def called():
    cuda.cuCtxSetCurrent(context)
    pointer = ctypes.c_uint64()
    cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(1000))


cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
sys.stdin.readline()
callback = ctypes.CFUNCTYPE(None)(called)
thread.in_thread(callback, ctypes.cast(cuda.cuMemAlloc_v2, ctypes.c_void_p), int(sys.argv[3]))
sys.stdin.readline()
