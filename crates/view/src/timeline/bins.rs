//! How much of each column's time each class took.

use super::lane::Lane;
use super::survey::{Window, shows};
use crate::catalog::Class;
use crate::filter::Filter;
use crate::model::activity::Why;
use crate::record::{Kind, Record, Taker};
use std::collections::{BTreeMap, HashMap};

/// Names that are told apart in a lane; time of more is that of all others.
const MOST_NAMES: usize = 4096;

/// Of one column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// Time of each class, ns, by its index in [`CATEGORIES`], of idle time by [`cause`]; few have many.
    pub ns: Vec<(u8, u64)>,
    /// Rows that begin here.
    pub rows: u64,
}

/// Of one lane.
#[derive(Debug, Clone, Default)]
pub struct Row {
    pub cells: Vec<Cell>,
    /// Time of outermost calls within the window.
    pub busy_ns: u64,
    pub rows: u64,
    /// Time by name.
    pub names: HashMap<String, u64>,
    /// Of steps: which is the first that begins in a column.
    pub begins: BTreeMap<usize, u64>,
    /// What is counted already ends here.
    until: i64,
}

/// Classes of calls as they are coloured, the most telling first: it wins where two took as long.
pub(crate) const CATEGORIES: [&str; 12] = [
    "sync", "copy", "launch", "memory", "graph", "module", "context", "stream", "event", "query", "error", "other",
];

/// The index of a class in [`CATEGORIES`].
#[must_use]
pub(crate) fn category(class: Class) -> u8 {
    let index = CATEGORIES.iter().position(|name| *name == class.category());
    index.unwrap_or(CATEGORIES.len() - 1) as u8
}

/// The number of a cause of idle time; 0: it follows from calls, and has none.
fn cause(name: &str) -> u8 {
    let index = Why::ALL.iter().position(|why| why.name() == name);
    index.map_or(0, |index| index as u8 + 1)
}

/// The cause of that number.
#[must_use]
pub(crate) fn cause_of(number: u8) -> Option<Why> {
    Why::ALL.get(usize::from(number).checked_sub(1)?).copied()
}

/// That of a call; what a device did is coloured as the call that asks for such a thing.
fn class_of(event: &Record<'_>) -> Class {
    match event.kind {
        Kind::Gpu if event.direction.is_some() => Class::Copy,
        Kind::Gpu if event.bytes.is_some() => Class::Memset,
        Kind::Gpu => Class::Launch,
        _ => event.class,
    }
}

/// The second look at a trace.
pub struct Bins<'a> {
    filter: &'a Filter,
    pub window: Window,
    pub columns: usize,
    pub rows: HashMap<Lane, Row>,
}

impl<'a> Bins<'a> {
    /// Of these lanes, in so many columns.
    #[must_use]
    pub fn new(filter: &'a Filter, window: Window, columns: usize, lanes: &[Lane]) -> Bins<'a> {
        let row = Row {
            cells: vec![Cell::default(); columns],
            until: i64::MIN,
            ..Row::default()
        };
        Bins {
            filter,
            window,
            columns,
            rows: lanes.iter().map(|lane| (lane.clone(), row.clone())).collect(),
        }
    }

    /// The column of a time within the window.
    fn column(&self, at: i64) -> usize {
        let since = u128::from(self.window.overlap(self.window.from, at));
        let column = since * self.columns as u128 / u128::from(self.window.ns());
        usize::try_from(column).map_or(0, |column| column.min(self.columns - 1))
    }

    /// Where a column begins, ns since the start of the trace.
    fn begin(&self, column: usize) -> i64 {
        let since = u128::from(self.window.ns()) * column as u128;
        // rounded up, as a column's first nanosecond is
        let since = since.div_ceil(self.columns as u128);
        self.window
            .from
            .saturating_add_unsigned(u64::try_from(since).unwrap_or(u64::MAX))
    }

    fn fill(&mut self, lane: &Lane, event: &Record<'_>, all: bool) {
        let Some(until) = self.rows.get(lane).map(|row| row.until) else {
            return;
        };
        let end = event.end();
        if end < self.window.from || event.at > self.window.to {
            return;
        }
        // a step ends where the next begins: what only touches the window is none of it
        if event.kind == Kind::Step && self.window.overlap(event.at, end) == 0 {
            return;
        }
        // what lies in a call of the same lane is that call's time
        let from = if all { event.at } else { event.at.max(until) };
        let (first, last) = (self.column(event.at), self.column(end));
        let parts: Vec<(usize, u64)> = (self.column(from)..=last)
            .map(|column| {
                let part = Window {
                    from: self.begin(column).max(self.window.from),
                    to: self.begin(column + 1).min(self.window.to),
                };
                (column, part.overlap(from, end))
            })
            .collect();
        let busy = self.window.overlap(from, end.max(from));
        let Some(row) = self.rows.get_mut(lane) else { return };
        row.until = until.max(end);
        row.rows += 1;
        row.busy_ns = row.busy_ns.saturating_add(busy);
        row.cells[first].rows += 1;
        if event.kind == Kind::Step && event.at >= self.window.from {
            row.begins.entry(first).or_insert(event.count);
        }
        let category = match event.kind {
            Kind::Idle | Kind::DeviceIdle => cause(event.name),
            _ => category(class_of(event)),
        };
        for (column, ns) in parts {
            row.cells[column].add(category, ns);
        }
        row.name(event.kernel.filter(|_| all).unwrap_or(event.name), busy);
    }
}

impl Cell {
    fn add(&mut self, category: u8, ns: u64) {
        match self.ns.iter_mut().find(|(known, _)| *known == category) {
            Some((_, sum)) => *sum = sum.saturating_add(ns),
            None => self.ns.push((category, ns)),
        }
    }

    /// The class that took most of it, and the time of all.
    #[must_use]
    pub(crate) fn most(&self) -> Option<(u8, u64)> {
        let most = self
            .ns
            .iter()
            .max_by_key(|(category, ns)| (*ns, std::cmp::Reverse(*category)))?;
        Some((most.0, self.ns.iter().fold(0, |sum, (_, ns)| sum.saturating_add(*ns))))
    }
}

impl Row {
    fn name(&mut self, name: &str, ns: u64) {
        if let Some(sum) = self.names.get_mut(name) {
            *sum = sum.saturating_add(ns);
        } else if self.names.len() < MOST_NAMES {
            self.names.insert(name.to_owned(), ns);
        }
    }
}

impl Taker for Bins<'_> {
    fn take(&mut self, event: &Record<'_>) {
        if !shows(self.filter, event) {
            return;
        }
        if let Some(lane) = Lane::of(event) {
            self.fill(&lane, event, matches!(event.kind, Kind::Lost | Kind::Xid | Kind::Step));
        }
        if let Some(lane) = Lane::of_stream(event) {
            self.fill(&lane, event, true);
        }
        if let Some(lane) = Lane::of_only_device(event) {
            self.fill(&lane, event, false);
        }
    }
}
