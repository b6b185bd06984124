//! What NVML says of devices. The values of `gpu`, `uuid` and `pci_bus_id` are those of dcgm-exporter.

use crate::serve::metric::{Collector, Kind, Metric};

pub static GPU_INFO: Metric = Metric::new(Collector::Nvml, Kind::Info, "gpuscope_gpu_info", "A GPU of the machine")
    .by(&["gpu", "uuid", "pci_bus_id", "name", "minor", "driver"]);
pub static GPU_UP: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_up",
    "1: the GPU answers; 0: it answered before, or the PCI bus has it, and it does not answer now",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub static NVML_UP: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_nvml_up",
    "1: NVML answers; 0: there is none, or it does not",
);
pub(crate) static NVML_AGE_SECONDS: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_nvml_age_seconds",
    "Age of what NVML said last",
);
pub(crate) static NVML_DURATION_SECONDS: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_nvml_duration_seconds",
    "Time that the last round of questions to NVML took",
);
pub(crate) static NVML_ERRORS: Metric = Metric::new(
    Collector::Nvml,
    Kind::Counter,
    "gpuscope_nvml_errors_total",
    "Questions that NVML answered with an error, other than not supported",
)
.by(&["gpu"]);
pub static GPU_UTILIZATION_RATIO: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_utilization_ratio",
    "Share of the last second or less with a kernel running, as NVML samples it",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_MEMORY_UTILIZATION_RATIO: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_memory_utilization_ratio",
    "Share of the time in which device memory was read or written",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_ENCODER_UTILIZATION_RATIO: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_encoder_utilization_ratio",
    "Share of the time in which the encoder was busy",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_DECODER_UTILIZATION_RATIO: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_decoder_utilization_ratio",
    "Share of the time in which the decoder was busy",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub static GPU_MEMORY_TOTAL_BYTES: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_memory_total_bytes",
    "Device memory",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub static GPU_MEMORY_USED_BYTES: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_memory_used_bytes",
    "Device memory in use, without what is reserved",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_MEMORY_FREE_BYTES: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_memory_free_bytes",
    "Device memory not in use",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_MEMORY_RESERVED_BYTES: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_memory_reserved_bytes",
    "Device memory that the driver keeps for itself",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub static GPU_TEMPERATURE_CELSIUS: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_temperature_celsius",
    "Temperature",
)
.by(&["gpu", "uuid", "pci_bus_id", "sensor"]);
pub static GPU_POWER_WATTS: Metric =
    Metric::new(Collector::Nvml, Kind::Gauge, "gpuscope_gpu_power_watts", "Power drawn").by(&[
        "gpu",
        "uuid",
        "pci_bus_id",
    ]);
