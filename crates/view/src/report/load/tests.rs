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

/// Launches within 100 ms of 8 s, of which the file has rows.
fn launched(more: &[Record<'_>], until: Option<Until>) -> Report {
    let mut collector = Collector::new();
    for at in [0, 99] {
        collector.take(&call("cuLaunchKernel", Class::Launch, at * MS, MS));
    }
    more.iter().for_each(|event| collector.take(event));
    let launches =
        r#"{"functions":[{"layer":"driver","name":"cuLaunchKernel","category":"launch","calls":8000,"errors":0}]}"#;
    let source = Source {
        until,
        ..Source::default()
    };
    collector.report(source, Some(launches))
}

#[test]
fn rates_are_of_the_time_that_totals_are_of() {
    let rate = |report: &Report| {
        let facts = super::super::short::facts(report).into_iter();
        facts
            .filter(|(name, _)| *name == "launches")
            .map(|(_, words)| words)
            .next_back()
    };
    // calls were lost until the end
    let lost = launched(&[Record::lost("cuLaunchKernel", 7998, 50 * MS, 8000 * MS)], None);
    assert_eq!((lost.wall_ns(), lost.to_ns), (8000 * MS as u64, 8000 * MS));
    assert_eq!(rate(&lost).as_deref(), Some("8,000, 1,000/s"));
    let said = lost.notes.join("\n");
    assert!(
        said.contains("the last call with a row ended at 0.100 s; others were lost until 8.000 s"),
        "{said}"
    );
    // totals are those of the first half of the rows
    let until = Until {
        at: 4000 * MS,
        rows_after: None,
    };
    let cut = launched(&[call("cuLaunchKernel", Class::Launch, 7999 * MS, MS)], Some(until));
    assert_eq!((cut.wall_ns(), cut.totals_ns()), (8000 * MS as u64, 4000 * MS as u64));
    assert_eq!(rate(&cut).as_deref(), Some("8,000, 2,000/s"));
}

#[test]
fn a_failure_that_two_layers_tell_of_is_one_of_its_process() {
    let failed = |layer: &'static str, depth: u8| Record {
        failed: true,
        layer,
        depth,
        ..call("malloc", Class::Alloc, MS, MS)
    };
    let mut collector = Collector::new();
    [failed("runtime", 0), failed("driver", 1), failed("driver", 0)]
        .iter()
        .for_each(|event| collector.take(event));
    assert_eq!(collector.report(Source::default(), None).processes[0].failed, 2);
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

/// What a device did, of a part of a trace whose totals say that all of it was told.
fn part_of_executed(part: &Part) -> Report {
    let whole = r#"{"gpu":{"devices":[{"pid":7,"device":0,"certainty":"measured"}]},"memory":[{"pid":7,"late":true}]}"#;
    let mut collector = Collector::of(part);
    collector.whole = read(whole).ok();
    let ran = |at: i64| Record {
        ns: Some(MS as u64),
        name: "gemm",
        args: Some(r#"{"activity":"kernel","device":0,"context":1,"match":"none"}"#),
        ..Record::new(Kind::Gpu, at, 7)
    };
    let holds = Record {
        held: Some(0),
        ..call("cuMemFree_v2", Class::Free, 12 * MS, MS)
    };
    let launch = call("cuLaunchKernel", Class::Launch, 10 * MS, MS);
    [launch, holds, ran(11 * MS), ran(14 * MS)]
        .iter()
        .for_each(|row| collector.take(row));
    collector.report(Source::default(), None)
}

#[test]
fn of_some_steps_it_is_measured_what_devices_executed_and_of_pieces_it_is_not_said() {
    let steps = Part::Steps(crate::steps::Part {
        first: 2,
        last: 3,
        of: 9,
        from: 10 * MS,
        to: 20 * MS,
    });
    let report = part_of_executed(&steps);
    let device = &report.totals.gpu.as_ref().unwrap().devices[0];
    assert!(device.is_measured());
    assert_eq!((device.busy_ns, device.idle_ns), (2 * MS as u64, 2 * MS as u64));
    assert!(report.memory.has_late(), "it ran before it was watched");
    let pieces = part_of_executed(&Part::Ranges(crate::part::Within::of("step*")));
    assert_eq!(pieces.totals.gpu, None);
}
