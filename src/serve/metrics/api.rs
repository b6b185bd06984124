//! Calls of CUDA functions.

use crate::serve::metric::{Collector, Kind, Metric};

pub static API_CALLS: Metric = Metric::new(
    Collector::Api,
    Kind::Counter,
    "gpuscope_api_calls_total",
    "Calls of CUDA functions that have ended; those of functions that only give something out are hooked with the collector getters alone",
)
.by(&["layer", "class"])
.by_owner();
pub(crate) static API_SECONDS: Metric = Metric::new(
    Collector::Api,
    Kind::Counter,
    "gpuscope_api_seconds_total",
    "Time from entry to return of calls; calls of getters that are only counted are not in it",
)
.by(&["layer", "class"])
.by_owner();
pub static API_DURATION_SECONDS: Metric = Metric::new(
    Collector::Buckets,
    Kind::Histogram,
    "gpuscope_api_duration_seconds",
    "Time from entry to return of each call; calls of getters that are only counted are not in it",
)
.by(&["layer", "class"])
.by_owner();
pub static API_ERRORS: Metric = Metric::new(
    Collector::Errors,
    Kind::Counter,
    "gpuscope_api_errors_total",
    "Calls that returned an error, by its name",
)
.by(&["layer", "function", "error"])
.by_owner();

/// In the order in which they are shown.
pub(crate) static ALL: &[&Metric] = &[&API_CALLS, &API_SECONDS, &API_DURATION_SECONDS, &API_ERRORS];
