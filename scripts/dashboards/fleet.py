"""The dashboard of a fleet: who wastes most and why, over the time that is shown. Tables of the first twenty, lines of sums:
what it draws does not grow with the fleet.

Labels that nobody asked for (user, batch_job, program) are empty."""

NODE = 'instance=~"$instance"'
WASTE = f"gpuscope_waste_gpu_seconds_total{{{NODE}}}"
RATE = "[$__rate_interval]"
WHO = "user, batch_job, namespace, pod, program, comm"
NEEDS = "user, batch_job and program are labels that serve is asked for (--labels)."


def hours(by):
    return f"sum by ({by}) (increase({WASTE}[$__range])) / 3600"


ROWS = [
    ("", [
        ("Nodes", "stat", "none", "That run gpuscope and answer.", [(f"count(gpuscope_build_info{{{NODE}}})", "")]),
        ("GPUs", "stat", "none", "That NVML lists.", [(f"count(gpuscope_gpu_info{{{NODE}}})", "")]),
        ("Programs", "stat", "none", "Living processes that made a CUDA call.", [(f"sum(gpuscope_traced_processes{{{NODE}}})", "")]),
        ("Wasted", "stat", "h", "GPU-hours in which GPUs surely had nothing to do for a program that used them: at least that.",
         [(f"sum(increase({WASTE}[$__range])) / 3600", "")]),
        ("Of the time in use", "stat", "percentunit", "These, as a share of the time from programs' first work to their last.",
         [(f"sum(increase(gpuscope_gpu_idle_at_least_seconds_total{{{NODE}}}[$__range])) / "
           f"(sum(increase(gpuscope_gpu_idle_at_least_seconds_total{{{NODE}}}[$__range])) + "
           f"sum(increase(gpuscope_gpu_busy_at_most_seconds_total{{{NODE}}}[$__range])) > 0)", "")]),
        ("GPU memory in use", "stat", "percentunit", "By NVML.",
         [(f"sum(gpuscope_gpu_memory_used_bytes{{{NODE}}}) / sum(gpuscope_gpu_memory_total_bytes{{{NODE}}})", "")]),
        ("Power", "stat", "watt", "Of all GPUs.", [(f"sum(gpuscope_gpu_power_watts{{{NODE}}})", "")]),
        ("Lost records", "stat", "none", "Since each gpuscope was started: with any, numbers are too low.",
         [(f"sum(gpuscope_lost_records_total{{{NODE}}})", "")]),
    ]),
    ("Who wastes most, and why", [
        ("Programs", "table", "h", f"GPU-hours without work, at least, the first twenty. {NEEDS}", [(f"topk(20, {hours(WHO)})", "")]),
        ("Programs and reasons", "table", "h",
         "host-bound: the program was done with the GPU and gave it nothing more; memory: while it took memory or gave it back; "
         "forgotten: beyond ten minutes at a time; unknown: records were lost; reserved-unused: given away, and nobody was on it.", [(f"topk(20, {hours(WHO + ', reason')})", "")]),
        ("Users", "table", "h", f"GPU-hours without work, at least. {NEEDS}", [(f"topk(20, {hours('user')})", "")]),
        ("Namespaces", "table", "h", "GPU-hours without work, at least; empty: outside of Kubernetes.",
         [(f"topk(20, {hours('namespace')})", "")]),
        ("Nodes", "table", "h", "GPU-hours without work, at least.", [(f"topk(20, {hours('instance')})", "")]),
        ("GPUs that wait, by reason", "stack", "none", "On average at that time.", [(f"sum by (reason) (rate({WASTE}{RATE}))", "{{reason}}")]),
        ("GPUs that wait, by namespace", "stack", "none", "The ten largest at each moment.",
         [(f"topk(10, sum by (namespace) (rate({WASTE}{RATE})))", "{{namespace}}")]),
        ("GPUs that wait, by user", "stack", "none", f"The ten largest at each moment. {NEEDS}",
         [(f"topk(10, sum by (user) (rate({WASTE}{RATE})))", "{{user}}")]),
        ("No bound", "stack", "none", "What of it is inferred: of processes that ran before gpuscope came.",
         [(f"sum by (certainty) (rate({WASTE}{RATE}))", "{{certainty}}")]),
    ]),
    ("What schedulers gave away", [
        ("Reserved, bound", "lines", "none", "GPUs on average at that time, as the kubelet and Slurm tell: a slice of one counts as one.",
         [(f"sum(rate(gpuscope_reserved_gpu_seconds_total{{{NODE}}}{RATE}))", "reserved"),
          (f"sum(rate(gpuscope_reserved_bound_gpu_seconds_total{{{NODE}}}{RATE}))", "bound")]),
        ("Reserved and unused", "table", "h", "GPU-hours in which no process of who has it was on it, the first twenty.",
         [(f'topk(20, sum by (namespace, pod, batch_job, slurm_job) (increase(gpuscope_waste_gpu_seconds_total{{{NODE},reason="reserved-unused"}}[$__range])) / 3600 > 0)', "")]),
    ]),
    ("What else costs", [
        ("Utilisation", "lines", "percentunit", "Of all GPUs, by NVML: a tenth of them is below the lowest line, half below the middle one.",
         [(f"quantile({share}, gpuscope_gpu_utilization_ratio{{{NODE}}})", f"{share}") for share in ("0.1", "0.5", "0.9")]),
        ("Failed calls", "table", "none", "Errors over the time shown, without those that answered not ready.",
         [(f'topk(20, sum by (error, {WHO}) (increase(gpuscope_api_errors_total{{{NODE},error!~"cudaErrorNotReady|CUDA_ERROR_NOT_READY"}}[$__range])))', "")]),
        ("Waits that are not called so", "table", "s", "Seconds in calls that wait for the GPU without being called so, by kind.",
         [(f"topk(20, sum by (kind, {WHO}) (increase(gpuscope_hidden_wait_seconds_total{{{NODE}}}[$__range])))", "")]),
        ("Pageable copies", "table", "bytes", "Bytes copied from or to pageable host memory: staged, slower, not beside kernels.",
         [(f'topk(20, sum by ({WHO}) (increase(gpuscope_copy_bytes_total{{{NODE},host_memory="pageable"}}[$__range])))', "")]),
        ("Held memory", "table", "bytes", "Device memory that programs hold now.",
         [(f"topk(20, sum by ({WHO}) (gpuscope_memory_held_bytes{{{NODE}}}))", "")]),
        ("Xids", "table", "none", "Since each gpuscope was started, by code and node.",
         [(f"topk(20, sum by (xid, instance) (gpuscope_gpu_xid_errors_total{{{NODE}}}))", "")]),
    ]),
]
CHOICES = [("instance", "Node", "label_values(gpuscope_build_info, instance)", "all")]
BOARD = {"uid": "gpuscope-fleet", "title": "gpuscope: fleet", "from": "now-7d",
         "description": "Which programs waste most, why, and whose they are."}
ANNOTATED = NODE + ',severity="critical"'
