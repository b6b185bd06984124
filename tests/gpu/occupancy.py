"""Kernels that take registers, shared memory and blocks of many sizes, launched by the driver alone, and how many blocks of each
the driver says that a multiprocessor has room for.

usage: occupancy.py
Prints RAN {…}: by kernel `percent`, the warps of these blocks of all that there is room for.
"""
import ctypes
import json

cuda = ctypes.CDLL("libcuda.so.1")
MULTIPROCESSORS, THREADS_OF_ONE = 16, 39
MAX_DYNAMIC_SHARED = 8

KERNEL = """
.visible .entry {name}(.param .u64 out)
{{
    .reg .u64 %a<3>;
    .reg .u32 %r<{registers}>;
    ld.param.u64 %a1, [out];
    cvta.to.global.u64 %a2, %a1;
{loads}
{stores}
    ret;
}}
"""


def ask(name: str, *arguments) -> None:
    code = getattr(cuda, name)(*arguments)
    if code:
        raise SystemExit(f"{name}: error {code}")


def attribute(number: int) -> int:
    value = ctypes.c_int()
    ask("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
    return value.value


def kernel(live: int) -> str:
    """One that has so many values at a time: all are loaded before the first is stored."""
    loads = "\n".join(f"    ld.volatile.global.u32 %r{i}, [%a2+{4 * i}];" for i in range(live))
    stores = "\n".join(f"    st.volatile.global.u32 [%a2+{4 * i}], %r{live - 1 - i};" for i in range(live))
    return KERNEL.format(name=f"live{live}", registers=live, loads=loads, stores=stores)


def main() -> None:
    ask("cuInit", 0)
    context = ctypes.c_void_p()
    ask("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    ask("cuCtxSetCurrent", context)
    shapes = [(live, threads, shared) for live in (8, 24, 40, 60, 96, 160) for threads in (32, 96, 256, 768)
              for shared in (0, 9000, 40000)]
    code = ".version 7.0\n.target sm_70\n.address_size 64\n" + "".join(
        kernel(live).replace(f"live{live}", f"live{live}_{threads}_{shared}") for live, threads, shared in shapes)
    module, memory = ctypes.c_void_p(), ctypes.c_uint64()
    ask("cuModuleLoadData", ctypes.byref(module), code.encode())
    ask("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4096))
    told = {}
    for live, threads, shared in shapes:
        name, function, blocks = f"live{live}_{threads}_{shared}", ctypes.c_void_p(), ctypes.c_int()
        ask("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        ask("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, shared)
        ask("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks), function, threads, ctypes.c_size_t(shared))
        if not blocks.value:
            continue
        argument = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(memory), ctypes.c_void_p))
        grid = attribute(MULTIPROCESSORS) * blocks.value
        ask("cuLaunchKernel", function, grid, 1, 1, threads, 1, 1, shared, None, argument, None)
        warps = -(-threads // 32) * blocks.value
        told[name] = {"percent": warps * 100 * 32 / attribute(THREADS_OF_ONE), "grid": grid}
    ask("cuCtxSynchronize")
    print("RAN", json.dumps({"kernels": told}))


main()
