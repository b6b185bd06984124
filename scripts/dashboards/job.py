"""The dashboard of a job, or of programs that are chosen: what to change in them. Lines are of the ten largest, by node and program.

Labels that nobody asked for (user, batch_job, program, rank) are empty, and then choose nothing."""

OWNER = 'batch_job=~"$batch_job",user=~"$user",namespace=~"$namespace",pod=~"$pod",comm=~"$comm"'
BY = "instance, pod, comm, rank"
WHOM = "{{comm}} {{rank}} {{pod}} {{instance}}"
RATE = "[$__rate_interval]"
RANGE = "[$__range]"


def largest(by, expression):
    return f"topk(10, sum by ({by}) ({expression}))"


ROWS = [
    ("", [
        ("Wasted", "stat", "h", "GPU-hours in which GPUs surely had nothing to do for the job, at least.",
         [(f"sum(increase(gpuscope_waste_gpu_seconds_total{{{OWNER}}}{RANGE})) / 3600", "")]),
        ("GPUs", "stat", "none", "That hold memory of the job.",
         [(f"count(sum by (instance, gpu) (gpuscope_memory_driver_bytes{{{OWNER}}}))", "")]),
        ("Memory", "stat", "bytes", "As the driver counts for the job.", [(f"sum(gpuscope_memory_driver_bytes{{{OWNER}}})", "")]),
        ("Launches", "stat", "ops", "Kernels a second.", [(f"sum(rate(gpuscope_launches_total{{{OWNER}}}{RATE}))", "")]),
        ("Copied", "stat", "Bps", "Bytes a second.", [(f"sum(rate(gpuscope_copy_bytes_total{{{OWNER}}}{RATE}))", "")]),
        ("Errors", "stat", "none", "Calls that failed over the time shown, without those that answered not ready.",
         [(f'sum(increase(gpuscope_api_errors_total{{{OWNER},error!~"cudaErrorNotReady|CUDA_ERROR_NOT_READY"}}{RANGE}))', "")]),
    ]),
    ("Why GPUs wait", [
        ("GPUs that wait, by reason", "stack", "none",
         "host-bound: the host gave nothing more: gpuscope record -p PID, then report, says at which line; memory: keep buffers "
         "instead of allocating; forgotten: nobody uses it any more.",
         [(f"sum by (reason) (rate(gpuscope_waste_gpu_seconds_total{{{OWNER}}}{RATE}))", "{{reason}}")]),
        ("By process", "lines", "none", "Ranks that wait most wait for the slowest, or are the slowest: compare with the next.",
         [(largest(BY, f"rate(gpuscope_waste_gpu_seconds_total{{{OWNER}}}{RATE})"), WHOM)]),
        ("Busy at most", "lines", "none", "GPUs that may have worked.",
         [(largest(BY, f"rate(gpuscope_gpu_busy_at_most_seconds_total{{{OWNER}}}{RATE})"), WHOM)]),
        ("Blocked", "lines", "percentunit", "Seconds a second that threads wait for the GPU, by function: few is host-bound.",
         [(largest("function", f"rate(gpuscope_sync_blocked_seconds_total{{{OWNER}}}{RATE})"), "{{function}}")]),
        ("Hidden waits", "lines", "percentunit", "Seconds a second in calls that wait without being called so: .item(), pageable copies, cudaFree.",
         [(largest("kind", f"rate(gpuscope_hidden_wait_seconds_total{{{OWNER}}}{RATE})"), "{{kind}}")]),
        ("Waits by line", "lines", "percentunit", "Seconds a second that threads wait at a line of the program: gpuscope serve --collect +sites.",
         [(largest("wait, site", f'rate(gpuscope_wait_site_seconds_total{{{OWNER}}}{RATE})'), "{{site}} {{wait}}")]),
        ("Longest call now", "lines", "s", "How long calls last that have not returned: one that grows and grows hangs.",
         [(f"topk(10, max by (function, {BY}) (gpuscope_open_call_seconds{{{OWNER}}}))", f"{{{{function}}}} {WHOM}")]),
        ("Time in calls", "lines", "percentunit", "Seconds a second in CUDA calls, by class.",
         [(largest("layer, class", f"rate(gpuscope_api_seconds_total{{{OWNER}}}{RATE})"), "{{layer}} {{class}}")]),
    ]),
    ("Memory and copies", [
        ("Held", "lines", "bytes", "Allocated and not given back.", [(largest(BY, f"gpuscope_memory_held_bytes{{{OWNER}}}"), WHOM)]),
        ("Beyond allocations", "lines", "bytes", "What the driver counts and no allocation explains.",
         [(largest(BY, f"gpuscope_memory_unattributed_bytes{{{OWNER}}}"), WHOM)]),
        ("Copied by kind of host memory", "lines", "Bps", "pageable is staged, slower, and not beside kernels: pin it.",
         [(largest("direction, host_memory", f"rate(gpuscope_copy_bytes_total{{{OWNER}}}{RATE})"), "{{direction}} {{host_memory}}")]),
    ]),
    ("What it does", [
        ("Busiest kernels", "lines", "ops", "Launches a second.",
         [(largest("kernel", f"rate(gpuscope_kernel_launches_total{{{OWNER}}}{RATE})"), "{{kernel}}")]),
        ("Launches", "lines", "ops", "By process.", [(largest(BY, f"rate(gpuscope_launches_total{{{OWNER}}}{RATE})"), WHOM)]),
        ("Errors", "table", "none", "Over the time shown.",
         [(f"topk(20, sum by (function, error, {BY}) (increase(gpuscope_api_errors_total{{{OWNER}}}{RANGE})))", "")]),
    ]),
]
_OWNERS = "gpuscope_memory_held_bytes"
CHOICES = [(label, title, f"label_values({_OWNERS}, {label})", "all") for label, title in (
    ("batch_job", "Job"), ("user", "User"), ("namespace", "Namespace"), ("pod", "Pod"), ("comm", "Program"))]
BOARD = {"uid": "gpuscope-job", "title": "gpuscope: job", "from": "now-6h",
         "description": "Why the GPUs of a job wait, and what to change."}
ANNOTATED = 'comm=~"$comm"'
