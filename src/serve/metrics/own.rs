//! gpuscope itself.

use crate::serve::metric::{Collector, Kind, Metric};

pub(crate) static BUILD_INFO: Metric = Metric::new(Collector::Own, Kind::Info, "gpuscope_build_info", "This gpuscope")
    .by(&["version", "commit", "dirty", "rustc", "features", "target"]);
pub(crate) static PROBE_HITS: Metric = Metric::new(
    Collector::Own,
    Kind::Counter,
    "gpuscope_probe_hits_total",
    "Calls that were stopped at a probe: at entry and return, or at entry only",
)
.by(&["seen"]);
pub static PROBE_SECONDS: Metric = Metric::new(
    Collector::Own,
    Kind::Counter,
    "gpuscope_probe_seconds_total",
    "Time that programs have spent in probes: hits times the cost of one, measured on this machine",
);
pub(crate) static BUDGET_SPENT: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "gpuscope_budget_spent_ratio",
    "What probes take of the time of the program that spends most on them, as measured between the last two looks; threads that call at the same time add up (--budget)",
);
pub(crate) static BUDGET_SHED: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "gpuscope_budget_shed",
    "1: these calls are left unseen now, because probes took more of a program's time than --budget; their series are missing meanwhile: work is launches, copies, events and waits",
)
.by(&["calls"]);
pub(crate) static BUDGET_UNSEEN_SECONDS: Metric = Metric::new(
    Collector::Own,
    Kind::Counter,
    "gpuscope_budget_unseen_seconds_total",
    "Time for which these calls were left unseen (--budget)",
)
.by(&["calls"]);
pub static LOST_RECORDS: Metric = Metric::new(
    Collector::Own,
    Kind::Counter,
    "gpuscope_lost_records_total",
    "Records that were lost, by what they were",
)
.by(&["reason"]);
pub static TRACED_PROCESSES: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "gpuscope_traced_processes",
    "Living processes that made a CUDA call",
);
pub(crate) static ATTACHED_FILES: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "gpuscope_attached_files",
    "Libraries and programs with probes",
);
pub(crate) static ATTACHED_FUNCTIONS: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "gpuscope_attached_functions",
    "Functions with probes",
);
pub static COVERAGE_GAPS: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "gpuscope_coverage_gaps",
    "What is not seen, of the machine or of single files that some process maps; the landing page says what and why",
)
.by(&["of"]);
pub(crate) static OWNERS: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "gpuscope_owners",
    "Sets of labels that processes are counted for",
);
pub(crate) static OWNERS_RETIRED: Metric = Metric::new(
    Collector::Own,
    Kind::Counter,
    "gpuscope_owners_retired_total",
    "Sets of labels whose series ended, long after their last process",
);
pub static OWNERS_MERGED: Metric = Metric::new(
    Collector::Own,
    Kind::Counter,
    "gpuscope_owners_merged_total",
    "Processes counted for the owner other, because there were too many owners",
);
pub(crate) static OWNERS_UNKNOWN: Metric = Metric::new(
    Collector::Own,
    Kind::Counter,
    "gpuscope_owners_unknown_total",
    "Processes counted for an owner that lacks labels, because they had ended before they were looked at: their place (container, pod, unit, job), or what only the program tells (exe, cmdline, env)",
)
.by(&["missing"]);
pub(crate) static KERNELS_EVICTED: Metric = Metric::new(
    Collector::Own,
    Kind::Counter,
    "gpuscope_kernels_evicted_total",
    "Kernels that were shown by name and made room for busier ones: their series have ended",
);
pub(crate) static SERIES: Metric =
    Metric::new(Collector::Own, Kind::Gauge, "gpuscope_series", "Series of a metric").by(&["metric"]);
