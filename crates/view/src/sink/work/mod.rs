//! What was copied, what waited for a device, and when devices were surely idle: for a summary, as text and as JSON.
//!
//! Owns words and layout. What is known, and how well, is `model::work`'s business.

mod copies;
mod gpu;
mod json;
mod streams;
mod waits;
mod words;

pub(crate) use gpu::graph_words;
pub(crate) use json::to_json;
pub(crate) use words::bandwidth;
pub(crate) use words::hidden as hidden_words;

use crate::frame::Frame;
use crate::model::work::ProcessReport;
use std::collections::HashMap;

/// Call stacks by site, innermost frame first.
pub(crate) type Stacks = HashMap<u64, Vec<Frame>>;

/// The sections of the summary, each empty where it has nothing to say.
pub(crate) fn to_text(processes: &[ProcessReport], stacks: &Stacks) -> String {
    let mut out = String::new();
    copies::section(processes, &mut out);
    waits::section(processes, stacks, &mut out);
    gpu::section(processes, &mut out);
    out
}
