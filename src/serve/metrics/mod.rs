//! All metrics. A row here adds a metric to every format, to docs/metrics.md and to `--collect`.

pub mod api;
pub mod device;
pub(crate) mod driver;
pub mod memory;
pub mod own;
pub(crate) mod reserved;
pub mod work;
pub(crate) mod xid;

use super::metric::Metric;

/// Every metric, in the order in which they are shown.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    [
        api::ALL,
        memory::ALL,
        work::ALL,
        driver::ALL,
        device::ALL,
        reserved::ALL,
        xid::ALL,
        own::ALL,
    ]
    .into_iter()
    .flatten()
    .copied()
}
