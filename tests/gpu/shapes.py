"""The calls of shapes.cu on a libcudart that is given, through ctypes: `CALL name code error` for each.

usage: shapes.py LIBCUDART
"""
import ctypes
import sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p


class Dim3(ctypes.Structure):
    _fields_ = [("x", c_uint), ("y", c_uint), ("z", c_uint)]


cudart = ctypes.CDLL(sys.argv[1])
cudart.cudaGetErrorName.restype = c_char_p
cudart.cudaLaunchKernel.argtypes = [c_void_p, Dim3, Dim3, c_void_p, c_size_t, c_void_p]
memory, host = c_void_p(), ctypes.create_string_buffer(64)


def say(name: str, status: int) -> None:
    print("CALL", name, status, cudart.cudaGetErrorName(c_int(status)).decode(), flush=True)


say("cudaMalloc", cudart.cudaMalloc(byref(memory), c_size_t(12345)))
say("cudaLaunchKernel", cudart.cudaLaunchKernel(byref(memory), Dim3(3, 5, 7), Dim3(32, 2, 1), None, 128, None))
say("cudaMemcpy", cudart.cudaMemcpy(host, host, c_size_t(64), c_int(1)))
say("cudaDeviceSynchronize", cudart.cudaDeviceSynchronize())