pub static SERIES_DROPPED: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "gpuscope_series_dropped",
    "Series of a metric that were left out, because there were too many",
)
.by(&["metric"]);
pub(crate) static GATHER_DURATION_SECONDS: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "gpuscope_gather_duration_seconds",
    "Time that gathering this scrape took",
);
pub(crate) static GATHERED_TIMESTAMP_SECONDS: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "gpuscope_gathered_timestamp_seconds",
    "When gathering of what is shown began, seconds since 1970",
);
pub(crate) static HTTP_REQUESTS: Metric = Metric::new(
    Collector::Own,
    Kind::Counter,
    "gpuscope_http_requests_total",
    "Requests that the web server has answered",
)
.by(&["code"]);
pub(crate) static OTLP_EXPORTS: Metric = Metric::new(
    Collector::Own,
    Kind::Counter,
    "gpuscope_otlp_exports_total",
    "Pushes by OTLP: taken, partly (points were thrown away), refused, or failed after all attempts",
)
.by(&["result"]);
pub(crate) static KEPT_MEMORY_BYTES: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "gpuscope_kept_memory_bytes",
    "Memory that the last moments of programs take (--keep)",
);
pub(crate) static KEPT_DROPPED_ROWS: Metric = Metric::new(
    Collector::Own,
    Kind::Counter,
    "gpuscope_kept_dropped_rows_total",
    "Rows of the last moments that were dropped before their time, because there was no memory for more (--keep-memory)",
);
pub(crate) static KEPT_RECORDINGS: Metric = Metric::new(
    Collector::Own,
    Kind::Counter,
    "gpuscope_kept_recordings_total",
    "Recordings of the last moments, by what had them written, and whether they were: failed ones found no room, or another fault of the disk",
)
.by(&["cause", "result"]);
pub(crate) static KEPT_RECORDING_INFO: Metric = Metric::new(
    Collector::Own,
    Kind::Info,
    "gpuscope_kept_recording_info",
    "A recording of the last moments that lies there, for gpuscope report; at most 100, and whom it is about where this gpuscope has written it",
)
.by(&["file", "cause", "process"])
.by_owner();
pub static PROCESS_CPU_SECONDS: Metric = Metric::new(
    Collector::Own,
    Kind::Counter,
    "process_cpu_seconds_total",
    "CPU time of gpuscope",
);
pub static PROCESS_RESIDENT_MEMORY_BYTES: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "process_resident_memory_bytes",
    "Resident memory of gpuscope",
);
pub(crate) static PROCESS_OPEN_FDS: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "process_open_fds",
    "File descriptors of gpuscope",
);
pub(crate) static PROCESS_START_TIME_SECONDS: Metric = Metric::new(
    Collector::Own,
    Kind::Gauge,
    "process_start_time_seconds",
    "When gpuscope was started, seconds since 1970",
);

/// In the order in which they are shown.
pub(crate) static ALL: &[&Metric] = &[
    &BUILD_INFO,
    &PROBE_HITS,
    &PROBE_SECONDS,
    &BUDGET_SPENT,
    &BUDGET_SHED,
    &BUDGET_UNSEEN_SECONDS,
    &LOST_RECORDS,
    &TRACED_PROCESSES,
    &ATTACHED_FILES,
    &ATTACHED_FUNCTIONS,
    &COVERAGE_GAPS,
    &OWNERS,
    &OWNERS_RETIRED,
    &OWNERS_MERGED,
    &OWNERS_UNKNOWN,
    &KERNELS_EVICTED,
    &SERIES,
    &SERIES_DROPPED,
    &GATHER_DURATION_SECONDS,
    &GATHERED_TIMESTAMP_SECONDS,
    &HTTP_REQUESTS,
    &OTLP_EXPORTS,
    &KEPT_MEMORY_BYTES,
    &KEPT_DROPPED_ROWS,
    &KEPT_RECORDINGS,
    &KEPT_RECORDING_INFO,
    &PROCESS_CPU_SECONDS,
    &PROCESS_RESIDENT_MEMORY_BYTES,
    &PROCESS_OPEN_FDS,
    &PROCESS_START_TIME_SECONDS,
];
