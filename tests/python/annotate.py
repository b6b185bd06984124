"""Names its phases by NVTX's library of before, and copies to a device in them.

Arguments: that library, and the simulated libcudart. Each line of stdin has it take one step.
"""
import ctypes
import sys

nvtx = ctypes.CDLL(sys.argv[1])
cuda = ctypes.CDLL(sys.argv[2])
BYTES = 4096


def check(result):
    if result:
        sys.exit(f"the library said {result}")


device = ctypes.c_void_p()
host = ctypes.create_string_buffer(BYTES)
check(cuda.cudaMalloc(ctypes.byref(device), ctypes.c_size_t(BYTES)))


def copy(times):
    for _ in range(times):
        check(cuda.cudaMemcpy(device, host, ctypes.c_size_t(BYTES), 1))


for _ in sys.stdin:
    nvtx.nvtxRangePushA(b"step")
    copy(3)
    nvtx.nvtxRangePushW("größer")
    copy(2)
    nvtx.nvtxRangePop()
    nvtx.nvtxRangePop()
    copy(1)
    nvtx.nvtxMarkA(b"over")
    print("stepped", flush=True)