pub static GPU_POWER_LIMIT_WATTS: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_power_limit_watts",
    "Power that may be drawn",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_ENERGY_JOULES: Metric = Metric::new(
    Collector::Nvml,
    Kind::Counter,
    "gpuscope_gpu_energy_joules_total",
    "Energy drawn since the driver was loaded, asked in every other round",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_CLOCK_HERTZ: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_clock_hertz",
    "Clock frequency now",
)
.by(&["gpu", "uuid", "pci_bus_id", "clock"]);
pub(crate) static GPU_CLOCK_LIMIT_HERTZ: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_clock_limit_hertz",
    "Highest clock frequency",
)
.by(&["gpu", "uuid", "pci_bus_id", "clock"]);
pub static GPU_CLOCKS_LIMITED: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_clocks_limited",
    "1 while this is why clocks are not higher",
)
.by(&["gpu", "uuid", "pci_bus_id", "reason"]);
pub(crate) static GPU_FAN_SPEED_RATIO: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_fan_speed_ratio",
    "Fan speed as a share of the highest",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_PERFORMANCE_STATE: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_performance_state",
    "Performance state: 0 is the fastest",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_ECC_ERRORS: Metric = Metric::new(
    Collector::Nvml,
    Kind::Counter,
    "gpuscope_gpu_ecc_errors_total",
    "ECC errors since the GPU was made, or since the counter was reset",
)
.by(&["gpu", "uuid", "pci_bus_id", "type"]);
pub(crate) static GPU_REMAPPED_ROWS: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_remapped_rows",
    "Rows of memory that were replaced",
)
.by(&["gpu", "uuid", "pci_bus_id", "cause"]);
pub(crate) static GPU_ROW_REMAP_PENDING: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_row_remap_pending",
    "1: rows are replaced at the next reset",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_ROW_REMAP_FAILED: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_row_remap_failed",
    "1: a row could not be replaced",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_PCIE_BYTES_PER_SECOND: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_pcie_bytes_per_second",
    "PCIe throughput: between two rounds of questions where the GPU has GPM, else over 20 ms",
)
.by(&["gpu", "uuid", "pci_bus_id", "direction"]);
pub(crate) static GPU_PCIE_REPLAYS: Metric = Metric::new(
    Collector::Nvml,
    Kind::Counter,
    "gpuscope_gpu_pcie_replays_total",
    "PCIe packets that were sent again, since the driver was loaded",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_PCIE_GENERATION: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_pcie_generation",
    "PCIe generation of the link now",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_PCIE_LANES: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_pcie_lanes",
    "PCIe lanes of the link now",
)
.by(&["gpu", "uuid", "pci_bus_id"]);
pub(crate) static GPU_NVLINK_BYTES: Metric = Metric::new(
    Collector::Nvml,
    Kind::Counter,
    "gpuscope_gpu_nvlink_bytes_total",
    "Payload over all NVLinks since the driver was loaded, asked in every other round",
)
.by(&["gpu", "uuid", "pci_bus_id", "direction"]);
pub(crate) static GPU_NVLINK_ERRORS: Metric = Metric::new(
    Collector::Nvml,
    Kind::Counter,
    "gpuscope_gpu_nvlink_errors_total",
    "Errors of NVLink since the driver was loaded, asked every minute: replay, recovery, crc",
)
.by(&["gpu", "uuid", "pci_bus_id", "link", "kind"]);
pub(crate) static GPU_SM_ACTIVITY_RATIO: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_sm_activity_ratio",
    "Share of the SMs that worked (GPM)",
)
.by(&["gpu", "uuid", "pci_bus_id", "gpu_instance"]);
pub(crate) static GPU_SM_OCCUPANCY_RATIO: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_sm_occupancy_ratio",
    "Share of the warps that SMs could hold (GPM)",
)
.by(&["gpu", "uuid", "pci_bus_id", "gpu_instance"]);
pub(crate) static GPU_PIPE_ACTIVITY_RATIO: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_pipe_activity_ratio",
    "Share of the time in which a pipe worked: tensor, fp64, fp32, fp16, integer (GPM)",
)
.by(&["gpu", "uuid", "pci_bus_id", "gpu_instance", "pipe"]);
pub(crate) static GPU_DRAM_ACTIVITY_RATIO: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_dram_activity_ratio",
    "Share of the bandwidth of device memory that was used (GPM)",
)
.by(&["gpu", "uuid", "pci_bus_id", "gpu_instance"]);
pub(crate) static GPU_PROCESS_MEMORY_BYTES: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_process_memory_bytes",
    "Device memory that NVML lists for processes, also for those that are not traced",
)
.by(&["gpu", "uuid", "pci_bus_id", "mig_uuid"])
.by_owner();
pub(crate) static GPU_PROCESS_SM_UTILIZATION_RATIO: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_process_sm_utilization_ratio",
    "Share of the time with a kernel of the processes running, as NVML samples it; one that does nothing has none",
)
.by(&["gpu", "uuid", "pci_bus_id"])
.by_owner();
pub(crate) static GPU_PROCESS_ENGINE_UTILIZATION_RATIO: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_process_engine_utilization_ratio",
    "Share of the time in which the processes used the memory, encoder or decoder of the GPU, as NVML samples it",
)
.by(&["gpu", "uuid", "pci_bus_id", "engine"])
.by_owner();
pub(crate) static GPU_MIG_INFO: Metric =
    Metric::new(Collector::Nvml, Kind::Info, "gpuscope_gpu_mig_info", "A MIG device").by(&[
        "gpu",
        "uuid",
        "pci_bus_id",
        "mig_uuid",
        "gpu_instance",
        "compute_instance",
        "profile",
    ]);
