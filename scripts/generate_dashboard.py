#!/usr/bin/env python3
"""Writes deploy/grafana/gpuscope.json: generate_dashboard.py > deploy/grafana/gpuscope.json

A row is a title and its panels; a panel is title, kind, unit, what it says, and its queries with their legends.
OWNER narrows a query to the programs, DEVICE to the GPUs that are chosen at the top of the dashboard.
"""
import json
import sys

OWNER = 'instance=~"$instance",namespace=~"$namespace",pod=~"$pod",comm=~"$comm"'
DEVICE = 'instance=~"$instance",gpu=~"$gpu"'
NODE = 'instance=~"$instance"'
ON_DEVICE = 'family=~"device|managed|async|physical|array|mipmapped|graph"'
BY_OWNER = "instance, namespace, pod, comm"
WHOM = "{{comm}} {{pod}} {{instance}}"
GPU = "GPU {{gpu}} {{instance}}"
RATE = "[$__rate_interval]"

ROWS = [
    ("", [
        ("GPUs", "stat", "none", "Devices that NVML lists on the chosen nodes.",
         [(f"count(gpuscope_gpu_info{{{DEVICE}}})", "")]),
        ("Programs", "stat", "none", "Living processes that made a CUDA call.",
         [(f"sum(gpuscope_traced_processes{{{NODE}}})", "")]),
        ("GPU memory in use", "stat", "percentunit", "Share of all device memory that is in use, by NVML.",
         [(f"sum(gpuscope_gpu_memory_used_bytes{{{DEVICE}}}) / sum(gpuscope_gpu_memory_total_bytes{{{DEVICE}}})", "")]),
        ("Power", "stat", "watt", "Power drawn by the chosen GPUs together.",
         [(f"sum(gpuscope_gpu_power_watts{{{DEVICE}}})", "")]),
        ("CUDA calls", "stat", "ops", "Calls of both layers together; a call of the runtime contains one of the driver.",
         [(f"sum(rate(gpuscope_api_calls_total{{{OWNER}}}{RATE}))", "")]),
        ("Failed calls", "stat", "ops", "Calls that returned an error, without those that answered not ready.",
         [(f'sum(rate(gpuscope_api_errors_total{{{OWNER},error!~"cudaErrorNotReady|CUDA_ERROR_NOT_READY"}}{RATE}))', "")]),
        ("Lost records", "stat", "none", "Records lost since gpuscope was started: with any, numbers are too low.",
         [(f"sum(gpuscope_lost_records_total{{{NODE}}})", "")]),
        ("Not seen", "stat", "none", "Coverage gaps; the landing page of each gpuscope names them with their cures.",
         [(f"sum(gpuscope_coverage_gaps{{{NODE}}})", "")]),
    ]),
    ("Devices", [
        ("Utilisation", "lines", "percentunit",
         "Share of the time with a kernel running, as NVML samples it: one small kernel is enough for 100 %.",
         [(f"gpuscope_gpu_utilization_ratio{{{DEVICE}}}", GPU)]),
        ("SM activity and occupancy", "lines", "percentunit",
         "Share of the SMs that worked, and of the warps that they could hold. Hopper and later (GPM).",
         [(f"gpuscope_gpu_sm_activity_ratio{{{DEVICE}}}", f"active {GPU} {{{{gpu_instance}}}}"),
          (f"gpuscope_gpu_sm_occupancy_ratio{{{DEVICE}}}", f"occupied {GPU} {{{{gpu_instance}}}}")]),
        ("Pipes and device memory", "lines", "percentunit",
         "Share of the time in which a pipe (tensor, fp64, …) worked, and of the memory's bandwidth that was used. GPM.",
         [(f"gpuscope_gpu_pipe_activity_ratio{{{DEVICE}}}", f"{{{{pipe}}}} {GPU}"),
          (f"gpuscope_gpu_dram_activity_ratio{{{DEVICE}}}", f"memory {GPU}")]),
        ("Memory", "lines", "bytes", "Device memory in use and in all, by NVML.",
         [(f"gpuscope_gpu_memory_used_bytes{{{DEVICE}}}", f"used {GPU}"),
          (f"gpuscope_gpu_memory_total_bytes{{{DEVICE}}}", f"all {GPU}")]),
        ("Power", "lines", "watt", "Power drawn, and the limit that clocks are held down for.",
         [(f"gpuscope_gpu_power_watts{{{DEVICE}}}", f"drawn {GPU}"),
          (f"gpuscope_gpu_power_limit_watts{{{DEVICE}}}", f"limit {GPU}")]),
        ("Temperature", "lines", "celsius", "By sensor.",
         [(f"gpuscope_gpu_temperature_celsius{{{DEVICE}}}", f"{{{{sensor}}}} {GPU}")]),
        ("Clocks", "lines", "hertz", "Frequencies now.",
         [(f"gpuscope_gpu_clock_hertz{{{DEVICE}}}", f"{{{{clock}}}} {GPU}")]),
        ("Clocks held down", "lines", "bool", "1 while clocks are held down for the reason. Idle is a reason as well.",
         [(f"max by (instance, gpu, reason) (gpuscope_gpu_clocks_limited{{{DEVICE}}})", f"{{{{reason}}}} {GPU}")]),
        ("PCIe", "lines", "Bps", "Throughput over 20 ms, as NVML samples it.",
         [(f"gpuscope_gpu_pcie_bytes_per_second{{{DEVICE}}}", f"{{{{direction}}}} {GPU}")]),
        ("NVLink", "lines", "Bps", "Throughput of all links of a GPU.",
         [(f"irate(gpuscope_gpu_nvlink_bytes_total{{{DEVICE}}}[2m])", f"{{{{direction}}}} {GPU}")]),
        ("Answers", "lines", "bool", "1: the GPU answers; 0: it was seen since gpuscope came and does not answer now.",
         [(f"gpuscope_gpu_up{{{DEVICE}}}", GPU)]),
        ("Xid", "lines", "none", "Events that the driver reported since gpuscope came, by code: docs/alerts.md says which are severe.",
         [(f"sum by (instance, gpu, xid) (gpuscope_gpu_xid_errors_total{{{DEVICE}}})", f"Xid {{{{xid}}}} {GPU}")]),
        ("Xid in the kernel's log", "lines", "none",
         "Reports since the boot, by code and by the program that the driver names: more than NVML tells of, each once.",
         [(f"sum by ({BY_OWNER}, gpu, pci_bus_id, xid) (gpuscope_gpu_xid_reports_total{{{DEVICE}}})",
           f"Xid {{{{xid}}}} {WHOM} {{{{pci_bus_id}}}}")]),
        ("ECC and replaced rows", "lines", "none",
         "ECC errors of the card's whole life, rows of memory that were replaced, and those that wait for a reset.",
         [(f"gpuscope_gpu_ecc_errors_total{{{DEVICE}}}", f"ECC {{{{type}}}} {GPU}"),
          (f"gpuscope_gpu_remapped_rows{{{DEVICE}}}", f"rows {{{{cause}}}} {GPU}"),
          (f"gpuscope_gpu_row_remap_pending{{{DEVICE}}}", f"pending {GPU}"),
          (f"gpuscope_gpu_row_remap_failed{{{DEVICE}}}", f"failed {GPU}")]),
        ("Utilisation by program", "lines", "percentunit",
         "Share of the time with a kernel of the program running, as NVML samples it, also of programs that are not traced.",
         [(f"topk(10, sum by ({BY_OWNER}, gpu) (gpuscope_gpu_process_sm_utilization_ratio{{{OWNER},gpu=~\"$gpu\"}}))",
           f"{WHOM} GPU {{{{gpu}}}}")]),
        ("Encoder and decoder", "lines", "percentunit", "Share of the time in which they were busy.",
         [(f"gpuscope_gpu_encoder_utilization_ratio{{{DEVICE}}}", f"encoder {GPU}"),
          (f"gpuscope_gpu_decoder_utilization_ratio{{{DEVICE}}}", f"decoder {GPU}")]),
        ("MIG devices", "lines", "bytes", "Memory of MIG devices, in use and in all.",
         [(f"gpuscope_gpu_mig_memory_used_bytes{{{DEVICE}}}", f"used {{{{mig_uuid}}}} {GPU}"),
          (f"gpuscope_gpu_mig_memory_total_bytes{{{DEVICE}}}", f"all {{{{mig_uuid}}}} {GPU}")]),
    ]),
    ("Memory truth", [
        ("What the driver's number is made of", "stack", "bytes",
         "Allocations of traced programs, and what no allocation explains (contexts, code, workspaces, what was there "
         "before gpuscope came). Together they are what the driver counts for these programs.",
         [(f"sum(gpuscope_memory_held_bytes{{{OWNER},gpu=~\"$gpu\",{ON_DEVICE}}})", "allocations"),
          (f"sum(gpuscope_memory_unattributed_bytes{{{OWNER},gpu=~\"$gpu\"}})", "unattributed"),
          (f"sum(gpuscope_memory_earlier_bytes{{{OWNER},gpu=~\"$gpu\"}})", "before gpuscope"),
          (f"sum(gpuscope_memory_driver_bytes{{{OWNER},gpu=~\"$gpu\"}})", "the driver's number")]),
        ("Held by program", "stack", "bytes", "Device memory that was allocated and not given back.",
         [(f"topk(10, sum by ({BY_OWNER}) (gpuscope_memory_held_bytes{{{OWNER},gpu=~\"$gpu\",{ON_DEVICE}}}))", WHOM)]),
        ("Held by kind", "stack", "bytes", "Memory on devices and in host memory by the family of the allocating call.",
         [(f'sum by (family) (gpuscope_memory_held_bytes{{{OWNER},gpu=~"$gpu",'
           'family=~"device|managed|async|physical|array|mipmapped|graph|pinned|registered"})', "{{family}}")]),
        ("Age of what is held", "stack", "bytes",
         "Each allocation is in one bucket: less than 1m, 10m, 1h, 1d, or older. What grows in the last two is a leak or a cache.",
         [(f"sum by (age) (gpuscope_memory_age_bytes{{{OWNER}}})", "{{age}}")]),
        ("Unattributed by program", "lines", "bytes", "What the driver counts for a program beyond its allocations.",
         [(f"topk(10, sum by ({BY_OWNER}) (gpuscope_memory_unattributed_bytes{{{OWNER},gpu=~\"$gpu\"}}))", WHOM)]),
        ("Allocated and freed", "lines", "Bps", "Bytes per second; what is freed with a context is not in the second.",
         [(f"sum(rate(gpuscope_memory_allocated_bytes_total{{{OWNER}}}{RATE}))", "allocated"),
          (f"sum(rate(gpuscope_memory_freed_bytes_total{{{OWNER}}}{RATE}))", "freed")]),
        ("Failed allocations", "lines", "ops", "Allocations that returned an error.",
         [(f"topk(10, sum by ({BY_OWNER}, family) (rate(gpuscope_memory_failed_allocations_total{{{OWNER}}}{RATE})))",
           f"{WHOM} {{{{family}}}}")]),
        ("Not given back at the end", "lines", "bytes", "Bytes that processes still held when they ended, added up.",
         [(f"topk(10, sum by ({BY_OWNER}) (gpuscope_memory_unreturned_bytes_total{{{OWNER}}}))", WHOM)]),
        ("All programs, by NVML", "stack", "bytes", "Device memory that NVML lists for processes, also for those that are not traced.",
         [(f"topk(10, sum by ({BY_OWNER}) (gpuscope_gpu_process_memory_bytes{{{OWNER},gpu=~\"$gpu\"}}))", WHOM)]),
        ("Most held at a time", "lines", "bytes", "The most that one living process has held.",
         [(f"topk(10, max by ({BY_OWNER}, gpu) (gpuscope_memory_peak_bytes{{{OWNER},gpu=~\"$gpu\"}}))", f"{WHOM} GPU {{{{gpu}}}}")]),
    ]),
    ("Kernels", [
        ("Busiest kernels", "lines", "ops",
         "Launches per second by name: the busiest by name since they are among these, the others together as other.",
         [(f"topk(10, sum by (kernel) (rate(gpuscope_kernel_launches_total{{{OWNER}}}{RATE})))", "{{kernel}}")]),
        ("Launches by program", "lines", "ops", "Launches of single kernels that succeeded.",
         [(f"topk(10, sum by ({BY_OWNER}) (rate(gpuscope_launches_total{{{OWNER}}}{RATE})))", WHOM)]),
        ("Failed launches", "lines", "ops", "Launches that returned an error.",
         [(f"topk(10, sum by ({BY_OWNER}) (rate(gpuscope_launch_failures_total{{{OWNER}}}{RATE})))", WHOM)]),
        ("Time of a launch call", "lines", "s",
         "Mean time that the host spends in the call: some µs; more when the queue of a stream is full.",
         [(f"sum by ({BY_OWNER}) (rate(gpuscope_launch_call_seconds_total{{{OWNER}}}{RATE})) / "
           f"(sum by ({BY_OWNER}) (rate(gpuscope_launches_total{{{OWNER}}}{RATE})) > 0)", WHOM)]),
        ("Graphs", "lines", "ops", "Launches of graphs, and kernels that ran in those whose making was seen.",
         [(f"sum(rate(gpuscope_graph_launches_total{{{OWNER}}}{RATE}))", "graphs"),
          (f"sum(rate(gpuscope_graph_kernels_total{{{OWNER}}}{RATE}))", "kernels in graphs")]),
    ]),
    ("Copies", [
        ("Copied", "stack", "Bps", "Bytes per second by direction and kind of host memory.",
         [(f"sum by (direction, host_memory) (rate(gpuscope_copy_bytes_total{{{OWNER}}}{RATE}))", "{{direction}} {{host_memory}}")]),
        ("Bandwidth", "lines", "Bps",
         "Bytes divided by time, of copies whose time is known: measured, or at least that (bound).",
         [(f"sum by (direction, host_memory, certainty) (rate(gpuscope_copy_timed_bytes_total{{{OWNER}}}{RATE})) / "
           f"(sum by (direction, host_memory, certainty) (rate(gpuscope_copy_timed_seconds_total{{{OWNER}}}{RATE})) > 0)",
           "{{direction}} {{host_memory}} {{certainty}}")]),
        ("Pageable share", "lines", "percentunit",
         "Share of the bytes between host and device that lie in pageable memory: staged, slower, not beside kernels.",
         [(f"sum by ({BY_OWNER}) (rate(gpuscope_copy_bytes_total{{{OWNER},host_memory=\"pageable\"}}{RATE})) / "
           f"(sum by ({BY_OWNER}) (rate(gpuscope_copy_bytes_total{{{OWNER},host_memory!=\"\"}}{RATE})) > 0)", WHOM)]),
        ("Copies", "lines", "ops", "Copies per second; many small ones are mostly overhead.",
         [(f"sum by (direction, host_memory) (rate(gpuscope_copies_total{{{OWNER}}}{RATE}))", "{{direction}} {{host_memory}}")]),
        ("Time in copy calls", "lines", "percentunit", "Seconds per second that threads spend in calls that copy.",
         [(f"topk(10, sum by ({BY_OWNER}) (rate(gpuscope_copy_call_seconds_total{{{OWNER}}}{RATE})))", WHOM)]),
    ]),
    ("Waits", [
        ("Blocked", "lines", "percentunit", "Seconds per second that threads are blocked in calls that wait for the GPU.",
         [(f"topk(10, sum by ({BY_OWNER}, function) (rate(gpuscope_sync_blocked_seconds_total{{{OWNER}}}{RATE})))",
           f"{{{{function}}}} {WHOM}")]),
        ("Waits", "lines", "ops", "Calls per second that wait for the GPU.",
         [(f"topk(10, sum by (function) (rate(gpuscope_sync_waits_total{{{OWNER}}}{RATE})))", "{{function}}")]),
        ("Hidden waits", "lines", "percentunit", "Seconds per second in calls that wait without being called so, by kind.",
         [(f"sum by (kind) (rate(gpuscope_hidden_wait_seconds_total{{{OWNER}}}{RATE}))", "{{kind}}")]),
        ("How often hidden", "lines", "ops", "Such calls per second.",
         [(f"sum by (kind) (rate(gpuscope_hidden_waits_total{{{OWNER}}}{RATE}))", "{{kind}}")]),
        ("Idle at least", "lines", "percentunit", "Share of the time in which the GPU surely had nothing to do for the program.",
         [(f"sum by ({BY_OWNER}) (rate(gpuscope_gpu_idle_at_least_seconds_total{{{OWNER}}}{RATE})) / "
           f"(sum by ({BY_OWNER}) (rate(gpuscope_gpu_idle_at_least_seconds_total{{{OWNER}}}{RATE})) + "
           f"sum by ({BY_OWNER}) (rate(gpuscope_gpu_busy_at_most_seconds_total{{{OWNER}}}{RATE})) > 0)", WHOM)]),
        ("Idle by reason", "stack", "none",
         "GPUs that surely had nothing to do, on average: host-bound, memory, forgotten (beyond ten minutes at a time), unknown.",
         [(f"sum by (reason) (rate(gpuscope_waste_gpu_seconds_total{{{OWNER}}}{RATE}))", "{{reason}}")]),
        ("Idle time that is no bound", "lines", "none",
         "Processes of which something was not seen: their idle time is inferred, not proved.",
         [(f"sum by ({BY_OWNER}) (gpuscope_gpu_idle_inferred_processes{{{OWNER}}})", WHOM)]),
        ("Busy at most", "lines", "percentunit", "Seconds per second in which the GPU may have worked for the program.",
         [(f"sum by ({BY_OWNER}) (rate(gpuscope_gpu_busy_at_most_seconds_total{{{OWNER}}}{RATE}))", WHOM)]),
    ]),
    ("Calls and errors", [
        ("Errors by name", "stack", "ops", "Calls that returned an error, by its name. Not ready is the answer of a query.",
         [(f"sum by (error) (rate(gpuscope_api_errors_total{{{OWNER}}}{RATE}))", "{{error}}")]),
        ("Errors by function", "lines", "ops", "Which functions fail, and for whom.",
         [(f"topk(10, sum by (function, error, {BY_OWNER}) (rate(gpuscope_api_errors_total{{{OWNER}}}{RATE})))",
           f"{{{{function}}}} {{{{error}}}} {WHOM}")]),
        ("Errors so far", "table", "none", "Since gpuscope was started, or since the owner is known.",
         [(f"topk(50, sum by (function, error, {BY_OWNER}) (gpuscope_api_errors_total{{{OWNER}}}))", "")]),
        ("Failed share", "lines", "percentunit", "Of all calls of the layer.",
         [(f'sum by (layer, {BY_OWNER}) (rate(gpuscope_api_errors_total{{{OWNER},error!~"cudaErrorNotReady|CUDA_ERROR_NOT_READY"}}{RATE})) / '
           f"(sum by (layer, {BY_OWNER}) (rate(gpuscope_api_calls_total{{{OWNER}}}{RATE})) > 0)", f"{{{{layer}}}} {WHOM}")]),
        ("Calls by class", "lines", "ops", "Calls that ended, by layer and class of function.",
         [(f"sum by (layer, class) (rate(gpuscope_api_calls_total{{{OWNER}}}{RATE}))", "{{layer}} {{class}}")]),
        ("Duration, 99 of 100", "lines", "s", "Time from entry to return that 99 of 100 calls stay below, by class; buckets make it coarse.",
         [("histogram_quantile(0.99, sum by (le, layer, class) "
           f"(rate(gpuscope_api_duration_seconds_bucket{{{OWNER}}}{RATE})))", "{{layer}} {{class}}")]),
    ]),
    ("Kernel driver (collector driver)", [
        ("Busiest calls", "lines", "ops", "Ioctls per second on devices of NVIDIA's kernel driver, by name with class or method.",
         [(f"topk(10, sum by (call) (rate(gpuscope_driver_calls_total{{{OWNER}}}{RATE})))", "{{call}}")]),
        ("Time in the kernel driver", "lines", "percentunit", "Seconds per second that threads spend in ioctls.",
         [(f"topk(10, sum by ({BY_OWNER}) (rate(gpuscope_driver_call_seconds_total{{{OWNER}}}{RATE})))", WHOM)]),
        ("Share of the time of CUDA calls", "lines", "percentunit",
         "What of the time of calls, by class, was spent in the kernel driver.",
         [(f"sum by (layer, class) (rate(gpuscope_api_driver_seconds_total{{{OWNER}}}{RATE})) / "
           f"(sum by (layer, class) (rate(gpuscope_api_duration_seconds_sum{{{OWNER}}}{RATE})) > 0)", "{{layer}} {{class}}")]),
        ("Refused", "lines", "ops",
         "Ioctls per second that were refused or answered with an error. Libraries try out what a device can do: some are usual.",
         [(f"topk(10, sum by (call, error, {BY_OWNER}) (rate(gpuscope_driver_errors_total{{{OWNER}}}{RATE})))",
           f"{{{{call}}}} {{{{error}}}} {WHOM}")]),
        ("Refused so far", "table", "none", "Since gpuscope was started, or since the owner is known.",
         [(f"topk(50, sum by (call, error, {BY_OWNER}) (gpuscope_driver_errors_total{{{OWNER}}}))", "")]),
    ]),
    ("Loss and cost of gpuscope", [
        ("Lost records", "lines", "ops", "Records per second that were lost, by what they were. Anything but 0 makes numbers too low.",
         [(f"sum by (instance, reason) (rate(gpuscope_lost_records_total{{{NODE}}}{RATE}))", "{{reason}} {{instance}}")]),
        ("Time in probes", "lines", "percentunit",
         "Seconds per second that all programs of a machine spend in probes: hits times the cost of one, measured there.",
         [(f"rate(gpuscope_probe_seconds_total{{{NODE}}}{RATE})", "{{instance}}")]),
        ("Probe hits", "lines", "ops", "Calls that were stopped at a probe: at entry and return, or at entry only.",
         [(f"rate(gpuscope_probe_hits_total{{{NODE}}}{RATE})", "{{seen}} {{instance}}")]),
        ("CPU", "lines", "percentunit", "Of one CPU.",
         [(f"rate(process_cpu_seconds_total{{{NODE}}}{RATE}) and on (job, instance) gpuscope_build_info", "{{instance}}")]),
        ("Memory and files", "lines", "bytes", "Resident memory of gpuscope.",
         [(f"process_resident_memory_bytes{{{NODE}}} and on (job, instance) gpuscope_build_info", "{{instance}}")]),
        ("Open files", "lines", "none", "File descriptors of gpuscope, and files that have probes.",
         [(f"process_open_fds{{{NODE}}} and on (job, instance) gpuscope_build_info", "open {{instance}}"),
          (f"gpuscope_attached_files{{{NODE}}}", "with probes {{instance}}")]),
        ("Gathering", "lines", "s", "Time that gathering a scrape takes, and age of what it shows.",
         [(f"gpuscope_gather_duration_seconds{{{NODE}}}", "takes {{instance}}"),
          (f"timestamp(gpuscope_gathered_timestamp_seconds{{{NODE}}}) - gpuscope_gathered_timestamp_seconds{{{NODE}}}", "age {{instance}}")]),
        ("NVML", "lines", "s", "Time that the last questions to NVML took, and age of its answers.",
         [(f"gpuscope_nvml_duration_seconds{{{NODE}}}", "takes {{instance}}"),
          (f"gpuscope_nvml_age_seconds{{{NODE}}}", "age {{instance}}")]),
        ("Series", "lines", "none", "Series by metric, the largest ten, and those that were left out.",
         [(f"topk(10, sum by (metric) (gpuscope_series{{{NODE}}}))", "{{metric}}"),
          (f"sum(gpuscope_series_dropped{{{NODE}}})", "left out, of all metrics")]),
        ("Not seen", "lines", "none", "Coverage gaps; the landing page names them.",
         [(f"gpuscope_coverage_gaps{{{NODE}}}", "{{of}} {{instance}}")]),
        ("Owners", "lines", "none",
         "Sets of labels that processes are counted for; ended long ago; merged into other, because there were too many; "
         "processes without labels that nobody could read any more; and kernels that made room for busier ones.",
         [(f"gpuscope_owners{{{NODE}}}", "owners {{instance}}"),
          (f"gpuscope_owners_retired_total{{{NODE}}}", "ended {{instance}}"),
          (f"gpuscope_owners_merged_total{{{NODE}}}", "merged {{instance}}"),
          (f"sum by (instance, missing) (gpuscope_owners_unknown_total{{{NODE}}})", "without {{missing}} {{instance}}"),
          (f"gpuscope_kernels_evicted_total{{{NODE}}}", "kernels {{instance}}")]),
        ("Web server", "lines", "reqps", "Answers per second by status code.",
         [(f"sum by (instance, code) (rate(gpuscope_http_requests_total{{{NODE}}}{RATE}))", "{{code}} {{instance}}")]),
    ]),
]

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
FULL_WIDTH = 24
KINDS = {"lines": "timeseries", "stack": "timeseries", "stat": "stat", "table": "table"}


