//! Looks for what is wrong while a run is traced, by the rows that a recording of it would have.

use super::Tracer;
use crate::clock::{Clock, clock_now};
use crate::findings::Engine;
use crate::model::beside::{Happening, Measure};
use crate::model::finding::{Diagnosis, Report};
use crate::model::summary::Function;
use crate::sink::Entry;
use crate::trace::Taker;
use crate::trace::entry::Entries;

/// See the module.
pub(super) struct FindingPlane {
    engine: Engine,
    entries: Entries,
}

impl FindingPlane {
    /// Times begin there.
    pub(super) fn begin(&mut self, clock: Clock) {
        self.entries = Entries::new(clock);
    }

    pub(super) fn call(&mut self, entry: &Entry<'_>) {
        self.engine.take(&self.entries.call(entry, false));
    }

    pub(super) fn process(&mut self, pid: u32, at: u64, comm: &str, what: Happening) {
        self.engine.take(&self.entries.process(pid, at, comm, what));
    }

    pub(super) fn measure(&mut self, measure: &Measure) {
        self.engine.take(&self.entries.measure(measure));
    }

    pub(super) fn lost(&mut self, function: &str, count: u64, from: u64, to: u64) {
        self.engine.take(&self.entries.lost(function, count, from, to));
    }
}

impl Tracer {
    /// Has the summary say what is wrong, by the calls that are written. To be asked for before anything is traced.
    pub fn look_for_findings(&mut self) {
        self.begin_measures();
        self.findings = Ok(Box::new(FindingPlane {
            engine: Engine::new(),
            entries: Entries::new(clock_now()),
        }));
    }

    /// Has the summary say why it does not tell what is wrong.
    pub fn leave_findings_out(&mut self, why: &str) {
        self.findings = Err(Some(why.to_owned()));
    }

    /// Whether the summary will say what is wrong.
    #[must_use]
    pub fn looks_for_findings(&self) -> bool {
        self.findings.is_ok()
    }

    /// Leaves it to whoever takes the rows to look for what is wrong. Why that cannot be told stays said.
    pub fn leave_findings_to_others(&mut self) {
        if self.findings.is_ok() {
            self.findings = Err(None);
        }
    }

    /// What is wrong. `blind`: not everything that gives devices work was seen; `tracing_ns`: what probes have cost;
    /// `functions`: their totals.
    pub(super) fn diagnose(&mut self, blind: bool, tracing_ns: u64, functions: &[Function]) -> Diagnosis {
        match &mut self.findings {
            Err(None) => Diagnosis::Unasked,
            Err(Some(why)) => Diagnosis::Untold(why.clone()),
            Ok(plane) if !plane.engine.saw_calls() => Diagnosis::Untold("no CUDA call was seen".to_owned()),
            Ok(plane) => {
                if blind {
                    plane.engine.doubt_idleness();
                }
                plane.engine.tracing_took(tracing_ns);
                let unreturned = functions.iter().filter(|function| function.unfinished > 0);
                let unreturned = unreturned.map(|function| (function.name.clone(), function.unfinished));
                plane.engine.did_not_return(unreturned.collect());
                Diagnosis::Told(Report {
                    findings: plane.engine.findings(),
                    run: plane.engine.run(),
                })
            }
        }
    }
}
