"""What driver calls have to do with the work of a GPU, by documented name: the `work` of a row (vocabulary:
crates/catalog/src/catalog/work.rs).

Only the driver's rows: a call of the runtime encloses one of the driver. A copy without `stream` blocks and goes to
the default stream; the arguments are checked when the catalogue is read.
"""

import re

DESCRIBED = ("copy from_type={0}.srcMemoryType from_host={0}.srcHost from_device={0}.srcDevice "
             "to_type={0}.dstMemoryType to_host={0}.dstHost to_device={0}.dstDevice").format("pCopy")

BLOCKING = {
    "cuMemcpy": "copy from=src to=dst",
    "cuMemcpyHtoD": "copy from=srcHost to=dstDevice",
    "cuMemcpyDtoH": "copy from=srcDevice to=dstHost",
    "cuMemcpyDtoD": "copy from=srcDevice to=dstDevice",
    "cuMemcpyHtoA": "copy from=srcHost",
    "cuMemcpyAtoH": "copy to=dstHost",
    "cuMemcpyAtoD": "copy to=dstDevice",
    "cuMemcpyDtoA": "copy from=srcDevice",
    "cuMemcpyAtoA": "copy",
    "cuMemcpyPeer": "copy from=srcDevice to=dstDevice",
    "cuMemcpy2D": DESCRIBED,
    "cuMemcpy2DUnaligned": DESCRIBED,
    "cuMemcpy3D": DESCRIBED,
    "cuMemcpy3DPeer": DESCRIBED,
}

DRIVER = BLOCKING | {name + "Async": role + " stream=hStream" for name, role in BLOCKING.items()} | {
    "cuMemcpyWithAttributesAsync": "copy from=src to=dst stream=hStream",
    "cuMemcpy3DWithAttributesAsync": "copy stream=hStream",
    "cuMemcpy3DBatchAsync": "copy_batch from=opList.src.op.ptr.ptr to=opList.dst.op.ptr.ptr "
                            "from_operand=opList.src.type to_operand=opList.dst.type width=opList.extent.width "
                            "height=opList.extent.height depth=opList.extent.depth count=numOps stream=hStream",
    "cuFabricCpyBatchAsync": "copy stream=hStream",
    "cuMemcpyBatchAsync": "copy_batch from=srcs to=dsts size=sizes count=count stream=hStream",
    "cuLaunchCooperativeKernelMultiDevice": "submit_anywhere",
    "cuGraphLaunch": "graph_launch graph=hGraphExec stream=hStream",
    "cuCtxSynchronize": "sync context=ctx",
    "cuStreamSynchronize": "sync stream=hStream",
    "cuEventSynchronize": "sync event=hEvent",
    "cuStreamQuery": "query stream=hStream",
    "cuEventQuery": "query event=hEvent",
    "cuEventRecord": "record event=hEvent stream=hStream",
    "cuEventRecordWithFlags": "record event=hEvent stream=hStream",
    "cuStreamWaitEvent": "wait event=hEvent stream=hStream",
    "cuEventElapsedTime": "elapsed from_event=hStart event=hEnd milliseconds=pMilliseconds",
    "cuStreamCreate": "stream_create key=phStream flags=Flags",
    "cuStreamCreateWithPriority": "stream_create key=phStream flags=flags priority=priority",
    "cuGreenCtxStreamCreate": "stream_create key=phStream flags=flags priority=priority",
    "cuStreamDestroy": "stream_destroy stream=hStream",
    "cuEventCreate": "event_create event=phEvent",
    "cuEventDestroy": "event_destroy event=hEvent",
    "cuStreamBeginCapture": "capture_begin stream=hStream",
    "cuStreamBeginCaptureToGraph": "capture_begin graph=hGraph stream=hStream",
    "cuStreamBeginRecaptureToGraph": "capture_begin stream=hStream",
    "cuStreamEndCapture": "capture_end graph=phGraph stream=hStream",
    "cuGraphAddKernelNode": "node_kernel graph=hGraph kernel=nodeParams.kern function=nodeParams.func",
    "cuGraphAddMemcpyNode": "node_copy graph=hGraph",
    "cuGraphAddMemsetNode": "node_set graph=hGraph",
    "cuGraphAddChildGraphNode": "node_child graph=hGraph child=childGraph",
    "cuGraphAddNode": "node graph=hGraph type=nodeParams.type child=nodeParams.graph.graph "
                      "kernel=nodeParams.kernel.kern function=nodeParams.kernel.func",
    "cuGraphDestroyNode": "node_destroy",
    "cuGraphExecKernelNodeSetParams": "exec_change graph=hGraphExec",
    "cuGraphExecChildGraphNodeSetParams": "exec_change graph=hGraphExec",
    "cuGraphExecNodeSetParams": "exec_change graph=hGraphExec",
    "cuGraphKernelNodeSetParams": "node_change",
    "cuGraphNodeSetParams": "node_change",
    "cuGraphNodeSetEnabled": "exec_switch graph=hGraphExec",
    "cuGraphClone": "graph_clone key=phGraphClone graph=originalGraph",
    "cuGraphInstantiate": "graph_instantiate key=phGraphExec graph=hGraph",
    "cuGraphInstantiateWithFlags": "graph_instantiate key=phGraphExec graph=hGraph",
    "cuGraphInstantiateWithParams": "graph_instantiate key=phGraphExec graph=hGraph",
    "cuGraphExecUpdate": "graph_update key=hGraphExec graph=hGraph",
    "cuGraphDestroy": "graph_destroy graph=hGraph",
    "cuGraphExecDestroy": "exec_destroy graph=hGraphExec",
}

# Whatever else is put into a stream. Functions of several names for it.
STREAM = ("hStream", "stream")
SUBMITTED = re.compile(
    r"^cu(Launch|Launch(Kernel(Ex)?|CooperativeKernel|Grid(Async)?|HostFunc)|Memset\w+|"
    r"Mem(Discard(AndPrefetch)?|Prefetch)(Batch)?Async|StreamAddCallback|StreamBatchMemOp|"
    r"Stream(Wait|Write)Value(32|64)|(Signal|Wait)ExternalSemaphoresAsync)$")


def role_of(symbol, name, arguments):
    """The `work` of a driver's function; `arguments`: those of its prototype."""
    role = common_role(name, arguments, symbol == name)
    # stream 0 of these is one of the calling thread
    return role and role + (" per_thread" if symbol.endswith(("_ptsz", "_ptds")) else "")


def common_role(name, arguments, is_oldest):
    """The same, of all forms of a function."""
    wanted = DRIVER.get(name)
    if wanted is None and SUBMITTED.match(name):
        stream = "config.hStream" if "config" in arguments else None
        stream = stream or next((one for one in STREAM if one in arguments), None)
        return f"submit stream={stream}" if stream else "submit"
    if wanted is None:
        return None
    parts = wanted.split()
    # older forms of a function lack arguments, or fields of them, that newer ones have
    known = [part for part in parts[1:] if part.split("=")[1].split(".")[0] in arguments
             and not (part.endswith("nodeParams.kern") and is_oldest)]
    return " ".join([parts[0], *known])
