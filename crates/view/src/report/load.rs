//! From a recording, or rows as they come, to a report.

use super::clip::Clip;
use super::part::find_steps;
use super::steps::StepTally;
use super::{Gatherer, Report, Source, Until};
use crate::findings::Examiner;
use crate::model::snapshot::{self, Snapshot};
use crate::record::{Meta, Record, Taker};
use crate::steps::Found;
use crate::trace::{Covers, End, Latest, Recording};
use crate::within::Within;
use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::path::Path;

/// Takes rows for all that a report says: sums and diagnoses.
pub struct Collector {
    gatherer: Gatherer,
    examiner: Examiner,
    clip: Option<Clip>,
    /// Of which part of the trace rows are, in words; `None`: of all of it.
    part: Option<String>,
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
            part: None,
            steps: StepTally::default(),
        }
    }

    /// From when on there will be all rows.
    pub fn covers(&mut self, covers: Covers) {
        self.clip = Clip::of(covers);
        self.begin();
    }

    /// The steps that rows are cut into, before any of them.
    pub fn steps_are(&mut self, found: Found) {
        self.steps = StepTally::of(found);
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
        if exact.as_ref().is_some_and(idleness_is_inferred) {
            self.examiner.doubt_idleness();
        }
        if exact.as_ref().is_some_and(records_are_missing) {
            self.examiner.doubt_records();
        }
        let part = exact.as_ref().and_then(|exact| exact.gpu.as_ref()?.part_words());
        if let Some(part) = part {
            self.examiner.saw_in_windows(part);
        }
        self.examiner.tracing_took(exact.as_ref().map_or(0, in_calls_ns));
        // at a snapshot they were under way
        let ended = exact.as_ref().filter(|_| source.until.is_none());
        self.examiner.did_not_return(ended.map(unreturned).unwrap_or_default());
        let not_looked_for = exact.as_ref().and_then(|exact| exact.no_findings.clone());
        let unseen = || (!self.examiner.saw_calls()).then(|| "no CUDA call was seen".to_owned());
        let part = || {
            self.part
                .as_ref()
                .map(|_| "these are rows of a part of the time".to_owned())
        };
        let not_looked_for = not_looked_for.or_else(unseen).or_else(part);
        let findings = match not_looked_for {
            None => self.examiner.findings(),
            Some(_) => Vec::new(),
        };
        let until = source.until.filter(|_| exact.is_some());
        let source = Source {
            unreadable,
            until,
            ..source
        };
        let mut report = self.gatherer.report(source, exact, findings, self.examiner.run());
        report.totals.findings = not_looked_for.is_none().then(|| reported(&report));
        report.totals.no_findings.clone_from(&not_looked_for);
        report.notes.extend(self.part.clone());
        Report {
            not_looked_for,
            steps: self.steps.told(&report),
            ..report
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
            what: finding.what.clone(),
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

/// Reads a recording; `watch` is told how many bytes of how many are read, now and then.
///
/// # Errors
/// It cannot be read, is none, or nothing in it can be read.
pub fn load(path: &Path, watch: &mut dyn FnMut(u64, u64)) -> Result<Report> {
    let found = find_steps(path, &mut |done, all| watch(done, 2 * all))?;
    let reader = Recording::open(path)?;
    let mut collector = Collector::new();
    collector.covers(reader.covers());
    collector.steps_are(found);
    let end = reader.read_watched(path, &mut collector, &mut |done, all| watch(all + done, 2 * all));
    conclude(path, &mut collector, end)
}

/// The same of what lies `within` ranges of a name: totals of all of the trace are none of that.
///
/// # Errors
/// As [`load`].
pub fn load_within(path: &Path, within: &Within, watch: &mut dyn FnMut(u64, u64)) -> Result<Report> {
    let reader = Recording::open(path)?;
    let mut collector = Collector {
        part: Some(within.words()),
        ..Collector::new()
    };
    collector.covers(reader.covers());
    let mut only = within.only(&mut collector);
    let end = reader.read_watched(path, &mut only, watch);
    let without_totals = End {
        all_rows: only.rows,
        summary: None,
        snapshot: None,
        ..end
    };
    conclude(path, &mut collector, without_totals)
}

fn conclude(path: &Path, collector: &mut Collector, end: End) -> Result<Report> {
    if let (0, None, Some(why)) = (end.all_rows, &end.summary, &end.cut) {
        bail!("nothing in {} can be read: {why}", path.display());
    }
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

#[cfg(test)]
mod tests {
    use super::super::{html, json, markdown, text};
    use super::*;
    use crate::catalog::Class;
    use crate::record::Kind;

    const MS: i64 = 1_000_000;

    fn call(name: &'static str, class: Class, at: i64, ns: i64) -> Record<'static> {
        Record {
            ns: Some(ns as u64),
            layer: "driver",
            name,
            class,
            ..Record::new(Kind::Call, at, 7)
        }
    }

    fn gap(at: i64, ns: i64) -> Record<'static> {
        Record {
            ns: Some(ns as u64),
            ..Record::new(Kind::Idle, at, 7)
        }
    }

    fn sample(name: &'static str, at: i64) -> Record<'static> {
        Record {
            name,
            bytes: Some(1),
            ..Record::new(Kind::Sample, at, 7)
        }
    }

    /// The last 4 s of a longer trace: a wait that began long before, a gap that did, and one within.
    fn dump(covers: Covers) -> Report {
        let mut collector = Collector::new();
        collector.covers(covers);
        let launch = |at: i64| call("cuLaunchKernel", Class::Launch, at, MS);
        for event in [
            gap(2000 * MS, 9000 * MS),
            launch(10_000 * MS),
            call("cuStreamSynchronize", Class::Sync, 1000 * MS, 9500 * MS),
            gap(9000 * MS, 500 * MS),
            gap(11_000 * MS, 1000 * MS),
            sample("gpu.idle_at_least_ns", 13_500 * MS),
            sample("gpu.busy_at_most_ns", 13_500 * MS),
            launch(13_999 * MS),
        ] {
            collector.take(&event);
        }
        collector.report(Source::default(), None)
    }

    #[test]
    fn all_of_a_dump_covers_the_same_time_or_says_which() {
        for covers in [Covers::From(10_000 * MS), Covers::Unsaid] {
            let report = dump(covers);
            assert_eq!((report.from_ns, report.to_ns), (10_000 * MS, 14_000 * MS));
            assert_eq!(report.wall_ns(), 4000 * MS as u64);
            let idle = &report.idle[0];
            // of the first gap what lies within; told until half a second before the last measure
            assert_eq!((idle.total_ns, idle.window_ns), (2000 * MS as u64, 3000 * MS as u64));
            let notes = report.notes.join("\n");
            for words in [
                "it covers the 4.00 s from 10.000 s to 14.000 s",
                "1 call began before and count in full, 9.00 s more",
                "idle time is known until 13.000 s",
            ] {
                assert!(notes.contains(words), "{words}: {notes}");
            }
        }
    }

    #[test]
    fn a_recording_that_was_cut_off_has_the_idle_time_that_was_last_measured() {
        let mut collector = Collector::new();
        for event in [
            call("cuLaunchKernel", Class::Launch, 0, MS),
            gap(10 * MS, 100 * MS),
            Record {
                bytes: Some(360 * MS as u64),
                ..sample("gpu.idle_at_least_ns", 1000 * MS)
            },
            Record {
                bytes: Some(540 * MS as u64),
                ..sample("gpu.busy_at_most_ns", 1000 * MS)
            },
        ] {
            collector.take(&event);
        }
        let idle = &collector.report(Source::default(), None).idle[0];
        assert_eq!((idle.total_ns, idle.window_ns), (360 * MS as u64, 900 * MS as u64));
    }

    /// Calls of two functions, some of which fail.
    #[derive(Debug, Clone, Copy)]
    struct Made {
        launches: bool,
        failed: bool,
    }

    /// What is exactly true after calls.
    #[derive(Debug, Clone, Default, PartialEq)]
    struct True([(u64, u64); 2]);

    impl True {
        fn count(&mut self, call: Made) {
            let (calls, errors) = &mut self.0[usize::from(call.launches)];
            (*calls, *errors) = (*calls + 1, *errors + u64::from(call.failed));
        }

        fn json(&self) -> String {
            let function = |(name, (calls, errors)): (&str, &(u64, u64))| {
                serde_json::json!({"layer": "driver", "name": name, "category": "launch", "calls": calls, "errors": errors,
                    "total_us": 1.0})
            };
            let functions: Vec<serde_json::Value> = NAMES.into_iter().zip(&self.0).map(function).collect();
            serde_json::json!({"type": "snapshot", "functions": functions}).to_string()
        }

        fn told_by(report: &Report) -> True {
            let functions = report.layers.iter().flat_map(|layer| &layer.functions);
            let mut told = True::default();
            for function in functions {
                let index = NAMES.iter().position(|name| *name == function.name).unwrap();
                told.0[index] = (function.calls, function.errors.unwrap());
            }
            told
        }
    }

    const NAMES: [&str; 2] = ["cuLaunchKernelEx", "cuLaunchKernel"];

    fn row(made: Made, at: i64) -> Record<'static> {
        Record {
            failed: made.failed,
            ..call(NAMES[usize::from(made.launches)], Class::Launch, at, 1)
        }
    }

    fn reported(bytes: &[u8]) -> Report {
        let mut collector = Collector::new();
        let end = crate::trace::Reader::new(bytes).unwrap().read(&mut collector);
        conclude(Path::new("x.arrows"), &mut collector, end).unwrap()
    }

    proptest::proptest! {
        /// Each batch: its calls, and whether totals end it.
        #[test]
        fn cut_at_any_border_it_says_what_the_last_snapshot_before_does(batches in proptest::collection::vec(
            (proptest::collection::vec((proptest::bool::ANY, proptest::bool::ANY), 1..20), proptest::bool::ANY), 1..8)) {
            use crate::record::Encoder;
            let mut recorder = crate::trace::Recorder::new(&meta()).unwrap();
            let (mut bytes, mut at, mut truth) = (Vec::new(), 0, True::default());
            let (mut last, mut later) = (None, Vec::new());
            for (calls, totals) in batches {
                for (launches, failed) in calls {
                    let made = Made { launches, failed };
                    truth.count(made);
                    at += 1;
                    recorder.take(&row(made, at), &mut bytes);
                    later.push(failed);
                }
                let json = truth.json();
                if totals {
                    let snapshot = Record { args: Some(&json), ..Record::new(Kind::Snapshot, at, 0) };
                    recorder.take(&snapshot, &mut bytes);
                    last = Some((at, truth.clone()));
                    later.clear();
                }
                recorder.tick(&mut bytes);
                let report = reported(&bytes);
                let (until, expected) = last.clone().map_or((None, truth.clone()), |(at, truth)| (Some(at), truth));
                proptest::prop_assert_eq!(report.source.until.map(|until| until.at), until);
                proptest::prop_assert_eq!(True::told_by(&report), expected);
                let rows_after = report.source.until.and_then(|until| until.rows_after);
                proptest::prop_assert_eq!(rows_after, until.map(|_| later.len() as u64));
                let failed = crate::report::gate::Gate::parse("error", false).unwrap().matches(&report).unwrap();
                let any = truth.0.iter().any(|(_, errors)| *errors > 0);
                proptest::prop_assert_eq!(!failed.is_empty(), any, "what failed behind the snapshot is judged, too");
            }
        }
    }

    fn meta() -> Meta {
        Meta::here(crate::clock::clock_now(), Vec::new(), String::new())
    }

    #[test]
    fn a_file_that_was_cut_off_says_until_when_its_totals_are() {
        let mut recorder = crate::trace::Recorder::new(&meta()).unwrap();
        let mut bytes = Vec::new();
        let json = r#"{"functions":[{"layer":"driver","name":"cuInit","category":"context","calls":3,"errors":0,"unfinished":1}]}"#;
        let totals = Record {
            args: Some(json),
            ..Record::new(Kind::Snapshot, 12_300 * MS, 0)
        };
        recorder.push(&totals, &mut bytes);
        recorder.push(&call("cuInit", Class::Context, 12_400 * MS, MS), &mut bytes);
        recorder.flush(&mut bytes);
        let report = reported(&bytes);
        let said = report.notes.join("\n");
        assert!(
            said.contains("totals are those up to 12.300 s (its last snapshot); 1 row came after it"),
            "{said}"
        );
        assert!(
            report.exact && report.run.unreturned.is_empty(),
            "at the snapshot it was under way"
        );
        let json: serde_json::Value = serde_json::from_str(&json::to_line(&report)).unwrap();
        assert_eq!(
            (&json["exact"], &json["exact_until_ns"]),
            (&true.into(), &(12_300 * MS).into())
        );
    }

    /// Everything that a row can say, as much as it can say.
    fn most(kind: Kind, class: Class, at: i64, failed: bool) -> Record<'static> {
        Record {
            ns: Some(u64::MAX),
            layer: "driver",
            name: class.name(),
            class,
            count: u64::MAX,
            since_caller: Some(u64::MAX),
            result: Some(i64::MIN),
            failed,
            bytes: Some(u64::MAX),
            direction: Some(crate::catalog::CopyKind::HtoD),
            blocking: true,
            stream: Some(u64::MAX),
            address: Some(u64::MAX),
            held: Some(u64::MAX),
            kernel: Some("k"),
            ..Record::new(kind, at, 7)
        }
    }

    #[test]
    fn numbers_that_nobody_can_mean_add_up_to_the_largest() {
        let mut collector = Collector::new();
        for at in [i64::MIN, -1, 0, 1, i64::MAX] {
            for class in Class::ALL {
                for kind in Kind::ALL {
                    collector.take(&most(*kind, *class, at, false));
                    collector.take(&most(*kind, *class, at, true));
                }
            }
        }
        let report = collector.report(Source::default(), None);
        // those that failed were no launches
        let failed = 5 * Kind::ALL.len() as u64;
        assert!(report.launches().number >= u64::MAX - failed);
        assert_eq!(report.losses.calls, u64::MAX);
        for page in [
            text::page(&report, false, None),
            json::to_line(&report),
            html::page(&report),
            markdown::page(&report),
        ] {
            assert!(page.contains(Class::Launch.name()), "{page}");
        }
    }
}
