//! Recordings: what happened, one row for each call, readable without gpuscope.
//!
//! A row is a [`crate::record::Record`]: [`reader`] of a file that [`recorder`]
//! wrote, [`lines`] of JSON lines; [`recording`] is either of the two. docs/trace-format.md describes the file.

mod check;
pub mod columns;
mod frame;
mod held;
mod line;
pub mod lines;
pub mod reader;
pub mod recorder;
pub mod recording;
pub mod schema;
mod share;
pub mod store;
pub mod trigger;
mod watched;

pub use reader::{End, Latest, Reader};
pub use recorder::Recorder;
pub use recording::{Recording, can_be_read_again};
pub use schema::Covers;

#[cfg(test)]
mod bad_input_tests;
#[cfg(test)]
mod tests;
