//! What all machines did with their GPUs in some days, out of what Prometheus, or a store that answers as it does, keeps of
//! their exporters.
//!
//! ```text
//!  question (PromQL) ─► whoever asks ─► answer (JSON read) ─► figures (sums by user, job, program) ─► chapters ─► write
//! ```
//!
//! Pure: who asks over the network is a command. What is answered is not trusted.

pub(crate) mod answer;
mod chapters;
mod figures;
mod json;
mod nodes;
mod question;
#[cfg(test)]
mod tests;
mod who;
mod write;

pub(crate) use answer::Wrong;
pub use answer::{Answer, read};
pub(crate) use figures::Figures;
pub use figures::figures;
pub use json::json;
pub use question::{Question, Span};
pub use write::{html, markdown, text};
