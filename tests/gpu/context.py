"""One context from its making to its end, by libcuda alone: each call is known to ask the kernel driver so often.

usage: context.py [--leave | --fault]
--leave: ends without giving anything back. --fault: a kernel writes where nothing is.
"""
import ctypes
import sys

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry touch(.param .u64 at)
{
    .reg .u64 %a;
    .reg .u32 %v;
    ld.param.u64 %a, [at];
    mov.u32 %v, 1;
    st.global.u32 [%a], %v;
    ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")


def must(name: str, *arguments) -> None:
    if status := getattr(cuda, name)(*arguments):
        sys.exit(f"{name} fails with {status}")


def handle() -> ctypes.c_void_p:
    return ctypes.c_void_p()


def launch(kernel, address: int) -> None:
    at = ctypes.c_uint64(address)
    parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(at), ctypes.c_void_p))
    must("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, parameters, None)


def main() -> None:
    device, context, memory, pinned = ctypes.c_int(), handle(), ctypes.c_uint64(), handle()
    must("cuInit", 0)
    must("cuDeviceGet", ctypes.byref(device), 0)
    must("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    must("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(64 << 20))
    must("cuMemAllocHost_v2", ctypes.byref(pinned), ctypes.c_size_t(4096))
    must("cuMemcpyHtoD_v2", memory, pinned, ctypes.c_size_t(4096))
    module, kernel = handle(), handle()
    must("cuModuleLoadData", ctypes.byref(module), PTX)
    must("cuModuleGetFunction", ctypes.byref(kernel), module, b"touch")
    if "--fault" in sys.argv:
        launch(kernel, 0x10)
        print("after the fault:", cuda.cuCtxSynchronize(), flush=True)
        return
    for _ in range(1000):
        launch(kernel, memory.value)
    must("cuCtxSynchronize")
    if "--leave" in sys.argv:
        return
    stream = handle()
    must("cuStreamCreate", ctypes.byref(stream), 1)
    must("cuStreamSynchronize", stream)
    pages = ctypes.create_string_buffer(3 * 4096)
    # parts of two pages, each of which becomes a range
    across = (ctypes.addressof(pages) + 4095) // 4096 * 4096 + 16
    must("cuMemHostRegister_v2", ctypes.c_void_p(across), ctypes.c_size_t(4096), 0)
    shared = ctypes.create_string_buffer(64)
    must("cuIpcGetMemHandle", shared, memory)
    must("cuMemFree_v2", memory)
    must("cuCtxDestroy_v2", context)


main()
