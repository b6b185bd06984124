//! From samples to the text that Prometheus reads, in its two forms. Total: every list of samples gives a valid text.
//!
//! ```text
//!  Vec<Sample> ─► serve::series ─► text
//! ```
//!
//! Owns what is valid in a text. Knows neither HTTP nor how many series there may be.

mod kept;
#[cfg(test)]
mod kept_tests;
#[cfg(test)]
mod tests;
mod text;

pub use kept::Kept;

use super::metric::Sample;
use super::series;

/// A form of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format of Prometheus, version 0.0.4.
    Plain,
}

impl Format {
    /// For `Content-Type`.
    #[must_use]
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// `samples` as text; the module `series` says what becomes of invalid and doubled ones. The ends of lines, quotes and
/// backslashes in values are escaped.
#[must_use]
pub fn render(samples: &[Sample], format: Format) -> String {
    text::write(&series::families(samples), format)
}
