//! From a recording, or rows as they come, to a report.

#[cfg(test)]
mod tests;

use super::clip::Clip;
use super::steps::StepTally;
use super::{Gatherer, Report, Source, Until};
use crate::findings::Examiner;
use crate::model::snapshot::{self, Snapshot};
use crate::part::Part;
use crate::record::{Meta, Record, Taker};
use crate::steps::Follower;
use crate::trace::{Covers, End, Files, Latest};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::Path;

/// Takes rows for all that a report says: sums and diagnoses.
pub struct Collector {
    gatherer: Gatherer,
    examiner: Examiner,
    clip: Option<Clip>,
    part: Part,
    /// Of a part: what totals say of the whole recording.
    whole: Option<Snapshot>,
    steps: StepTally,
}

impl Default for Collector {
    fn default() -> Collector {
        Collector::new()
    }
}

impl Collector {
    /// With all rules.
    #[must_use]
    pub fn new() -> Collector {
        Collector {
            gatherer: Gatherer::default(),
            examiner: Examiner::new(),
            clip: None,
            part: Part::All,
            whole: None,
            steps: StepTally::default(),
        }
    }

    /// The same, of rows of a part of a trace.
    fn of(part: &Part) -> Collector {
        let steps = match part {
            Part::All => StepTally::default(),
            Part::Steps(_) | Part::Ranges(_) => StepTally::Off,
        };
        let mut collector = Collector {
            part: part.clone(),
            steps,
            ..Collector::new()
        };
        if matches!(part, Part::Ranges(_)) {
            collector.gatherer.is_in_pieces();
        }
        collector
    }

    /// From when on there will be all rows.
    pub fn covers(&mut self, covers: Covers) {
        self.clip = Clip::of(covers);
        self.begin();
    }

    /// Where the beginning is known.
    fn begin(&mut self) {
        if let Some(from) = self.clip.as_ref().and_then(Clip::from) {
            self.gatherer.covers_from(from);
            self.examiner.covers_from(from);
        }
    }

    fn hand(&mut self, event: &Record<'_>) {
        self.gatherer.take(event);
        self.examiner.take(event);
        self.steps.take(event);
    }

    /// Gaps that were kept back until it was known where they begin to count.
    fn hand_kept(&mut self) {
        let (gatherer, examiner, steps) = (&mut self.gatherer, &mut self.examiner, &mut self.steps);
        if let Some(clip) = self.clip.as_mut() {
            clip.kept(|gap| {
                gatherer.take(gap);
                examiner.take(gap);
                steps.take(gap);
            });
        }
    }

    /// What the rows so far say. `exact`: the summary of the run, as JSON.
    #[must_use]
    pub fn report(&mut self, source: Source, exact: Option<&str>) -> Report {
        let (exact, unreadable) = match exact.map(read).transpose() {
            Ok(exact) => (exact, None),
            Err(why) => (None, Some(why.to_string())),
        };
        self.doubt(exact.as_ref());
        self.examiner.tracing_took(exact.as_ref().map_or(0, in_calls_ns));
        // at a snapshot they were under way
        let ended = exact.as_ref().filter(|_| source.until.is_none());
        self.examiner.did_not_return(ended.map(unreturned).unwrap_or_default());
        let not_looked_for = exact.as_ref().and_then(|exact| exact.no_findings.clone());
        let unseen = || (!self.examiner.saw_calls()).then(|| Examiner::SAW_NONE.to_owned());
        let part = || self.part.why_not_judged().map(str::to_owned);
        let not_looked_for = not_looked_for.or_else(unseen).or_else(part);
        let findings = match not_looked_for {
            None => self.examiner.findings(),
            Some(_) => Vec::new(),
        };
        let until = source.until.filter(|_| exact.is_some());
        let source = Source {
            unreadable,
            until,
            part: self.part.words(),
            ..source
        };
        let mut report = self
            .gatherer
            .report(source, exact, self.whole.as_ref(), findings, self.examiner.run());
        report.totals.findings = not_looked_for.is_none().then(|| reported(&report));
        report.totals.no_findings.clone_from(&not_looked_for);
        Report {
            not_looked_for,
            steps: self.steps.told(&report),
            ..report
        }
    }

    /// With what totals, of these rows or of more, say of how far rows can be relied on.
    fn doubt(&mut self, exact: Option<&Snapshot>) {
        let Some(told) = exact.or(self.whole.as_ref()) else {
            return;
        };
        if idleness_is_inferred(told) {
            self.examiner.doubt_idleness();
        }
        if records_are_missing(told) {
            self.examiner.doubt_records();
        }
        if let Some(part) = told.gpu.as_ref().and_then(|gpu| gpu.part_words()) {
            self.examiner.saw_in_windows(part);
        }
    }
}

