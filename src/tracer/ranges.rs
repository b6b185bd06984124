//! What programs call their own phases (NVTX): taken in and told as records.

use super::Tracer;
use crate::discover;
use crate::engine::{Records, Stream};
use crate::inside;
use crate::model::range::Range;
use crate::probe::launch::Runner;
use crate::record::Encoder;
use std::ffi::{OsStr, OsString};
use std::rc::Rc;

/// See the module.
pub(super) struct RangePlane {
    records: Records,
}

impl Tracer {
    /// Has ranges and marks become lines, where the engine is told of them.
    pub fn watch_ranges(&mut self) {
        let opened = Records::open(self.engine.as_ref(), Stream::Ranges);
        self.ranges = opened.ok().map(|records| RangePlane { records });
    }

    /// Takes what has NVTX call us out of what a program is started with, where another tool has it.
    pub(super) fn leave_ranges(&mut self, all: &mut Vec<(OsString, OsString)>, runner: Option<&Runner>) {
        let given = match runner {
            Some(runner) => runner.environment.get(OsStr::new(inside::NVTX)).cloned(),
            None => std::env::var_os(inside::NVTX),
        };
        if all.iter().all(|(name, _)| name != inside::NVTX) {
            return;
        }
        if let Some(other) = inside::leave_nvtx(all, given) {
            let path = other.display();
            self.attacher.gap(format!(
                "ranges and marks (NVTX): {} is set to {path} already, and has room for one library",
                inside::NVTX
            ));
        }
    }

    /// Takes in what programs have told.
    pub(super) fn take_ranges(&mut self) {
        let Some(plane) = &self.ranges else { return };
        let inbox = Rc::clone(plane.records.drain());
        for record in inbox.borrow().records() {
            match Range::parse(record) {
                Some(range) => self.window.annotate(range),
                None => self.malformed += 1,
            }
        }
        inbox.borrow_mut().clear();
    }

    pub(super) fn write_range(&mut self, range: &Range) {
        let Some(encoder) = self.encoder.as_mut() else { return };
        let known = self.comms.entry(range.tid);
        let comm =
            known.or_insert_with(|| discover::comm(range.pid, range.tid).unwrap_or_else(|| "?".to_owned()));
        let made = self.maker.range(range, comm, encoder.keeps());
        encoder.take(&made, &mut self.buffer);
        self.shown = true;
        self.write_if_full();
    }
}
