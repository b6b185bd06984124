//! The streams of a process.

use super::words::titled;
use crate::model::work::StreamReport;
use crate::section::text::Ink;
use crate::section::{self, Cell, Column, Table};
use crate::sink::ALL_IN;
use std::collections::HashSet;
use std::fmt::Write;

/// Streams shown; the rest is one line.
const SHOWN: usize = 5;

/// A line for each stream, most submissions first.
pub(crate) fn table(streams: &[StreamReport], out: &mut String) {
    if streams.is_empty() {
        return;
    }
    let columns = vec![
        Column::text("stream"),
        Column::number("work given"),
        Column::number("copied"),
        Column::number("busy at most"),
        Column::number("queued at most"),
        Column::number("waited for"),
    ];
    let contexts = streams.iter().map(|stream| stream.context);
    let contexts: HashSet<u64> = contexts.filter(|context| *context != 0).collect();
    let rows = streams.iter().map(|stream| row(stream, contexts.len() > 1));
    let table = Table::flat(columns, rows).counting("stream", 1, "submission");
    let table = Table {
        few: SHOWN,
        all_in: ALL_IN,
        ..table.wide(&[13, 10, 13, 15, 11])
    };
    section::text::table(&table, Ink(false), out);
}

fn row(stream: &StreamReport, several_contexts: bool) -> Vec<Cell> {
    let copied = stream.copied.values().fold(0u64, |sum, size| sum.saturating_add(*size));
    vec![
        Cell::Text(what(stream, several_contexts)),
        Cell::Count(stream.submissions),
        Cell::Bytes(copied),
        Cell::Duration(stream.busy_at_most_ns),
        Cell::Count(stream.depth_at_most),
        Cell::Duration(stream.blocked_ns),
    ]
}

fn what(stream: &StreamReport, several_contexts: bool) -> String {
    let mut out = titled(stream);
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
    out
}
