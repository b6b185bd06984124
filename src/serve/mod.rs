//! `gpuscope serve`: what is known of the whole machine, as metrics.
//!
//! ```text
//!  tracer ─► model::fleet (sums by owner) ─┐
//!  device::telemetry (NVML, its own thread) ├─► gather ─► Scrape ─► exchange ─┬─► limit ─► exposition ─► http  (pull)
//!  gpuscope itself ─────────────────────────┘                                 ├─► otlp                        (push)
//!                                                                             └─► display                     (screen)
//! ```
//!
//! [`metrics`] is the table of all metrics: docs/metrics.md is made of it. [`keep`] has the last calls of programs written as recordings. The tracer lives in the main thread and
//! gathers when it is asked; the web server has a thread of its own, and whoever asks while one gathers gets the same.

pub(crate) mod carry;
pub mod config;
pub mod display;
pub mod exchange;
pub mod exposition;
#[cfg(test)]
mod fixture;
pub mod fleet;
pub mod gather;
mod heartbeat;
pub mod http;
pub(crate) mod job;
pub(crate) mod keep;
pub(crate) mod limit;
pub mod metric;
pub mod metrics;
#[cfg(all(test, feature = "otlp"))]
mod metrics_doc;
#[cfg(feature = "otlp")]
pub(crate) mod otlp;
mod series;

pub use exchange::{Exchange, Scrape, Status};
pub use heartbeat::Doing;
pub(crate) use heartbeat::Stuck;
