//! The report of a trace that runs: rows as they come, nothing written.

use super::{Collector, Report, Source};
use crate::model::beside::{Happening, Measure};
use crate::model::summary::Summary;
use crate::model::xid::Report as Fault;
use crate::sink::{Entry, Sink};
use crate::trace::entry::Entries;
use crate::trace::{Event, Meta, Taker};
use std::cell::RefCell;
use std::rc::Rc;

/// What a trace has told so far; all clones are one.
#[derive(Clone, Default)]
pub struct Live(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    collector: Collector,
    /// As a recording would have.
    rows: u64,
    /// The exact totals, after the end.
    exact: Option<String>,
}

impl Live {
    /// Where rows of the trace that `meta` describes go.
    #[must_use]
    pub fn sink(&self, meta: &Meta) -> Box<dyn Sink> {
        self.0.borrow_mut().collector.start(meta);
        Box::new(Rows {
            entries: Entries::new(meta.clock),
            to: self.clone(),
        })
    }

    /// What it says. `name`: of what was traced.
    #[must_use]
    pub fn report(&self, name: String) -> Report {
        let state = &mut *self.0.borrow_mut();
        let source = Source {
            name,
            rows: state.rows,
            live: true,
            ..Source::default()
        };
        state.collector.report(source, state.exact.as_deref())
    }
}

struct Rows {
    entries: Entries,
    to: Live,
}

impl Rows {
    fn take(to: &Live, event: &Event<'_>) {
        let state = &mut *to.0.borrow_mut();
        state.rows += 1;
        state.collector.take(event);
    }
}

impl Sink for Rows {
    fn call(&mut self, entry: &Entry<'_>, _out: &mut Vec<u8>) {
        Rows::take(&self.to, &self.entries.call(entry, true));
    }

    fn process(&mut self, pid: u32, at: u64, comm: &str, what: Happening, _out: &mut Vec<u8>) {
        Rows::take(&self.to, &self.entries.process(pid, at, comm, what));
    }

    fn xid(&mut self, report: &Fault, _out: &mut Vec<u8>) {
        Rows::take(&self.to, &self.entries.xid(report));
    }

    fn lost(&mut self, function: &str, count: u64, from: u64, to: u64, _out: &mut Vec<u8>) {
        Rows::take(&self.to, &self.entries.lost(function, count, from, to));
    }

    fn measures(&self) -> bool {
        true
    }

    fn measure(&mut self, measure: &Measure, _out: &mut Vec<u8>) {
        Rows::take(&self.to, &self.entries.measure(measure));
    }

    fn finish(&mut self, summary: &Summary, _out: &mut Vec<u8>) {
        let state = &mut *self.to.0.borrow_mut();
        state.rows += 1;
        state.exact = Some(crate::sink::summary::to_json_line(summary).to_string());
    }
}