fn read(summary: &str) -> serde_json::Result<Snapshot> {
    Snapshot::read(&serde_json::from_str(summary)?)
}

/// What a gate judges is what the report shows.
fn reported(report: &Report) -> Vec<snapshot::Finding> {
    let findings = report.findings.iter();
    findings
        .map(|finding| snapshot::Finding {
            rule: finding.rule.to_owned(),
            title: finding.title.clone(),
            what: finding.what.clone(),
            cost_ns: finding.cost_ns,
            share: finding.share(&report.run),
            grave: finding.grave,
            certainty: finding.certainty.name().to_owned(),
            place: crate::sink::findings::place(finding),
            cure: finding.cure.clone(),
        })
        .collect()
}

/// Calls that had not returned, by function.
fn unreturned(exact: &Snapshot) -> BTreeMap<String, u64> {
    let functions = exact.functions.iter().filter(|function| function.unfinished > 0);
    functions
        .map(|function| (function.name.clone(), function.unfinished))
        .collect()
}

/// What tracing cost the program's calls. Of the whole, that it stood still while libraries were loaded is none of them.
fn in_calls_ns(exact: &Snapshot) -> u64 {
    let seconds = |key: &str| exact.cost[key].as_f64().unwrap_or(0.0);
    ((seconds("program_seconds") - seconds("standstill_seconds")).max(0.0) * 1e9).round() as u64
}

/// Not everything that gives devices work was seen.
fn idleness_is_inferred(exact: &Snapshot) -> bool {
    exact.work.iter().any(|work| work.gpu.certainty == "inferred")
}

/// Of what devices did, not everything was told.
fn records_are_missing(exact: &Snapshot) -> bool {
    let mut gpu = exact.gpu.iter();
    gpu.any(|gpu| gpu.is_sampled() || gpu.devices.iter().any(|device| !device.is_measured()))
}

impl Taker for Collector {
    fn start(&mut self, meta: &Meta) {
        self.gatherer.start(meta);
        self.examiner.start(meta);
    }

    fn take(&mut self, event: &Record<'_>) {
        let Some(clip) = self.clip.as_mut() else {
            return self.hand(event);
        };
        if clip.learn(event) {
            self.begin();
            self.hand_kept();
        }
        let within = self.clip.as_mut().and_then(|clip| clip.cut(event));
        if let Some(event) = within {
            self.hand(&event);
        }
    }
}

/// Reads a part of a recording, or all of it; `watch` is told how many bytes of how many are read, now and then.
///
/// # Errors
/// It cannot be read, is none, or nothing in it can be read.
pub fn load(files: &Files, part: &Part, watch: &mut dyn FnMut(u64, u64)) -> Result<Report> {
    let reader = files.recording()?;
    let mut collector = Collector::of(part);
    collector.covers(part.covers(reader.covers()));
    let end = part.through(&mut collector, |to| reader.read_watched(files.bytes(), to, watch));
    if let Some(anchors) = collector.steps.again().filter(|_| files.can_be_read_again()) {
        let mut follower = Follower::at(anchors);
        files.recording()?.read_watched(files.bytes(), &mut follower, watch);
        collector.steps = StepTally::Takes(Box::new(follower));
    }
    conclude(files.path(), &mut collector, end)
}

fn conclude(path: &Path, collector: &mut Collector, end: End) -> Result<Report> {
    end.refuse_nothing(path)?;
    let (latest, of_more) = match end.snapshot {
        Some(latest) if latest.whole => (Some(latest), None),
        of_more => (None, of_more),
    };
    let source = Source {
        name: path.display().to_string(),
        rows: end.all_rows,
        cut: end.cut,
        until: latest.as_ref().map(Until::of),
        of_more_until: of_more.map(|latest| latest.at),
        ..Source::default()
    };
    collector.whole = end.of_whole.as_deref().and_then(|whole| read(whole).ok());
    let totals = end.summary.or(latest.map(|latest| latest.totals));
    Ok(collector.report(source, totals.as_deref()))
}

impl Until {
    /// Where the totals end that are known of a recording that was cut off.
    #[must_use]
    pub fn of(latest: &Latest) -> Until {
        Until {
            at: latest.at,
            rows_after: latest.rows_after,
        }
    }
}
