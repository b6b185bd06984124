//! The report of a trace that runs: rows as they come, nothing written.

use super::{Collector, Report, Source};
use crate::record::{Encoder, Ending, Kind, Meta, Record, Taker};
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
    pub fn taker(&self, meta: &Meta) -> Box<dyn Encoder> {
        self.0.borrow_mut().collector.start(meta);
        Box::new(Rows(self.clone()))
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

struct Rows(Live);

impl Rows {
    fn add(&self, record: &Record<'_>) {
        let state = &mut *self.0.0.borrow_mut();
        state.rows += 1;
        state.collector.take(record);
    }
}

impl Encoder for Rows {
    fn take(&mut self, record: &Record<'_>, _out: &mut Vec<u8>) {
        if record.kind != Kind::Open {
            self.add(record);
        }
    }

    fn take_unreturned(&mut self, record: &Record<'_>, _out: &mut Vec<u8>) {
        self.add(record);
    }

    fn finish(&mut self, ending: &Ending<'_>, _out: &mut Vec<u8>) {
        let state = &mut *self.0.0.borrow_mut();
        state.rows += 1;
        state.exact = ending.summary.map(str::to_owned);
    }
}
