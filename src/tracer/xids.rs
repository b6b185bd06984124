//! Xids of a run: out of the kernel's log and the driver's tracepoint, each once.
//!
//! Owns when which of the two is asked, and what is missing. Xids of other processes than the traced ones are told, too:
//! a GPU that is lost is lost for all.

use super::{Scope, Tracer};
use crate::driver::xid::Xid;
use crate::engine::Engine;
use crate::model::xid::{Faults, Pairing, Report, Source, Tally};
use crate::probe::kernel_log::{From, KernelLog, Logged};
use crate::probe::xid::Tracepoint;
use anyhow::Result;
use std::os::fd::RawFd;

const UNNAMED: &str = "Xids are told without the process that they name, and without older drivers' ones";
const NONE: &str = "Xids are not seen";

/// Xids of a run: out of the kernel's log and the driver's tracepoint.
pub(super) struct XidPlane {
    log: Option<KernelLog>,
    refused: Option<String>,
    tracepoint: Tracepoint,
    pairing: Pairing,
    tally: Tally,
    /// Of the boot, before this run.
    past: Vec<Logged>,
}

impl XidPlane {
    /// Opens both. `from`: what of the log is read.
    ///
    /// # Errors
    /// The kernel refuses to map a ring.
    pub(super) fn open(engine: &dyn Engine, from: From) -> Result<XidPlane> {
        let log = KernelLog::open(from);
        let refused = log.as_ref().err().map(ToString::to_string);
        let mut log = log.ok();
        let past = log.as_mut().filter(|_| from == From::Oldest);
        Ok(XidPlane {
            past: past.map(KernelLog::read_all).unwrap_or_default(),
            log,
            refused,
            tracepoint: Tracepoint::open(engine)?,
            pairing: Pairing::default(),
            tally: Tally::default(),
        })
    }

    pub(super) fn bells(&self) -> [RawFd; 2] {
        let log = self.log.as_ref().map_or(-1, KernelLog::bell);
        [log, self.tracepoint.bell()]
    }

    /// Attaches to a driver that was loaded meanwhile.
    pub(super) fn look_for_driver(&mut self, engine: &dyn Engine) {
        self.tracepoint.attach(engine);
    }

    /// The reports that have come, each once. `now`: CLOCK_MONOTONIC ns; `last`: nothing is waited for any more.
    pub(super) fn take(&mut self, now: u64, last: bool, is_traced: &dyn Fn(u32) -> bool) -> Vec<Report> {
        let told = |xid: Xid, at, source| Report {
            traced: xid.pid.is_some_and(is_traced),
            ..Report::new(xid, at, source)
        };
        for (xid, at) in self.tracepoint.take() {
            self.pairing.add(told(xid, at, Source::Tracepoint));
        }
        for logged in self.log.as_mut().map(KernelLog::read).unwrap_or_default() {
            self.pairing.add(told(logged.xid, now, Source::Log));
        }
        let both = !last && self.log.is_some() && self.tracepoint.is_attached();
        let reports = self.pairing.take(now, both);
        reports.iter().for_each(|report| self.tally.add(report));
        reports
    }

    /// Whether the kernel's log is read.
    pub(super) fn reads_log(&self) -> bool {
        self.log.is_some()
    }

    /// Those of the boot, before this run; once.
    pub(super) fn take_past(&mut self) -> Vec<Logged> {
        std::mem::take(&mut self.past)
    }

    pub(super) fn faults(&self) -> (Vec<Faults>, u64) {
        (self.tally.faults(), self.tally.more())
    }

    /// What is not seen, and why; one line each.
    pub(super) fn notes(&self, engine: &dyn Engine) -> Vec<String> {
        let missing = if self.tracepoint.is_attached() { UNNAMED } else { NONE };
        let refused = self.refused.iter().map(|why| format!("{missing}: {why}"));
        let missed = self.log.iter().flat_map(|log| log.missed().notes());
        let lost = Some(engine.counters().xids_lost).filter(|lost| *lost > 0);
        let lost = lost.map(|lost| format!("{lost} Xids of the tracepoint were lost: too many came at once"));
        refused.chain(missed).chain(lost).collect()
    }
}

impl Tracer {
    /// Sees to Xids from now on, and to those since the boot if `past`; without, they are not told.
    ///
    /// # Errors
    /// The kernel refuses to map a ring.
    pub(crate) fn watch_xids(&mut self, past: bool) -> Result<()> {
        let from = if past { From::Oldest } else { From::Now };
        self.xids = Some(XidPlane::open(self.engine.as_ref(), from)?);
        Ok(())
    }

    /// The Xids that have come since the last time, where sums by owner are kept.
    pub(crate) fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    /// The Xids of the boot that were in the log before this run; once.
    pub(crate) fn take_past_xids(&mut self) -> Vec<Logged> {
        self.xids.as_mut().map(XidPlane::take_past).unwrap_or_default()
    }

    /// Whether the kernel's log is read for Xids.
    pub(crate) fn reads_log(&self) -> bool {
        self.xids.as_ref().is_some_and(XidPlane::reads_log)
    }

    /// Whether an Xid that comes is seen: in the log, or at the tracepoint.
    pub(crate) fn sees_xids(&self) -> bool {
        let sees = |xids: &XidPlane| xids.reads_log() || xids.tracepoint.is_attached();
        self.xids.as_ref().is_some_and(sees)
    }

    /// What of Xids is not seen, and why; one line each.
    pub(crate) fn unseen_xids(&self) -> Vec<String> {
        let notes = |xids: &XidPlane| xids.notes(self.engine.as_ref());
        self.xids.as_ref().map(notes).unwrap_or_default()
    }

    pub(super) fn take_xids(&mut self, now: u64, last: bool) {
        let Some(plane) = self.xids.as_mut() else { return };
        let everyone = self.scope == Scope::All;
        let (engine, callers, tally) = (self.engine.as_ref(), &self.callers, &self.tally);
        // it may have ended meanwhile
        let has_called = |pid| callers.contains(&pid) || tally.knows(pid);
        let reports = plane.take(now, last, &|pid| everyone || engine.is_target(pid) || has_called(pid));
        for report in reports {
            if self.encoder.is_some() {
                self.window.report(report.clone());
            }
            if self.fleet.is_some() {
                self.reports.push(report);
            }
        }
    }
}
