//! The same metrics, pushed by OTLP over HTTP to any OpenTelemetry collector.
//!
//! ```text
//!  exchange ─► Scrape ─► convert (names: name) ─► send: gzip, POST, retries ─► collector
//! ```
//!
//! [`convert`] is pure; [`Pusher`] has a thread of its own, on which alone it waits for the network.

pub(crate) mod convert;
pub(crate) mod name;
mod pusher;
mod resource;
mod send;
mod teller;
#[cfg(test)]
mod tests;

pub(crate) use pusher::Pusher;
pub(crate) use resource::resource;
use std::time::{Duration, SystemTime};

/// Called with what an operator should know, one line or with hints on further ones.
pub type Notice = dyn Fn(&str) + Send + Sync;

/// Where metrics go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `http` or `https`; [`endpoint`] says what it becomes.
    pub url: String,
    pub interval: Duration,
    /// For one attempt, from the name's resolution to the answer's end.
    pub timeout: Duration,
    /// Sent with each request; their values are shown nowhere.
    pub headers: Vec<(String, String)>,
    /// Since when counters count: since the start, or that of those that they go on from.
    pub since: SystemTime,
}

/// The address that is posted to: a base URL gets `/v1/metrics`, as OpenTelemetry's exporters do it; one that ends with
/// it stays.
#[must_use]
pub(crate) fn endpoint(url: &str) -> String {
    let base = url.trim_end_matches('/');
    if base.ends_with("/v1/metrics") {
        return base.to_owned();
    }
    format!("{base}/v1/metrics")
}
