//! What the kernel's log and the driver's tracepoint say of faults. Beside NVML's count of the same, which is in
//! [`super::device`]: the two are never added.

use crate::serve::metric::{Collector, Kind, Metric};

pub(crate) static GPU_XID_REPORTS: Metric = Metric::new(
    Collector::Xid,
    Kind::Counter,
    "gpuscope_gpu_xid_reports_total",
    "Xids that the kernel's log tells of since the boot, and the driver's tracepoint, each once; the owner is that of \
     the process that the driver names, of Xids since gpuscope came",
)
.by(&["gpu", "uuid", "pci_bus_id", "gpu_instance", "xid"])
.by_owner();
pub(crate) static GPU_XID_REPORT_TIMESTAMP_SECONDS: Metric = Metric::new(
    Collector::Xid,
    Kind::Gauge,
    "gpuscope_gpu_xid_report_timestamp_seconds",
    "When the last of these Xids came, seconds since 1970",
)
.by(&["gpu", "uuid", "pci_bus_id", "xid"]);
pub(crate) static NVSWITCH_SXID_REPORTS: Metric = Metric::new(
    Collector::Xid,
    Kind::Counter,
    "gpuscope_nvswitch_sxid_reports_total",
    "SXids of NVSwitches that the kernel's log tells of since the boot",
)
.by(&["pci_bus_id", "sxid"]);
pub(crate) static XID_LOG_UP: Metric = Metric::new(
    Collector::Xid,
    Kind::Gauge,
    "gpuscope_xid_log_up",
    "1: the kernel's log is read for Xids; 0: it may not be read, and only NVML and the tracepoint tell of them",
);

/// In the order in which they are shown.
pub(crate) static ALL: &[&Metric] = &[
    &GPU_XID_REPORTS,
    &GPU_XID_REPORT_TIMESTAMP_SECONDS,
    &NVSWITCH_SXID_REPORTS,
    &XID_LOG_UP,
];
