//! What programs call their own phases (NVTX): taken in and told as records.

use super::Tracer;
use crate::discover;
use crate::engine::{Records, Stream};
use crate::inside;
use crate::model::range::{Range, Shape};
use crate::probe::launch::Runner;
use crate::record::{Encoder, Taker};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::rc::Rc;

/// What programs call their own phases (NVTX).
pub(super) struct RangePlane {
    records: Records,
    /// Names of programs, for threads that have ended before they were told of.
    programs: HashMap<u32, String>,
    /// What programs call the categories of a domain, by process, domain and number.
    categories: HashMap<(u32, String, u32), String>,
}

/// Programs whose names are known; when there are more, nothing is known of any for a moment.
const MOST_PROGRAMS: usize = 1 << 16;
/// The same of categories; of more no names are known.
const MOST_CATEGORIES: usize = 1 << 14;

impl RangePlane {
    fn name_category(&mut self, named: Range) {
        if self.categories.len() < MOST_CATEGORIES {
            let key = (named.pid, named.domain, named.category);
            self.categories.insert(key, named.name);
        }
    }

    /// What the program calls the category of a range.
    fn category_of(&self, range: &Range) -> Option<&str> {
        if range.category == 0 {
            return None;
        }
        let key = (range.pid, range.domain.clone(), range.category);
        self.categories.get(&key).map(String::as_str)
    }
}

impl Tracer {
    /// Has ranges and marks become lines, where the engine is told of them.
    pub(crate) fn watch_ranges(&mut self) {
        let opened = Records::open(self.engine.as_ref(), Stream::Ranges);
        self.ranges = opened.ok().map(|records| RangePlane {
            records,
            programs: HashMap::new(),
            categories: HashMap::new(),
        });
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

    /// A program has begun in process `pid`, or a child was born there.
    pub(super) fn name_program(&mut self, pid: u32, comm: &str) {
        let Some(plane) = &mut self.ranges else { return };
        if plane.programs.len() >= MOST_PROGRAMS {
            plane.programs.clear();
        }
        plane.programs.insert(pid, comm.to_owned());
        plane.categories.retain(|(of, ..), _| *of != pid);
    }

    /// Takes in what programs have told.
    pub(super) fn take_ranges(&mut self) {
        let Some(plane) = &mut self.ranges else { return };
        let inbox = Rc::clone(plane.records.drain());
        for record in inbox.borrow().records() {
            match Range::parse(record) {
                Some(range) if range.shape == Shape::Category => plane.name_category(range),
                Some(range) => self.window.annotate(range),
                None => self.malformed += 1,
            }
        }
        inbox.borrow_mut().clear();
    }

    pub(super) fn write_range(&mut self, range: &Range) {
        let Some(encoder) = self.encoder.as_mut() else { return };
        let program = self.ranges.as_ref().and_then(|plane| plane.programs.get(&range.pid));
        let comm = self.comms.entry(range.tid).or_insert_with(|| {
            let now = discover::comm(range.pid, range.tid);
            now.or_else(|| program.cloned()).unwrap_or_else(|| "?".to_owned())
        });
        let category = self.ranges.as_ref().and_then(|plane| plane.category_of(range));
        let made = self.maker.range(range, category, comm, encoder.keeps());
        if let Ok(findings) = &mut self.findings {
            Taker::take(findings.as_mut(), &made);
        }
        encoder.take(&made, &mut self.buffer);
        self.shown = true;
        self.write_if_full();
    }
}
