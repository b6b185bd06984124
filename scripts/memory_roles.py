"""What calls do to memory, by documented name: the `memory` of a row (vocabulary: crates/catalog/src/catalog/memory.rs).

Sources: tables/cuda/families.csv; the arguments are checked when the catalogue is read.
"""

ARRAY = ("key=pHandle width=pAllocateArray.Width height=pAllocateArray.Height "
         "format=pAllocateArray.Format channels=pAllocateArray.NumChannels")
DESCRIPTOR = "x=desc.x y=desc.y z=desc.z w=desc.w"

DRIVER = {
    "cuMemAlloc": "alloc device key=dptr",
    "cuMemAllocPitch": "alloc device key=dptr",
    "cuMemAllocManaged": "alloc managed key=dptr",
    "cuMemAllocAsync": "alloc async key=dptr stream=hStream",
    "cuMemAllocFromPoolAsync": "alloc async key=dptr stream=hStream pool=pool",
    "cuMemAllocHost": "alloc pinned key=pp",
    "cuMemHostAlloc": "alloc pinned key=pp",
    "cuMemHostRegister": "alloc registered key=p size=bytesize",
    "cuMemAddressReserve": "alloc reserved key=ptr size=size",
    "cuMemCreate": "alloc physical key=handle location=prop.location.type device=prop.location.id",
    "cuMemImportFromShareableHandle": "alloc imported key=handle",
    "cuMulticastCreate": "alloc multicast key=mcHandle",
    "cuArrayCreate": "alloc array " + ARRAY,
    "cuArray3DCreate": "alloc array " + ARRAY + " depth=pAllocateArray.Depth",
    "cuMipmappedArrayCreate": "alloc mipmapped " + ARRAY.replace("Array.", "MipArray.")
        .replace("pAllocateMipArray", "pMipmappedArrayDesc")
        + " depth=pMipmappedArrayDesc.Depth levels=numMipmapLevels",
    "cuIpcOpenMemHandle": "alloc ipc key=pdptr",
    "cuImportExternalMemory": "alloc external key=extMem_out size=memHandleDesc.size",
    "cuExternalMemoryGetMappedBuffer": "alloc view key=devPtr size=bufferDesc.size",
    "cuMemFree": "free device key=dptr",
    "cuMemFreeAsync": "free device key=dptr stream=hStream",
    "cuMemFreeHost": "free pinned key=p",
    "cuMemHostUnregister": "free registered key=p",
    "cuMemAddressFree": "free reserved key=ptr",
    "cuMemRelease": "free physical key=handle",
    "cuArrayDestroy": "free array key=hArray",
    "cuMipmappedArrayDestroy": "free mipmapped key=hMipmappedArray",
    "cuIpcCloseMemHandle": "free ipc key=dptr",
    "cuDestroyExternalMemory": "free external key=extMem",
    "cuMemMap": "map key=ptr size=size handle=handle",
    "cuMemUnmap": "unmap key=ptr size=size",
    "cuMemRetainAllocationHandle": "retain key=handle address=addr",
    "cuMemPoolCreate": "pool_create key=pool device=poolProps.location.id",
    "cuMemPoolDestroy": "pool_destroy key=pool",
    "cuMemPoolGetAttribute": "pool_read key=pool attribute=attr value=value",
    "cuCtxCreate": "context_create key=pctx device=dev",
    "cuCtxDestroy": "context_destroy key=ctx",
    "cuCtxSetCurrent": "context_set key=ctx",
    "cuCtxPushCurrent": "context_push key=ctx",
    "cuCtxPopCurrent": "context_pop",
    "cuDevicePrimaryCtxRetain": "primary_retain key=pctx device=dev",
    "cuDevicePrimaryCtxRelease": "primary_release device=dev",
    "cuDevicePrimaryCtxReset": "primary_reset device=dev",
    "cuDeviceGetUuid": "device_uuid device=dev low=uuid@0 high=uuid@8",
    "cuStreamCreate": "stream_create key=phStream",
    "cuStreamCreateWithPriority": "stream_create key=phStream",
    "cuStreamBeginCapture": "capture_begin stream=hStream",
    "cuStreamBeginCaptureToGraph": "capture_begin stream=hStream",
    "cuStreamEndCapture": "capture_end stream=hStream graph=phGraph",
    "cuGraphAddMemAllocNode": "graph_alloc key=nodeParams.dptr size=nodeParams.bytesize graph=hGraph "
                              "device=nodeParams.poolProps.location.id",
    "cuGraphAddMemFreeNode": "graph_free key=dptr graph=hGraph",
    "cuGraphAddNode": "graph_alloc type=nodeParams.type key=nodeParams.alloc.dptr "
                      "size=nodeParams.alloc.bytesize graph=hGraph address=nodeParams.free.dptr",
    "cuGraphCreate": "graph_create key=phGraph",
    "cuGraphInstantiate": "graph_instantiate key=phGraphExec graph=hGraph",
    "cuGraphInstantiateWithFlags": "graph_instantiate key=phGraphExec graph=hGraph",
    "cuGraphInstantiateWithParams": "graph_instantiate key=phGraphExec graph=hGraph",
    "cuGraphLaunch": "graph_launch key=hGraphExec",
    "cuGraphDestroy": "graph_destroy key=hGraph",
    "cuGraphExecDestroy": "exec_destroy key=hGraphExec",
}

RUNTIME = {
    "cudaMalloc": "alloc device key=devPtr",
    "cudaMallocPitch": "alloc device key=devPtr",
    "cudaMalloc3D": "alloc device key=pitchedDevPtr.ptr",
    "cudaMallocManaged": "alloc managed key=devPtr",
    "cudaMallocAsync": "alloc async key=devPtr stream=hStream",
    "cudaMallocFromPoolAsync": "alloc async key=ptr stream=stream pool=memPool",
    "cudaMallocHost": "alloc pinned key=ptr",
    "cudaHostAlloc": "alloc pinned key=pHost",
    "cudaHostRegister": "alloc registered key=ptr size=size",
    "cudaMallocArray": "alloc array key=array width=width height=height " + DESCRIPTOR,
    "cudaMalloc3DArray": "alloc array key=array width=extent.width height=extent.height "
                         "depth=extent.depth " + DESCRIPTOR,
    "cudaMallocMipmappedArray": "alloc mipmapped key=mipmappedArray width=extent.width height=extent.height "
                                "depth=extent.depth levels=numLevels " + DESCRIPTOR,
    "cudaIpcOpenMemHandle": "alloc ipc key=devPtr",
    "cudaImportExternalMemory": "alloc external key=extMem_out size=memHandleDesc.size",
    "cudaExternalMemoryGetMappedBuffer": "alloc view key=devPtr size=bufferDesc.size",
    "cudaFree": "free device key=devPtr",
    "cudaFreeAsync": "free device key=devPtr stream=hStream",
    "cudaFreeHost": "free pinned key=ptr",
    "cudaHostUnregister": "free registered key=ptr",
    "cudaFreeArray": "free array key=array",
    "cudaFreeMipmappedArray": "free mipmapped key=mipmappedArray",
    "cudaIpcCloseMemHandle": "free ipc key=devPtr",
    "cudaDestroyExternalMemory": "free external key=extMem",
    "cudaDeviceReset": "device_reset",
}
