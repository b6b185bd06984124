//! Calls to NVIDIA's kernel driver.

use crate::serve::metric::{Collector, Kind, Metric};

pub(crate) static DRIVER_CALLS: Metric = Metric::new(
    Collector::Driver,
    Kind::Counter,
    "gpuscope_driver_calls_total",
    "Ioctls on devices of the kernel driver that have returned, by name with class or method; beyond 512 of these for one owner, by name alone",
)
.by(&["call"])
.by_owner();
pub(crate) static DRIVER_CALL_SECONDS: Metric = Metric::new(
    Collector::Driver,
    Kind::Counter,
    "gpuscope_driver_call_seconds_total",
    "Time from entry to return of these ioctls",
)
.by(&["call"])
.by_owner();
pub(crate) static DRIVER_ERRORS: Metric = Metric::new(
    Collector::Driver,
    Kind::Counter,
    "gpuscope_driver_errors_total",
    "Ioctls that were refused (errno) or answered with an error (NV_STATUS), by its name; the name of the call is without class and method; libraries try out what a device can do, so that some are usual",
)
.by(&["call", "error"])
.by_owner();
pub(crate) static API_DRIVER_SECONDS: Metric = Metric::new(
    Collector::Driver,
    Kind::Counter,
    "gpuscope_api_driver_seconds_total",
    "What of the time in gpuscope_api_seconds_total was spent in ioctls on devices of the kernel driver",
)
.by(&["layer", "class"])
.by_owner();

/// In the order in which they are shown.
pub(crate) static ALL: &[&Metric] = &[&DRIVER_CALLS, &DRIVER_CALL_SECONDS, &DRIVER_ERRORS, &API_DRIVER_SECONDS];
