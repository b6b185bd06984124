//! Memory that programs hold.

use crate::serve::metric::{Collector, Kind, Metric};

pub static MEMORY_HELD_BYTES: Metric = Metric::new(
    Collector::Memory,
    Kind::Gauge,
    "gpuscope_memory_held_bytes",
    "Bytes that were allocated and not given back, of living processes; host memory has no gpu",
)
.by(&["family", "gpu", "uuid", "pci_bus_id"])
.by_owner();
pub(crate) static MEMORY_ALLOCATIONS: Metric = Metric::new(
    Collector::Memory,
    Kind::Gauge,
    "gpuscope_memory_allocations",
    "Allocations that were not given back, of living processes",
)
.by(&["family", "gpu", "uuid", "pci_bus_id"])
.by_owner();
pub(crate) static MEMORY_PEAK_BYTES: Metric = Metric::new(
    Collector::Memory,
    Kind::Gauge,
    "gpuscope_memory_peak_bytes",
    "Most that one living process has held at a time",
)
.by(&["gpu", "uuid", "pci_bus_id"])
.by_owner();
pub(crate) static MEMORY_ALLOCATED_BYTES: Metric = Metric::new(
    Collector::Memory,
    Kind::Counter,
    "gpuscope_memory_allocated_bytes_total",
    "Bytes that were allocated",
)
.by(&["family"])
.by_owner();
pub(crate) static MEMORY_ALLOCATED: Metric = Metric::new(
    Collector::Memory,
    Kind::Counter,
    "gpuscope_memory_allocated_total",
    "Allocations that succeeded",
)
.by(&["family"])
.by_owner();
pub(crate) static MEMORY_FREED_BYTES: Metric = Metric::new(
    Collector::Memory,
    Kind::Counter,
    "gpuscope_memory_freed_bytes_total",
    "Bytes that the program itself gave back",
)
.by(&["family"])
.by_owner();
pub(crate) static MEMORY_FREED: Metric = Metric::new(
    Collector::Memory,
    Kind::Counter,
    "gpuscope_memory_freed_total",
    "Allocations that the program itself gave back",
)
.by(&["family"])
.by_owner();
pub(crate) static MEMORY_FAILED_ALLOCATIONS: Metric = Metric::new(
    Collector::Memory,
    Kind::Counter,
    "gpuscope_memory_failed_allocations_total",
    "Allocations that failed",
)
.by(&["family"])
.by_owner();
pub(crate) static MEMORY_UNRETURNED_BYTES: Metric = Metric::new(
    Collector::Memory,
    Kind::Counter,
    "gpuscope_memory_unreturned_bytes_total",
    "Bytes that processes still held when they ended",
)
.by_owner();
pub(crate) static MEMORY_AGE_BYTES: Metric = Metric::new(
    Collector::Memory,
    Kind::Gauge,
    "gpuscope_memory_age_bytes",
    "Bytes held, by the age of their allocation: less than 1m, 10m, 1h, 1d, or older; each is in one of them",
)
.by(&["age"])
.by_owner();
pub(crate) static MEMORY_AGE_ALLOCATIONS: Metric = Metric::new(
    Collector::Memory,
    Kind::Gauge,
    "gpuscope_memory_age_allocations",
    "Allocations held, by age",
)
.by(&["age"])
.by_owner();
pub(crate) static MEMORY_DRIVER_BYTES: Metric = Metric::new(
    Collector::Memory,
    Kind::Gauge,
    "gpuscope_memory_driver_bytes",
    "Device memory that the driver counts for the processes",
)
.by(&["gpu", "uuid", "pci_bus_id"])
.by_owner();
pub static MEMORY_UNATTRIBUTED_BYTES: Metric = Metric::new(
    Collector::Memory,
    Kind::Gauge,
    "gpuscope_memory_unattributed_bytes",
    "Of these, what no allocation explains: contexts, code, workspaces; without gpuscope_memory_earlier_bytes",
)
.by(&["gpu", "uuid", "pci_bus_id"])
.by_owner();
pub static MEMORY_EARLIER_BYTES: Metric = Metric::new(
    Collector::Memory,
    Kind::Gauge,
    "gpuscope_memory_earlier_bytes",
    "Of these, what no allocation explains because it was there before gpuscope came, or was before the first call that it saw; at most that",
)
.by(&["gpu", "uuid", "pci_bus_id"])
.by_owner();

/// In the order in which they are shown.
pub(crate) static ALL: &[&Metric] = &[
    &MEMORY_HELD_BYTES,
    &MEMORY_ALLOCATIONS,
    &MEMORY_PEAK_BYTES,
    &MEMORY_ALLOCATED_BYTES,
    &MEMORY_ALLOCATED,
    &MEMORY_FREED_BYTES,
    &MEMORY_FREED,
    &MEMORY_FAILED_ALLOCATIONS,
    &MEMORY_UNRETURNED_BYTES,
    &MEMORY_AGE_BYTES,
    &MEMORY_AGE_ALLOCATIONS,
    &MEMORY_DRIVER_BYTES,
    &MEMORY_UNATTRIBUTED_BYTES,
    &MEMORY_EARLIER_BYTES,
];
