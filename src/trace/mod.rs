//! Recordings: what happened, one row for each call, readable without gpuscope.
//!
//! [`event`] is one row, wherever it comes from: [`entry`] makes it of a call that was just traced, [`reader`] of a
//! file that [`recorder`] wrote, [`lines`] of JSON lines; [`recording`] is either of the two. What rows mean is `findings`' and `report`'s business; docs/trace-format.md describes
//! the file.

#[cfg(feature = "record")]
pub(crate) mod alarm;
#[cfg(feature = "record")]
mod batch;
#[cfg(feature = "record")]
mod check;
#[cfg(feature = "record")]
pub(crate) mod columns;
pub mod entry;
pub(crate) mod event;
#[cfg(feature = "record")]
mod frame;
#[cfg(feature = "record")]
mod line;
#[cfg(feature = "record")]
pub mod lines;
#[cfg(feature = "record")]
pub(crate) mod reader;
#[cfg(feature = "record")]
pub mod recorder;
#[cfg(feature = "record")]
pub(crate) mod recording;
#[cfg(feature = "record")]
pub(crate) mod schema;
#[cfg(feature = "record")]
pub mod store;
#[cfg(feature = "record")]
mod watched;

pub use event::{Event, Kind, Meta, Taker};
#[cfg(feature = "record")]
pub use reader::{End, Reader};
#[cfg(feature = "record")]
pub use recorder::Recorder;
#[cfg(feature = "record")]
pub use recording::Recording;
#[cfg(feature = "record")]
pub use schema::Covers;

#[cfg(feature = "record")]
#[cfg(test)]
mod bad_input_tests;
#[cfg(all(test, feature = "record"))]
mod tests;
