"""What a call has to do with kernels, by documented name.

DRIVER: the argument with the kernel that it launches, the `kernel` of a row; and its `shape`: grid x y z, block x y z,
bytes of dynamic shared memory. Legacy launches take their block from earlier calls and have no shape.
STUBS: the argument of a launch by the runtime that holds a function of the host, the `stub` of a row. The driver's
launch within it is what counts.
NAMES: which argument gets the handle of a kernel, and by which it is named: the `names` of a row.
"""

ARGUMENTS = "gridDimX gridDimY gridDimZ blockDimX blockDimY blockDimZ sharedMemBytes"
BEHIND_CONFIG = " ".join("config." + name for name in ARGUMENTS.split())

DRIVER = {
    "cuLaunchKernel": ("f", ARGUMENTS),
    "cuLaunchCooperativeKernel": ("f", ARGUMENTS),
    "cuLaunchKernelEx": ("f", BEHIND_CONFIG),
    "cuLaunch": ("f", None),
    "cuLaunchGrid": ("f", None),
    "cuLaunchGridAsync": ("f", None),
}

STUBS = {
    "cudaLaunchKernel": "func",
    "__cudaLaunchKernel": "kernel",
    "cudaLaunchKernelExC": "func",
    "cudaLaunchCooperativeKernel": "func",
}

NAMES = {
    "cuModuleGetFunction": "hfunc name",
    "cuLibraryGetKernel": "pKernel name",
    "cuKernelGetFunction": "pFunc from=kernel",
}

# After these a handle may be given to another kernel.
UNLOADS = {
    "cuModuleUnload",
    "cuLibraryUnload",
    "cuCtxDestroy",
    "cuDevicePrimaryCtxReset",
    "cuDevicePrimaryCtxRelease",
}
