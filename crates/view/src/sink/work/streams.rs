//! The streams of a process.

use super::words::titled;
use crate::model::work::StreamReport;
use crate::text::fit::GAP;
use crate::text::quantity::{bytes, count, duration, plural};
use std::collections::HashSet;
use std::fmt::Write;

/// Streams shown; the rest is one line.
const SHOWN: usize = 5;

/// A line for each stream, most submissions first.
pub fn table(streams: &[StreamReport], out: &mut String) {
    if streams.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "{:>15}{GAP} {:>10}{GAP} {:>13}{GAP} {:>15}{GAP} {:>11}{GAP}  stream",
        "work given", "copied", "busy at most", "queued at most", "waited for"
    );
    let contexts = streams.iter().map(|stream| stream.context);
    let contexts: HashSet<u64> = contexts.filter(|context| *context != 0).collect();
    for stream in streams.iter().take(SHOWN) {
        row(stream, contexts.len() > 1, out);
    }
    let rest = streams.get(SHOWN..).unwrap_or_default();
    if !rest.is_empty() {
        let submissions = rest
            .iter()
            .fold(0u64, |sum, stream| sum.saturating_add(stream.submissions));
        let _ = writeln!(
            out,
            "{:>15} to {} (--summary json has all)",
            count(submissions),
            plural(rest.len() as u64, "more stream")
        );
    }
}

fn row(stream: &StreamReport, several_contexts: bool, out: &mut String) {
    let copied = stream.copied.values().fold(0u64, |sum, size| sum.saturating_add(*size));
    let _ = write!(
        out,
        "{:>15}{GAP} {:>10}{GAP} {:>13}{GAP} {:>15}{GAP} {:>11}{GAP}  {}",
        count(stream.submissions),
        bytes(copied),
        duration(stream.busy_at_most_ns),
        count(stream.depth_at_most),
        duration(stream.blocked_ns),
        titled(stream)
    );
    if several_contexts && stream.context != 0 {
        let _ = write!(out, " of context {:#x}", stream.context);
    }
    if let Some(priority) = stream.priority.filter(|priority| *priority != 0) {
        let _ = write!(out, ", priority {priority}");
    }
    if stream.nonblocking == Some(true) {
        out.push_str(", non-blocking");
    }
    if !stream.alive {
        out.push_str(", destroyed");
    }
    out.push('\n');
}
