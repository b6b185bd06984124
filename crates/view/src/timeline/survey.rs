//! What a trace has: when it begins and ends, which lanes there are and how busy they were.

use super::lane::Lane;
use crate::filter::Filter;
use crate::record::{Kind, Meta, Record, Taker};
use std::collections::{BTreeMap, HashMap};

/// The part of a trace that is shown, ns since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub from: i64,
    pub to: i64,
}

impl Window {
    /// Its length, at least a nanosecond.
    #[must_use]
    pub(crate) fn ns(self) -> u64 {
        u64::try_from(i128::from(self.to) - i128::from(self.from)).map_or(1, |ns| ns.max(1))
    }

    /// How much of `from` to `to` lies inside, ns.
    #[must_use]
    pub(crate) fn overlap(self, from: i64, to: i64) -> u64 {
        to.min(self.to).saturating_sub(from.max(self.from)).max(0) as u64
    }

    fn touches(self, event: &Record<'_>) -> bool {
        event.at <= self.to && event.end() >= self.from
    }
}

/// Whether a row is shown: only calls are chosen by their function.
#[must_use]
pub(crate) fn shows(filter: &Filter, event: &Record<'_>) -> bool {
    !matches!(event.kind, Kind::Call | Kind::Open | Kind::Kernel) || filter.selects_call(event.name, event.class)
}

/// The first look at a trace.
pub struct Survey<'a> {
    filter: &'a Filter,
    limits: Window,
    /// Of all rows that are shown.
    pub span: Option<Window>,
    /// Of all calls that would be shown without limits.
    pub calls: Option<Window>,
    /// Rows of each lane, and their time.
    pub lanes: BTreeMap<Lane, (u64, u64)>,
    /// Names of threads; that of a process is its first thread's.
    pub names: HashMap<(u32, u32), String>,
    /// Of threads, as the program calls them.
    pub(crate) given_names: HashMap<(u32, u32), String>,
    pub meta: Option<Meta>,
    pub lost: u64,
}

impl<'a> Survey<'a> {
    /// Of those rows that `filter` selects and that lie within `limits`.
    #[must_use]
    pub fn new(filter: &'a Filter, limits: Window) -> Survey<'a> {
        Survey {
            filter,
            limits,
            span: None,
            calls: None,
            lanes: BTreeMap::new(),
            names: HashMap::new(),
            given_names: HashMap::new(),
            meta: None,
            lost: 0,
        }
    }

    /// What is to be shown: all there is, or what was asked for.
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        let span = self.span?;
        let asked = |limit: i64, none: i64, found: i64| if limit == none { found } else { limit };
        Some(Window {
            from: asked(self.limits.from, i64::MIN, span.from),
            to: asked(self.limits.to, i64::MAX, span.to),
        })
    }

    /// The `most` busiest lanes.
    #[must_use]
    pub fn busiest(&self, most: usize) -> Vec<Lane> {
        let mut lanes: Vec<(&Lane, &(u64, u64))> = self.lanes.iter().collect();
        lanes.sort_by_key(|(lane, (rows, ns))| (lane.pid() != 0, std::cmp::Reverse((*ns, *rows))));
        let mut chosen: Vec<Lane> = lanes.into_iter().take(most).map(|(lane, _)| lane.clone()).collect();
        chosen.sort();
        chosen
    }

    /// The name of its first thread; empty: not known.
    pub(super) fn process(&self, pid: u32) -> &str {
        self.names.get(&(pid, pid)).map_or("", |name| name)
    }

    /// As the program calls a thread, or else the system.
    pub(super) fn thread(&self, pid: u32, tid: u32) -> &str {
        let given = self.given_names.get(&(pid, tid));
        given.or_else(|| self.names.get(&(pid, tid))).map_or("", |name| name)
    }

    fn note(&mut self, lane: Lane, ns: u64) {
        let (rows, sum) = self.lanes.entry(lane).or_default();
        *rows += 1;
        *sum = sum.saturating_add(ns);
    }
}

fn widen(span: &mut Option<Window>, event: &Record<'_>) {
    let span = span.get_or_insert(Window {
        from: event.at,
        to: event.at,
    });
    span.from = span.from.min(event.at);
    span.to = span.to.max(event.end());
}

impl Taker for Survey<'_> {
    fn start(&mut self, meta: &Meta) {
        self.meta = Some(meta.clone());
    }

    fn take(&mut self, event: &Record<'_>) {
        if !event.comm.is_empty() && !self.names.contains_key(&(event.pid, event.tid)) {
            self.names.insert((event.pid, event.tid), event.comm.to_owned());
        }
        if event.kind == Kind::ThreadName {
            self.given_names.insert((event.pid, event.tid), event.name.to_owned());
        }
        let Some(lane) = Lane::of(event).filter(|_| shows(self.filter, event)) else {
            return;
        };
        if matches!(lane, Lane::Layer { .. }) {
            widen(&mut self.calls, event);
        }
        if !self.limits.touches(event) {
            return;
        }
        widen(&mut self.span, event);
        if event.kind == Kind::Lost {
            self.lost = self.lost.saturating_add(event.count);
        }
        let ns = self.limits.overlap(event.at, event.end());
        self.note(lane, ns);
        if let Some(stream) = Lane::of_stream(event) {
            self.note(stream, ns);
        }
    }
}