def options(kind):
    if kind == "stat":
        return {"colorMode": "none", "graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    if kind == "table":
        return {"showHeader": True, "sortBy": [{"displayName": "Value", "desc": True}]}
    return {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"}}


def defaults(kind, unit):
    field = {"unit": unit}
    if unit == "percentunit":
        field["min"] = 0
    if kind in ("lines", "stack"):
        field["custom"] = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 25 if kind == "stack" else 0, "showPoints": "never",
                           "stacking": {"mode": "normal" if kind == "stack" else "none", "group": "A"}}
    return field


def overrides(queries):
    """A sum that the others add up to is a line above the stack, no part of it."""
    unstacked = [legend for _, legend in queries if legend == "the driver's number"]
    return [{"matcher": {"id": "byName", "options": legend},
             "properties": [{"id": "custom.stacking", "value": {"mode": "none", "group": "B"}},
                            {"id": "custom.fillOpacity", "value": 0}, {"id": "custom.lineWidth", "value": 2}]}
            for legend in unstacked]


def targets(kind, queries):
    for letter, (expression, legend) in zip("ABCDEFGH", queries):
        target = {"refId": letter, "datasource": DATASOURCE, "expr": expression, "legendFormat": legend or "__auto"}
        if kind == "table":
            target |= {"instant": True, "format": "table"}
        yield target


def panel(number, place, description):
    title, kind, unit, says, queries = description
    return {"id": number, "type": KINDS[kind], "title": title, "description": says, "datasource": DATASOURCE, "gridPos": place,
            "fieldConfig": {"defaults": defaults(kind, unit), "overrides": overrides(queries)},
            "options": options(kind), "targets": list(targets(kind, queries))}


def panels():
    number, top = 1, 0
    for title, row in ROWS:
        if title:
            yield {"id": number, "type": "row", "title": title, "collapsed": False, "panels": [],
                   "gridPos": {"x": 0, "y": top, "w": FULL_WIDTH, "h": 1}}
            number, top = number + 1, top + 1
        width, height = (8, 8) if title else (3, 4)
        for index, description in enumerate(row):
            beside = FULL_WIDTH // width
            place = {"x": index % beside * width, "y": top + index // beside * height, "w": width, "h": height}
            yield panel(number, place, description)
            number += 1
        top += -(-len(row) // (FULL_WIDTH // width)) * height


def choice(name, label, query):
    return {"name": name, "label": label, "type": "query", "datasource": DATASOURCE, "query": {"query": query, "refId": name},
            "definition": query, "refresh": 2, "includeAll": True, "multi": True, "allValue": ".*", "sort": 3,
            "current": {"text": ["All"], "value": ["$__all"]}}


def choices():
    owners = '{__name__=~"gpuscope_(api_calls_total|memory_held_bytes|gpu_process_memory_bytes)",instance=~"$instance"%s}'
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}},
        choice("instance", "Node", "label_values(gpuscope_build_info, instance)"),
        choice("gpu", "GPU", 'label_values(gpuscope_gpu_info{instance=~"$instance"}, gpu)'),
        choice("namespace", "Namespace", f"label_values({owners % ''}, namespace)"),
        choice("pod", "Pod", "label_values(%s, pod)" % (owners % ',namespace=~"$namespace"')),
        choice("comm", "Program", "label_values(%s, comm)" % (owners % ',namespace=~"$namespace",pod=~"$pod"')),
    ]


def dashboard():
    return {"uid": "gpuscope", "title": "gpuscope", "tags": ["gpu", "cuda"], "schemaVersion": 39, "version": 1, "editable": True,
            "description": "What CUDA programs do and what devices say, by gpuscope serve.", "timezone": "browser",
            "time": {"from": "now-1h", "to": "now"}, "refresh": "30s", "graphTooltip": 1,
            "links": [{"title": "Alerts", "type": "link", "url": "https://github.com/gpuscope/gpuscope/blob/main/docs/alerts.md"}],
            "annotations": {"list": [
                {"name": "Alerts", "datasource": DATASOURCE, "enable": True, "iconColor": "red",
                 "expr": 'ALERTS{alertname=~"Gpuscope.*",alertstate="firing",instance=~"$instance"}',
                 "titleFormat": "{{alertname}}", "textFormat": "{{instance}} {{gpu}} {{comm}}"}]},
            "templating": {"list": choices()}, "panels": list(panels())}


json.dump(dashboard(), sys.stdout, indent=1, ensure_ascii=False)
print()
