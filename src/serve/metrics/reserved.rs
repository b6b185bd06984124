//! What schedulers have given away, whether or not anything runs there.

use crate::serve::metric::{Collector, Kind, Metric};

pub(crate) static RESERVED: Metric = Metric::new(
    Collector::Reserved,
    Kind::Gauge,
    "gpuscope_reserved",
    "1: a scheduler has given this GPU or MIG device, or a slice of it, to the owner: the kubelet to a container, Slurm to a job",
)
.by(&["gpu", "uuid", "pci_bus_id"])
.by_owner();
pub(crate) static RESERVED_GPU_SECONDS: Metric = Metric::new(
    Collector::Reserved,
    Kind::Counter,
    "gpuscope_reserved_gpu_seconds_total",
    "Time in which it was given away: a slice of a shared GPU, and a MIG device, count as a GPU; at least that, as what came and went between two looks is not seen",
)
.by(&["gpu", "uuid", "pci_bus_id"])
.by_owner();
pub(crate) static RESERVED_BOUND_GPU_SECONDS: Metric = Metric::new(
    Collector::Reserved,
    Kind::Counter,
    "gpuscope_reserved_bound_gpu_seconds_total",
    "Of this time, that in which a process of who has it was on it, by NVML, or may have been; the rest is waste_gpu_seconds_total with the reason reserved-unused",
)
.by(&["gpu", "uuid", "pci_bus_id"])
.by_owner();
pub(crate) static POD_RESOURCES_UP: Metric = Metric::new(
    Collector::Reserved,
    Kind::Gauge,
    "gpuscope_pod_resources_up",
    "1: the kubelet tells which devices pods have; 0: it has not lately, and nothing is known of them; missing: there is none",
);
pub(crate) static RESERVED_UNKNOWN_DEVICES: Metric = Metric::new(
    Collector::Reserved,
    Kind::Gauge,
    "gpuscope_reserved_unknown_devices",
    "Devices that were given away and are not counted: NVML does not list them, or not their processes",
);

/// In the order in which they are shown.
pub(crate) static ALL: &[&Metric] = &[
    &RESERVED,
    &RESERVED_GPU_SECONDS,
    &RESERVED_BOUND_GPU_SECONDS,
    &POD_RESOURCES_UP,
    &RESERVED_UNKNOWN_DEVICES,
];
