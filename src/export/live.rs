//! A form as a sink: the rows of calls that were just traced.

use super::{Ending, Form};
use crate::model::beside::{Happening, Measure};
use crate::model::summary::Summary;
use crate::model::xid::Report;
use crate::sink::{Entry, Sink};
use crate::trace::Meta;
use crate::trace::entry::Entries;

/// Writes a form while the trace goes on.
pub struct Live {
    form: Box<dyn Form>,
    entries: Entries,
    meta: Meta,
}

impl Live {
    /// Of the trace that `meta` describes.
    #[must_use]
    pub fn new(form: Box<dyn Form>, meta: Meta) -> Live {
        Live {
            form,
            entries: Entries::new(meta.clock),
            meta,
        }
    }
}

impl Sink for Live {
    fn start(&mut self, out: &mut Vec<u8>) {
        self.form.start(&self.meta, out);
    }

    fn call(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        self.form.take(&self.entries.call(entry, true), out);
    }

    fn process(&mut self, pid: u32, at: u64, comm: &str, what: Happening, out: &mut Vec<u8>) {
        self.form.take(&self.entries.process(pid, at, comm, what), out);
    }

    fn xid(&mut self, report: &Report, out: &mut Vec<u8>) {
        self.form.take(&self.entries.xid(report), out);
    }

    fn lost(&mut self, function: &str, count: u64, from: u64, to: u64, out: &mut Vec<u8>) {
        self.form.take(&self.entries.lost(function, count, from, to), out);
    }

    fn measures(&self) -> bool {
        true
    }

    fn measure(&mut self, measure: &Measure, out: &mut Vec<u8>) {
        self.form.take(&self.entries.measure(measure), out);
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        let summary = crate::sink::summary::to_json_line(summary).to_string();
        let ending = Ending {
            summary: Some(&summary),
            cut: None,
        };
        self.form.finish(&ending, out);
    }
}
