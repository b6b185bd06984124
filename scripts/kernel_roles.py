"""Which argument of a driver call names the kernel that it launches, by documented name: the `kernel` of a row; and
its `shape`: grid x y z, block x y z, bytes of dynamic shared memory.

Only the driver's rows: a launch of the runtime encloses one of the driver, which is counted. Legacy launches take
their block from earlier calls and have no shape.
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

# After these a handle may be given to another kernel.
UNLOADS = {
    "cuModuleUnload",
    "cuLibraryUnload",
    "cuCtxDestroy",
    "cuDevicePrimaryCtxReset",
    "cuDevicePrimaryCtxRelease",
}
