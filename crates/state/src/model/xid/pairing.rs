//! The log and the tracepoint tell of the same fault within a moment: which two tellings are one.

use super::{Report, Source};
use std::collections::VecDeque;

/// How long one waits for the other, CLOCK_MONOTONIC ns. The log is read at least so often.
const PATIENCE_NS: u64 = 80_000_000;
/// Reports that wait; a storm beyond them is told as it comes.
const MOST: usize = 4096;

/// Reports that wait for their other half.
#[derive(Debug, Default)]
pub struct Pairing {
    log: VecDeque<Report>,
    tracepoint: VecDeque<Report>,
    ready: Vec<Report>,
}

impl Pairing {
    /// Adds what one of the two has told.
    pub fn add(&mut self, report: Report) {
        let (own, others) = self.sides(report.source);
        let same = |other: &Report| is_same(&report, other) && say_the_same(&report, other);
        match others.iter().position(same) {
            Some(at) => {
                let other = others.remove(at);
                self.ready.extend(other.map(|other| joined(report, other)));
            }
            None => own.push_back(report),
        }
    }

    /// Takes the reports that are complete or have waited long enough at `now`, by time. `both`: either may still come,
    /// else nothing is waited for.
    pub fn take(&mut self, now: u64, both: bool) -> Vec<Report> {
        let patience = if both { PATIENCE_NS } else { 0 };
        let horizon = now.saturating_sub(patience);
        while let Some(report) = self.overdue(horizon) {
            self.settle(report);
        }
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_by_key(|report| report.at);
        ready
    }

    fn overdue(&mut self, horizon: u64) -> Option<Report> {
        let is_due = |waiting: &VecDeque<Report>| {
            let old = waiting.front().is_some_and(|report| report.at <= horizon);
            old || waiting.len() > MOST
        };
        if is_due(&self.tracepoint) {
            return self.tracepoint.pop_front();
        }
        is_due(&self.log).then(|| self.log.pop_front()).flatten()
    }

    /// Two tellings in other words are one fault all the same: each of the two tells of each once.
    fn settle(&mut self, report: Report) {
        let (_, others) = self.sides(report.source);
        let other = others.iter().position(|other| is_same(&report, other));
        let other = other.and_then(|at| others.remove(at));
        self.ready.push(match other {
            Some(other) => joined(report, other),
            None => report,
        });
    }

    fn sides(&mut self, source: Source) -> (&mut VecDeque<Report>, &mut VecDeque<Report>) {
        match source {
            Source::Tracepoint => (&mut self.tracepoint, &mut self.log),
            _ => (&mut self.log, &mut self.tracepoint),
        }
    }
}

fn is_same(a: &Report, b: &Report) -> bool {
    let key = |report: &Report| (report.xid.reporter, report.xid.code);
    key(a) == key(b) && a.xid.pci == b.xid.pci
}

/// A comma in the process's name makes a part of it look like the message.
fn say_the_same(a: &Report, b: &Report) -> bool {
    let (a, b) = (&a.xid.message, &b.xid.message);
    let is_end = |end: &String, of: &String| !end.is_empty() && of.ends_with(end);
    a == b || is_end(a, b) || is_end(b, a)
}

/// The log knows the process and the instance, the tracepoint the time, and where the message begins.
fn joined(a: Report, b: Report) -> Report {
    let (mut log, tracepoint) = match a.source {
        Source::Tracepoint => (b, a),
        _ => (a, b),
    };
    let rest = log.xid.message.strip_suffix(tracepoint.xid.message.as_str());
    let rest = rest.and_then(|rest| rest.strip_suffix(", ")).map(str::to_owned);
    if let (Some(name), Some(rest)) = (log.xid.name.as_mut(), rest) {
        *name += &format!(", {rest}");
        log.xid.message = tracepoint.xid.message;
    }
    Report {
        at: tracepoint.at,
        source: Source::Both,
        ..log
    }
}
