//! A trace as a picture of characters: lanes by process, thread and layer, time from left to right.
//!
//! A recording is read twice, and its length costs no memory: [`survey`] finds what there is, [`bins`] counts the time of
//! each column, [`draw`] makes lines of it. Pure; reads no file and asks no terminal.

pub(crate) mod axis;
pub(crate) mod bins;
pub mod draw;
pub(crate) mod lane;
pub(crate) mod survey;

#[cfg(test)]
mod tests;

pub use bins::Bins;
pub use draw::Look;
pub use lane::Lane;
pub use survey::{Survey, Window};
