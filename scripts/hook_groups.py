"""Which functions of NVIDIA's kernel driver go together, for generate_nvidia.py: GROUP of `--kernel`, in words, and its
rows. A row is the name of a function, or (name, {key: value}) with keys of a hook file that are not to be generated.
"""

FAULT = {
    "name": "uvm_fault",
    "only": "event_id == 6",
    "process": False,
    "args": ["processor: u32 = event_data->fault.proc_id", "address_if_processor_0: ptr = event_data->fault.cpu.fault_va"],
    "entry_only": True,
}
MIGRATION = {
    "name": "uvm_migration",
    "only": "event_id == 7",
    "process": False,
    "args": ["to: u32 = event_data->migration.dst", "from: u32 = event_data->migration.src",
             "address: ptr = event_data->migration.address", "bytes: size = event_data->migration.bytes",
             "cause: u32 = event_data->migration.cause"],
    "bytes": "bytes",
    "entry_only": True,
}
REVOCATION = {"name": "uvm_revocation", "only": "event_id == 8", "process": False, "args": ["event_id: u32"],
              "entry_only": True}

GROUPS = {
    "ioctl": ("requests, where they enter the driver", [
        "nvidia_frontend_unlocked_ioctl", "nvidia_unlocked_ioctl", "rm_ioctl", "uvm_unlocked_ioctl_entry"]),
    "open": ("devices that are opened, closed, mapped, polled", [
        "nvidia_open", "nvidia_close", "nvidia_mmap", "nvidia_poll", "uvm_open_entry", "uvm_release_entry",
        "uvm_mmap_entry"]),
    "object": ("objects of the driver, also those that the kernel itself makes", [
        "rmapiAllocWithSecInfo", "rmapiControlWithSecInfo", "rmapiFreeWithSecInfo"]),
    "context": ("channels and what they belong to", [
        "kctxshareapiConstruct_IMPL", "kchangrpapiConstruct_IMPL", "kchangrpapiDestruct_IMPL",
        "kchangrpapiCtrlCmdGpFifoSchedule_IMPL", "kchannelConstruct_IMPL", "kchannelDestruct_IMPL",
        "kchannelBindToRunlist_IMPL"]),
    "memory": ("memory of devices, and of the host for them", [
        "vidmemConstruct_IMPL", "vidmemDestruct_IMPL", "sysmemConstruct_IMPL", "osdescConstruct_IMPL",
        "nv_alloc_pages", "nv_free_pages", "os_lock_user_pages", "os_unlock_user_pages", "nvidia_p2p_get_pages",
        "nv_dma_buf_export"]),
    "rpc": ("questions to the device's own processor, which most of a slow call waits for", [
        "_issueRpcAndWait", "rpcRmApiControl_GSP"]),
    "interrupt": ("interrupts, whoever is interrupted", [
        ("irq:irq_handler_entry", {"tracepoint": True, "name": "nvidia_interrupt", "args": ["irq"],
                                   "only": "name == 'nvidia'", "process": False}),
        ("nvidia_isr", {"process": False}), ("nvidia_isr_kthread_bh", {"process": False}),
        ("nvidia_isr_msix_kthread_bh", {"process": False}), ("uvm_isr_top_half_entry", {"process": False})]),
    "wait": ("threads that sleep, and completions that the driver wakes waiters for", [
        ("sched:sched_switch", {"tracepoint": True, "name": "sleep", "args": ["prev_state", "next_comm"]}),
        ("nv_post_event", {"process": False}), ("engineNonStallIntrNotify", {"process": False})]),
    "fault": ("page faults and migrations of managed memory", [
        ("uvm_perf_event_notify", FAULT), ("uvm_perf_event_notify", MIGRATION), ("uvm_perf_event_notify", REVOCATION),
        "uvm_va_block_cpu_fault", "uvm_migrate",
        ("uvm_parent_gpu_service_replayable_faults", {"process": False}),
        ("uvm_gpu_service_replayable_faults", {"process": False}),
        ("uvm_va_block_evict_chunks", {"process": False})]),
    "power": ("devices that come, go, sleep and wake", [
        ("nv_pci_probe", {"process": False}), ("nv_pci_remove", {"process": False}),
        ("nvidia_suspend", {"process": False}), ("nvidia_resume", {"process": False})]),
}
