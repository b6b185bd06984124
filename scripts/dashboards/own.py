"""The dashboard of gpuscope itself, over a fleet: which versions and drivers, what is not seen, what it costs."""

NODE = 'instance=~"$instance"'
RATE = "[$__rate_interval]"
OF_US = "and on (job, instance) gpuscope_build_info"
SHARES = ("0.5", "0.99", "1")


def spread(expression):
    return [(f"quantile({share}, {expression})", share) for share in SHARES]


ROWS = [
    ("", [
        ("Nodes", "stat", "none", "That answer.", [(f"count(gpuscope_build_info{{{NODE}}})", "")]),
        ("Versions", "stat", "none", "That run.", [(f"count(count by (version, commit) (gpuscope_build_info{{{NODE}}}))", "")]),
        ("Not seen", "stat", "none", "Coverage gaps of all nodes.", [(f"sum(gpuscope_coverage_gaps{{{NODE}}})", "")]),
        ("Lost records", "stat", "none", "Since each was started.", [(f"sum(gpuscope_lost_records_total{{{NODE}}})", "")]),
        ("Left out", "stat", "none", "Series that had no room.", [(f"sum(gpuscope_series_dropped{{{NODE}}})", "")]),
        ("Series", "stat", "none", "Of all nodes.", [(f"sum(gpuscope_series{{{NODE}}})", "")]),
    ]),
    ("What runs where", [
        ("Versions", "table", "none", "Nodes by version and commit; dirty: built from a changed tree.",
         [(f"topk(20, count by (version, commit, dirty) (gpuscope_build_info{{{NODE}}}))", "")]),
        ("Drivers and devices", "table", "none", "GPUs by driver and name.",
         [(f"topk(20, count by (driver, name) (gpuscope_gpu_info{{{NODE}}}))", "")]),
        ("NVML", "table", "none", "Nodes where it answers (1) and does not (0).",
         [(f'count_values("answers", gpuscope_nvml_up{{{NODE}}})', "")]),
        ("Kernel's log", "table", "none", "Nodes where Xids of the kernel's log are read (1) and are not (0).",
         [(f'count_values("reads", gpuscope_xid_log_up{{{NODE}}})', "")]),
        ("Kubelet's devices", "table", "none", "Nodes by whether the kubelet tells which devices pods have (1).",
         [(f'count_values("answers", gpuscope_pod_resources_up{{{NODE}}})', "")]),
        ("Reserved, not counted", "stat", "none", "Devices that were given away and that NVML does not list, or not their processes.",
         [(f"sum(gpuscope_reserved_unknown_devices{{{NODE}}})", "")]),
    ]),
    ("What is not seen", [
        ("Coverage gaps", "table", "none", "Nodes with most; the landing page of each names them with their cures.",
         [(f"topk(20, sum by (instance, of) (gpuscope_coverage_gaps{{{NODE}}}))", "")]),
        ("Lost records", "stack", "ops", "A second, by what they were: numbers are too low.",
         [(f"sum by (reason) (rate(gpuscope_lost_records_total{{{NODE}}}{RATE}))", "{{reason}}")]),
        ("Where they were lost", "table", "none", "Since each gpuscope was started.",
         [(f"topk(20, sum by (instance, reason) (gpuscope_lost_records_total{{{NODE}}}))", "")]),
        ("Labels that nobody could read", "stack", "none", "Processes without labels that they may have had, and those that were one too many.",
         [(f"sum by (missing) (gpuscope_owners_unknown_total{{{NODE}}})", "without {{missing}}"),
          (f"sum(gpuscope_owners_merged_total{{{NODE}}})", "merged into other")]),
    ]),
    ("Black box (--keep)", [
        ("Recordings", "table", "none", "Of the last moments of programs, as they lie there: gpuscope report FILE on the node.",
         [(f"topk(100, gpuscope_kept_recording_info{{{NODE}}})", "")]),
        ("Written, and failed", "stack", "none", "Since each gpuscope was started, by cause.",
         [(f"sum by (cause, result) (gpuscope_kept_recordings_total{{{NODE}}})", "{{cause}} {{result}}")]),
        ("Memory of the last moments", "lines", "bytes", "By node.", spread(f"gpuscope_kept_memory_bytes{{{NODE}}}")),
        ("Dropped rows", "table", "ops", "A second, before their time: --keep-memory has no room for more.",
         [(f"topk(20, rate(gpuscope_kept_dropped_rows_total{{{NODE}}}{RATE}))", "")]),
    ]),
    ("Budget (--budget)", [
        ("Spent on probes", "lines", "percentunit", "Of its time, by the program of each node that spends most.", spread(f"gpuscope_budget_spent_ratio{{{NODE}}}")),
        ("Nodes where calls go unseen", "stack", "none", "By what is left out, because probes took more of a program's time than they may.",
         [(f"sum by (calls) (gpuscope_budget_shed{{{NODE}}})", "{{calls}}")]),
        ("How long calls went unseen", "table", "percentunit", "Of the time, by node.",
         [(f"topk(20, rate(gpuscope_budget_unseen_seconds_total{{{NODE}}}{RATE}))", "")]),
    ]),
    ("What it costs (lines: half of the nodes, 99 of 100, all are below)", [
        ("CPU", "lines", "percentunit", "Of one CPU.", spread(f"rate(process_cpu_seconds_total{{{NODE}}}{RATE}) {OF_US}")),
        ("Memory", "lines", "bytes", "Resident.", spread(f"process_resident_memory_bytes{{{NODE}}} {OF_US}")),
        ("Time in probes", "lines", "percentunit", "Seconds a second that all programs of a node spend in probes.",
         spread(f"rate(gpuscope_probe_seconds_total{{{NODE}}}{RATE})")),
        ("Gathering", "lines", "s", "Time that a scrape takes to be gathered.", spread(f"gpuscope_gather_duration_seconds{{{NODE}}}")),
        ("NVML", "lines", "s", "Time that the last questions took.", spread(f"gpuscope_nvml_duration_seconds{{{NODE}}}")),
        ("Dearest nodes", "table", "percentunit", "Seconds a second in probes.",
         [(f"topk(20, rate(gpuscope_probe_seconds_total{{{NODE}}}{RATE}))", "")]),
        ("Largest metrics", "table", "none", "Series by metric, of all nodes.", [(f"topk(20, sum by (metric) (gpuscope_series{{{NODE}}}))", "")]),
        ("Owners", "lines", "none", "Sets of labels by node.", spread(f"gpuscope_owners{{{NODE}}}")),
    ]),
]
CHOICES = [("instance", "Node", "label_values(gpuscope_build_info, instance)", "all")]
BOARD = {"uid": "gpuscope-self", "title": "gpuscope: itself", "from": "now-6h",
         "description": "Versions, drivers, coverage and cost of gpuscope on all nodes."}
ANNOTATED = 'alertname="GpuscopeDown"'
