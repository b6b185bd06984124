//! What GPUs are given to do: launches, copies, waits.

use crate::serve::metric::{Collector, Kind, Metric};

pub static KERNEL_LAUNCHES: Metric = Metric::new(Collector::Launches, Kind::Counter, "gpuscope_kernel_launches_total", "Launches of kernels that succeeded, also those that were recorded into a graph, by kernel: the busiest by name, counted since they are among these, the others together as other").by(&["kernel"]).by_owner();
pub static LAUNCHES: Metric = Metric::new(
    Collector::Launches,
    Kind::Counter,
    "gpuscope_launches_total",
    "Launches of kernels that succeeded",
)
.by_owner();
pub(crate) static LAUNCH_FAILURES: Metric = Metric::new(
    Collector::Launches,
    Kind::Counter,
    "gpuscope_launch_failures_total",
    "Launches of kernels that failed",
)
.by_owner();
pub(crate) static LAUNCH_CALL_SECONDS: Metric = Metric::new(
    Collector::Launches,
    Kind::Counter,
    "gpuscope_launch_call_seconds_total",
    "Time in the calls that launch kernels",
)
.by_owner();
pub(crate) static GRAPH_LAUNCHES: Metric = Metric::new(
    Collector::Sync,
    Kind::Counter,
    "gpuscope_graph_launches_total",
    "Launches of graphs",
)
.by_owner();
pub(crate) static GRAPH_KERNELS: Metric = Metric::new(
    Collector::Sync,
    Kind::Counter,
    "gpuscope_graph_kernels_total",
    "Kernels that graphs ran whose making was seen",
)
.by_owner();
pub(crate) static COPIES: Metric = Metric::new(
    Collector::Copies,
    Kind::Counter,
    "gpuscope_copies_total",
    "Copies; host_memory says pinned, pageable, managed or unknown, and is missing where no end lies in host memory",
)
.by(&["direction", "host_memory"])
.by_owner();
pub static COPY_BYTES: Metric = Metric::new(
    Collector::Copies,
    Kind::Counter,
    "gpuscope_copy_bytes_total",
    "Bytes copied",
)
.by(&["direction", "host_memory"])
.by_owner();
pub(crate) static COPY_CALL_SECONDS: Metric = Metric::new(
    Collector::Copies,
    Kind::Counter,
    "gpuscope_copy_call_seconds_total",
    "Time in the calls that copy",
)
.by(&["direction", "host_memory"])
.by_owner();
pub(crate) static COPY_TIMED_BYTES: Metric = Metric::new(
    Collector::Copies,
    Kind::Counter,
    "gpuscope_copy_timed_bytes_total",
    "Bytes of copies whose time is known; divided by copy_timed_seconds_total the bandwidth, or at least that",
)
.by(&["direction", "host_memory", "certainty"])
.by_owner();
pub(crate) static COPY_TIMED_SECONDS: Metric = Metric::new(
    Collector::Copies,
    Kind::Counter,
    "gpuscope_copy_timed_seconds_total",
    "Time of these copies; measured, or bound: at most that",
)
.by(&["direction", "host_memory", "certainty"])
.by_owner();
pub(crate) static SYNC_WAITS: Metric = Metric::new(
    Collector::Sync,
    Kind::Counter,
    "gpuscope_sync_waits_total",
    "Calls that wait for the GPU",
)
.by(&["function"])
.by_owner();
pub(crate) static OPEN_CALL_SECONDS: Metric = Metric::new(
    Collector::Sync,
    Kind::Gauge,
    "gpuscope_open_call_seconds",
    "How long the call lasts by now that has not returned for longest, of those that serve times (waits, copies, allocations), by function; missing where none lasts a second or longer. It grows while a job hangs",
)
.by(&["function"])
.by_owner();
pub static SYNC_BLOCKED_SECONDS: Metric = Metric::new(
    Collector::Sync,
    Kind::Counter,
    "gpuscope_sync_blocked_seconds_total",
    "Time that threads were blocked in these calls",
)
.by(&["function"])
.by_owner();
pub(crate) static HIDDEN_WAITS: Metric = Metric::new(
    Collector::Sync,
    Kind::Counter,
    "gpuscope_hidden_waits_total",
    "Calls that wait for the GPU without being called so",
)
.by(&["kind"])
.by_owner();
pub static HIDDEN_WAIT_SECONDS: Metric = Metric::new(
    Collector::Sync,
    Kind::Counter,
    "gpuscope_hidden_wait_seconds_total",
    "Time in these calls",
)
.by(&["kind"])
.by_owner();
pub(crate) static WAIT_SITE_SECONDS: Metric = Metric::new(
    Collector::Sites,
    Kind::Counter,
    "gpuscope_wait_site_seconds_total",
    "Time that threads waited in calls from one line of a program, in waits of 20 µs or longer whose call stack was read: the ten lines with the most; wait is the function, or the kind of hidden wait, of which item has the time of its function once more",
)
.by(&["wait", "site"])
.by_owner();
pub(crate) static GPU_IDLE_AT_LEAST_SECONDS: Metric = Metric::new(
    Collector::Sync,
    Kind::Counter,
    "gpuscope_gpu_idle_at_least_seconds_total",
    "Time in which the GPU surely had nothing to do for a process, while it used it",
)
.by_owner();
pub(crate) static GPU_BUSY_AT_MOST_SECONDS: Metric = Metric::new(
    Collector::Sync,
    Kind::Counter,
    "gpuscope_gpu_busy_at_most_seconds_total",
    "Time in which the GPU may have worked for a process",
)
.by_owner();
pub(crate) static GPU_IDLE_INFERRED_PROCESSES: Metric = Metric::new(
    Collector::Sync,
    Kind::Gauge,
    "gpuscope_gpu_idle_inferred_processes",
    "Processes whose idle time is no bound, because something was not seen",
)
.by_owner();
pub(crate) static WASTE_GPU_SECONDS: Metric = Metric::new(
    Collector::Sync,
    Kind::Counter,
    "gpuscope_waste_gpu_seconds_total",
    "Time in which a GPU surely had nothing to do for a process that used it, by reason: at least that (certainty bound), or inferred of processes watched late; of each GPU, these reasons add up to gpu_idle_at_least_seconds_total, a moment later; beside them reserved-unused: a scheduler had given it away, and no process of who has it was on it; a GPU that several processes use may have worked for another; without gpu: which it was is not known",
)
.by(&["reason", "certainty", "gpu", "uuid", "pci_bus_id"])
.by_owner()
.also_of(Collector::Reserved);

/// In the order in which they are shown.
pub(crate) static ALL: &[&Metric] = &[
    &KERNEL_LAUNCHES,
    &LAUNCHES,
    &LAUNCH_FAILURES,
    &LAUNCH_CALL_SECONDS,
    &GRAPH_LAUNCHES,
    &GRAPH_KERNELS,
    &COPIES,
    &COPY_BYTES,
    &COPY_CALL_SECONDS,
    &COPY_TIMED_BYTES,
    &COPY_TIMED_SECONDS,
    &SYNC_WAITS,
    &OPEN_CALL_SECONDS,
    &SYNC_BLOCKED_SECONDS,
    &HIDDEN_WAITS,
    &HIDDEN_WAIT_SECONDS,
    &WAIT_SITE_SECONDS,
    &GPU_IDLE_AT_LEAST_SECONDS,
    &GPU_BUSY_AT_MOST_SECONDS,
    &GPU_IDLE_INFERRED_PROCESSES,
    &WASTE_GPU_SECONDS,
];
