//! What people read of samples: how fast counters grow, what went wrong, who an owner is.
//!
//! Owns words for them. Where they stand is the business of [`crate::top`], and of the page of the web.

pub(crate) mod kernels;
pub(crate) mod notes;
pub(crate) mod owners;
mod pace;
pub(crate) mod reading;
pub(crate) mod units;
pub(crate) mod waited;

pub use pace::Pace;
pub(crate) use pace::Rates;

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Plain,
    Heading,
    Wrong,
}

pub(crate) type Line = (Look, String);