pub(crate) static GPU_MIG_MEMORY_TOTAL_BYTES: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_mig_memory_total_bytes",
    "Memory of a MIG device",
)
.by(&[
    "gpu",
    "uuid",
    "pci_bus_id",
    "mig_uuid",
    "gpu_instance",
    "compute_instance",
]);
pub(crate) static GPU_MIG_MEMORY_USED_BYTES: Metric = Metric::new(
    Collector::Nvml,
    Kind::Gauge,
    "gpuscope_gpu_mig_memory_used_bytes",
    "Memory of a MIG device in use",
)
.by(&[
    "gpu",
    "uuid",
    "pci_bus_id",
    "mig_uuid",
    "gpu_instance",
    "compute_instance",
]);
pub static GPU_XID_ERRORS: Metric = Metric::new(
    Collector::Xid,
    Kind::Counter,
    "gpuscope_gpu_xid_errors_total",
    "Xid events since gpuscope came, by code; of several at one moment all have the code of the last",
)
.by(&["gpu", "uuid", "pci_bus_id", "xid"]);
pub(crate) static GPU_XID_LAST_TIMESTAMP_SECONDS: Metric = Metric::new(
    Collector::Xid,
    Kind::Gauge,
    "gpuscope_gpu_xid_last_timestamp_seconds",
    "When the last of these events came, seconds since 1970",
)
.by(&["gpu", "uuid", "pci_bus_id", "xid"]);

/// In the order in which they are shown.
pub static ALL: &[&Metric] = &[
    &GPU_INFO,
    &GPU_UP,
    &NVML_UP,
    &NVML_AGE_SECONDS,
    &NVML_DURATION_SECONDS,
    &NVML_ERRORS,
    &GPU_UTILIZATION_RATIO,
    &GPU_MEMORY_UTILIZATION_RATIO,
    &GPU_ENCODER_UTILIZATION_RATIO,
    &GPU_DECODER_UTILIZATION_RATIO,
    &GPU_MEMORY_TOTAL_BYTES,
    &GPU_MEMORY_USED_BYTES,
    &GPU_MEMORY_FREE_BYTES,
    &GPU_MEMORY_RESERVED_BYTES,
    &GPU_TEMPERATURE_CELSIUS,
    &GPU_POWER_WATTS,
    &GPU_POWER_LIMIT_WATTS,
    &GPU_ENERGY_JOULES,
    &GPU_CLOCK_HERTZ,
    &GPU_CLOCK_LIMIT_HERTZ,
    &GPU_CLOCKS_LIMITED,
    &GPU_FAN_SPEED_RATIO,
    &GPU_PERFORMANCE_STATE,
    &GPU_ECC_ERRORS,
    &GPU_REMAPPED_ROWS,
    &GPU_ROW_REMAP_PENDING,
    &GPU_ROW_REMAP_FAILED,
    &GPU_PCIE_BYTES_PER_SECOND,
    &GPU_PCIE_REPLAYS,
    &GPU_PCIE_GENERATION,
    &GPU_PCIE_LANES,
    &GPU_NVLINK_BYTES,
    &GPU_NVLINK_ERRORS,
    &GPU_SM_ACTIVITY_RATIO,
    &GPU_SM_OCCUPANCY_RATIO,
    &GPU_PIPE_ACTIVITY_RATIO,
    &GPU_DRAM_ACTIVITY_RATIO,
    &GPU_PROCESS_MEMORY_BYTES,
    &GPU_PROCESS_SM_UTILIZATION_RATIO,
    &GPU_PROCESS_ENGINE_UTILIZATION_RATIO,
    &GPU_MIG_INFO,
    &GPU_MIG_MEMORY_TOTAL_BYTES,
    &GPU_MIG_MEMORY_USED_BYTES,
    &GPU_XID_ERRORS,
    &GPU_XID_LAST_TIMESTAMP_SECONDS,
];
