"""Calls a function as hammer.c does, and answers as it does, below so many frames of Python.

usage: caller.py LIBRARY FRAMES     then on stdin, a line each:  FUNCTION CALLS THREADS RATE     (one thread, at full speed)
"""
import ctypes
import sys
import time


def below(frames, work):
    return below(frames - 1, work) if frames > 1 else work()


def strike(function, calls):
    place = ctypes.c_void_p()
    words = [ctypes.byref(place), 4096]
    start, cpu_start = time.monotonic_ns(), time.thread_time_ns()
    for _ in range(calls):
        function(*words)
    return (time.thread_time_ns() - cpu_start) / calls, (time.monotonic_ns() - start) / 1e9


def main():
    library = ctypes.CDLL(sys.argv[1])
    for line in sys.stdin:
        name, calls, _threads, _rate = line.split()
        function = getattr(library, name)
        # those of main and of strike are two of them, the lambda is one
        ns, seconds = below(int(sys.argv[2]) - 3, lambda: strike(function, int(calls)))
        print(f"{ns:.3f} {calls} {seconds:.6f}", flush=True)


main()
