//! `gpuscope top`: who uses which device for what, and why they wait, on a live screen.
//!
//! ```text
//!  samples (serve::gather) ─► Pace ─► model: Frame ─┬─► once, json; page (by owner, for serve)
//!  a recording's snapshot rows ─► replay ───────────┤
//!                   keys ─► State ──────────────────┴─► view ─► screen
//! ```
//!
//! Owns what is shown and how. It computes nothing that the exporter's page shows otherwise: both are made of the same
//! samples. Gathering is the command's business.

mod cells;
pub(crate) mod columns;
pub(crate) mod json;
pub(crate) mod keys;
pub(crate) mod model;
pub(crate) mod once;
pub(crate) mod origins;
pub mod page;
#[cfg(feature = "record")]
pub(crate) mod replay;
pub(crate) mod screen;
pub(crate) mod state;
pub(crate) mod view;
