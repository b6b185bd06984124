//! Recordings: what happened, one row for each call, readable without gpuscope.
//!
//! A row is a [`crate::record::Record`]: [`reader`] of a file that [`recorder`]
//! wrote, [`lines`] of JSON lines; [`recording`] is either of the two, out of [`Files`] that are open. docs/trace-format.md describes the file.

pub mod blackbox;
mod check;
pub mod columns;
mod files;
mod frame;
mod held;
mod line;
pub mod lines;
mod named;
pub(crate) mod reader;
pub mod recorder;
pub(crate) mod recording;
pub mod schema;
mod share;
pub mod store;
pub mod trigger;
mod watched;

pub use files::Files;
pub use reader::{End, Latest, Reader};
pub use recorder::Recorder;
pub use recording::Recording;
pub use schema::Covers;

#[cfg(test)]
mod bad_input_tests;
#[cfg(test)]
mod tests;
