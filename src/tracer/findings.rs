//! Looks for what is wrong while a run is traced, and for its steps, by the rows that a recording of it would have.

use super::Tracer;
use crate::findings::Examiner;
use crate::model::activity;
use crate::model::finding::{Diagnosis, Report};
use crate::model::step::Told;
use crate::model::summary::Function;
use crate::record::{Record, Taker};
use crate::steps::{Account, Follower};

/// Who looks; else why nobody does, if that is to be said.
pub(super) type Plane = Result<Box<Diagnostics>, Option<String>>;

/// Takes rows for what is said of a run at its end.
#[derive(Default)]
pub(super) struct Diagnostics {
    examiner: Examiner,
    steps: Follower<Account>,
}

impl Diagnostics {
    /// When a process was past its start-up and not yet at its end, ns since the start of the trace.
    pub(super) fn steady_of(&self, pid: u32) -> Option<(i64, i64)> {
        self.examiner.steady_of(pid)
    }
}

impl Taker for Diagnostics {
    fn take(&mut self, record: &Record<'_>) {
        self.examiner.take(record);
        self.steps.take(record);
    }
}

impl Tracer {
    /// Has the summary say what is wrong, by the calls that are written. To be asked for before anything is traced.
    pub(crate) fn look_for_findings(&mut self) {
        self.begin_measures();
        self.findings = Ok(Box::default());
    }

    /// Has the summary say why it does not tell what is wrong.
    pub(crate) fn leave_findings_out(&mut self, why: &str) {
        self.findings = Err(Some(why.to_owned()));
    }

    /// Whether the summary will say what is wrong.
    #[must_use]
    pub(crate) fn looks_for_findings(&self) -> bool {
        self.findings.is_ok()
    }

    /// Leaves it to whoever takes the rows to look for what is wrong. Why that cannot be told stays said.
    pub(crate) fn leave_findings_to_others(&mut self) {
        if self.findings.is_ok() {
            self.findings = Err(None);
        }
    }

    /// Before the end it is not asked for what is wrong; only why nobody looks is known.
    pub(super) fn undiagnosed(&self) -> Diagnosis {
        match &self.findings {
            Err(Some(why)) => Diagnosis::NotLookedFor(why.clone()),
            _ => Diagnosis::Unasked,
        }
    }

    /// What is wrong. `blind`: not everything that gives devices work was seen; `tracing_ns`: what probes have cost;
    /// `functions`: their totals.
    pub(super) fn diagnose(&mut self, blind: bool, tracing_ns: u64, functions: &[Function]) -> Diagnosis {
        let activities = self.report_activities();
        let missing = activities.as_ref().is_some_and(activity::Report::misses_some);
        let part = activities.and_then(|report| report.part_words());
        match &mut self.findings {
            Err(None) => Diagnosis::Unasked,
            Err(Some(why)) => Diagnosis::NotLookedFor(why.clone()),
            Ok(diagnostics) if !diagnostics.examiner.saw_calls() => {
                Diagnosis::NotLookedFor(Examiner::SAW_NONE.to_owned())
            }
            Ok(diagnostics) => {
                let examiner = &mut diagnostics.examiner;
                if blind {
                    examiner.doubt_idleness();
                }
                if let Some(part) = part {
                    examiner.saw_in_windows(part);
                }
                if missing {
                    examiner.doubt_records();
                }
                examiner.tracing_took(tracing_ns);
                let unreturned = functions.iter().filter(|function| function.unfinished > 0);
                let unreturned = unreturned.map(|function| (function.name.clone(), function.unfinished));
                examiner.did_not_return(unreturned.collect());
                Diagnosis::Reported(Report {
                    findings: examiner.findings(),
                    run: examiner.run(),
                })
            }
        }
    }
    /// The iterations of the programs, as far as they were followed. To be asked once, after the last row.
    pub(super) fn followed_steps(&mut self) -> Told {
        let activities = self.report_activities();
        let measured = activities.is_some_and(|report| !report.misses_some() && report.part_words().is_none());
        let diagnostics = self.findings.as_mut().ok().filter(|one| one.examiner.saw_calls());
        diagnostics.map_or_else(Told::default, |one| {
            std::mem::take(&mut one.steps).finish().told(measured)
        })
    }
}
