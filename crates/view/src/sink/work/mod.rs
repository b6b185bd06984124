//! What was copied, what waited for a device, and when devices were surely idle: for a summary, as text and as JSON.
//!
//! Owns words and layout. What is known, and how well, is `model::work`'s business.

mod copies;
mod gpu;
mod json;
mod streams;
mod waits;
mod words;

pub use gpu::graph_words;
pub use json::to_json;
pub use words::bandwidth;
pub use words::hidden as hidden_words;

use crate::frame::Frame;
use crate::model::work::ProcessReport;
use std::collections::HashMap;

/// Call stacks by site, innermost frame first.
pub type Stacks = HashMap<u64, Vec<Frame>>;

/// The sections of the summary, each empty where it has nothing to say.
pub fn to_text(processes: &[ProcessReport], stacks: &Stacks) -> String {
    let mut out = String::new();
    copies::section(processes, &mut out);
    waits::section(processes, stacks, &mut out);
    gpu::section(processes, &mut out);
    out
}
