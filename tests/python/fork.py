"""Allocates GPU memory in a child process. Argument: the simulated libcuda. Steps as allocate.py does."""
import ctypes
import os
import sys

cuda = ctypes.CDLL(sys.argv[1])


def work():
    pointer, context = ctypes.c_uint64(), ctypes.c_void_p()
    failed = cuda.cuInit(0) or cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
    return failed or cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(1))


def step(word):
    print(word, flush=True)
    sys.stdin.readline()


step("ready")
told, tell = os.pipe()
go_on, let_go = os.pipe()
child = os.fork()
if not child:
    failed = work()
    os.write(tell, b"allocated")
    os.read(go_on, 1)
    os._exit(failed)
os.read(told, 9)
step("done")
os.write(let_go, b".")
_, status = os.waitpid(child, 0)
sys.exit(status)
