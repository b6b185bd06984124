"""What the tables of NVIDIA's kernel driver do not say: what a call does, what a class is, what a field holds."""

# What an ioctl of the front end does; the decoder and the model act on this word, never on a name.
ESCAPE_ROLES = {
    "RM_ALLOC": "alloc",
    "RM_ALLOC_OBJECT": "alloc",
    "RM_ALLOC_MEMORY": "alloc",
    "RM_FREE": "free",
    "RM_CONTROL": "control",
    "RM_DUP_OBJECT": "duplicate",
    "RM_MAP_MEMORY": "map_cpu",
    "RM_UNMAP_MEMORY": "unmap_cpu",
    "RM_MAP_MEMORY_DMA": "map_gpu",
    "RM_UNMAP_MEMORY_DMA": "unmap_gpu",
    "ALLOC_OS_EVENT": "event_open",
    "FREE_OS_EVENT": "event_close",
    "IOCTL_XFER_CMD": "wrapper",
}

# What a UVM ioctl does.
UVM_ROLES = {
    "UVM_CREATE_EXTERNAL_RANGE": "range_open",
    "UVM_ALLOC_SEMAPHORE_POOL": "range_open",
    "UVM_MAP_DYNAMIC_PARALLELISM_REGION": "range_open",
    "UVM_ALLOC_DEVICE_P2P": "range_open",
    "UVM_FREE": "range_close",
    "UVM_MAP_EXTERNAL_ALLOCATION": "range_map",
    "UVM_REGISTER_GPU_VASPACE": "space_open",
    "UVM_UNREGISTER_GPU_VASPACE": "space_close",
}

# Classes whose kind is finer than the category of the table.
CLASS_KINDS = {
    "NV01_MEMORY_SYSTEM": "sysmem",
    "NV01_MEMORY_SYSTEM_OS_DESCRIPTOR": "sysmem",
    "NV01_MEMORY_LOCAL_USER": "vidmem",
    "NV01_MEMORY_VIRTUAL": "virtual",
    "NV50_MEMORY_VIRTUAL": "virtual",
    "NV20_SUBDEVICE_0": "subdevice",
}
CATEGORY_KINDS = {
    "client": "client",
    "device": "device",
    "tsg": "channel_group",
    "channel": "channel",
    "context_share": "context_share",
    "va_space": "va_space",
    "memory": "memory",
    "event": "event",
    "doorbell": "doorbell",
    "compute_engine": "engine",
    "copy_engine": "engine",
}

# The one field behind pAllocParms that is worth a read, by the struct that lies there.
BEHIND = {
    "NV_MEMORY_ALLOCATION_PARAMS": ("size", "z"),
    "NV_CHANNEL_ALLOC_PARAMS": ("engineType", "e"),
    "NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS": ("engineType", "e"),
    "NV0080_ALLOC_PARAMETERS": ("deviceId", "n"),
    "NV2080_ALLOC_PARAMETERS": ("subDeviceId", "n"),
    "NV_CTXSHARE_ALLOCATION_PARAMETERS": ("hVASpace", "h"),
}

# Fields that are not shown: for the driver's inner use, of no fixed meaning, or too long.
HIDDEN = {
    "pRightsRequested", "ivcHeapNumber", "kindOverride", "flags2", "sharePolicy", "data", "pProc", "pParm1", "pParm2",
    "pDevNode", "ParmStrLength", "pParmStr", "BinaryDataLength", "pBinaryData", "Data", "Entry", "DevNodeLength",
    "phClients", "phDevices", "phChannels", "semaphoreAddress", "semaphorePayload", "pci_info", "interrupt_line",
    "reg_address", "reg_size", "fb_address", "fb_size", "valid", "dev_name", "minor_number", "use_auto_online",
    "requestedVersion", "grantedVersion", "mappingType", "bAllowMmap", "index", "selector", "hSubDevice",
}

# What the driver writes: `<` written only, `=` read and written.
WRITTEN = {
    "hObjectNew": "=", "pLinearAddress": "=", "dmaOffset": "=", "versionString": "=", "fd@EXPORT_TO_DMABUF_FD": "=",
    "rangeGroupId@UVM_CREATE_RANGE_GROUP": "<", "MoreEvents": "<", "pageableMemAccess": "<", "bytesRead": "<",
    "bytesWritten": "<", "numaEnabled": "<", "numaNodeId": "<", "total": "<", "free": "<", "reply": "<",
    "memblock_size": "<", "adapterStatus": "<", "rc": "<", "nid": "<", "numa_mem_addr": "<", "numa_mem_size": "<",
    "intrStatus": "<", "gpu_id": "<",
}

ADDRESSES = {
    "params", "base", "requestedBase", "queueBuffer", "controlBuffer", "buffer", "targetVa", "tablePtr", "ptr",
    "userSpaceStart", "numa_mem_addr", "dmaOffset",
}
SIZES = {
    "length", "size", "total", "free", "totalSize", "queueBufferSize", "bytesRead", "bytesWritten", "userSpaceLength",
    "memblock_size", "numa_mem_size",
}
FLAGS = {"flags", "eventTypeFlags", "counterTypeFlags", "gpu_id", "accessMask"}
DESCRIPTORS = {"fd", "ctl_fd", "rmCtrlFd", "uvmFd"}
PROCESSORS = {"processor", "preferredLocation"}
