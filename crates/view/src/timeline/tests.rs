use super::*;
use crate::catalog::{Class, CopyKind};
use crate::clock::Clock;
use crate::filter::Filter;
use crate::record::{Kind, Meta, Record, Taker};

const ALL: Window = Window {
    from: i64::MIN,
    to: i64::MAX,
};

fn meta() -> Meta {
    let clock = Clock {
        start_monotonic_ns: 1,
        start_unix_ns: 2,
    };
    Meta {
        clock,
        command: vec!["./train".to_owned()],
        tier: String::new(),
        host: "node-7".to_owned(),
        tool: String::new(),
    }
}

fn call(at: i64, ns: u64, name: &'static str, class: Class, layer: &'static str) -> Record<'static> {
    Record {
        ns: Some(ns),
        name,
        class,
        layer,
        comm: "train",
        ..Record::new(Kind::Call, at, 7)
    }
}

const MS: i64 = 1_000_000;

/// Ten steps of a copy, launches and a wait; a second thread; gaps, loss and a fault.
fn trace() -> Vec<Record<'static>> {
    let mut events = vec![call(0, 90 * MS as u64, "cuModuleLoadData", Class::Module, "driver")];
    for step in 1..10 {
        let at = step * 100 * MS;
        events.push(call(at, 9 * MS as u64, "cudaMemcpyAsync", Class::Copy, "runtime"));
        events.push(Record {
            depth: 1,
            since_caller: Some(1000),
            stream: Some(0x55d0_c8a1_2340),
            ..call(at + 1000, 8 * MS as u64, "cuMemcpyHtoDAsync_v2", Class::Copy, "driver")
        });
        for launch in 0..5 {
            events.push(Record {
                stream: Some(0),
                ..call(
                    at + (20 + launch) * MS,
                    40_000,
                    "cuLaunchKernel",
                    Class::Launch,
                    "driver",
                )
            });
        }
        events.push(call(
            at + 30 * MS,
            40 * MS as u64,
            "cudaStreamSynchronize",
            Class::Sync,
            "runtime",
        ));
        for (offset, name, direction) in [(2, "HtoD", Some(CopyKind::HtoD)), (25, "gemm<128>", None)] {
            events.push(Record {
                kind: Kind::Gpu,
                tid: 0,
                stream: Some(7),
                direction,
                args: Some(r#"{"activity":"kernel","device":0}"#),
                ..call(
                    at + offset * MS,
                    6 * offset as u64 / 5 * MS as u64,
                    name,
                    Class::Other,
                    "gpu",
                )
            });
        }
        events.push(Record {
            tid: 9,
            comm: "loader\u{1b}[2J",
            ..call(at + 50 * MS, 5 * MS as u64, "cudaMallocHost", Class::Alloc, "runtime")
        });
        events.push(Record {
            ns: Some(29 * MS as u64),
            ..Record::new(Kind::Idle, at + 71 * MS, 7)
        });
    }
    events.push(Record {
        ns: Some(20 * MS as u64),
        count: 1432,
        name: "cudaStreamQuery",
        ..Record::new(Kind::Lost, 500 * MS, 0)
    });
    events.push(Record::new(Kind::Xid, 950 * MS, 0));
    events
}

fn drawn(rules: &[&str], limits: Window, look: Look) -> String {
    let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    let filter = Filter::parse(&rules, &[]).unwrap();
    let mut survey = Survey::new(&filter, limits);
    survey.start(&meta());
    trace().iter().for_each(|event| survey.take(event));
    let lanes = survey.busiest(24);
    let mut bins = Bins::new(&filter, survey.window().unwrap(), look.columns(), &lanes);
    trace().iter().for_each(|event| bins.take(event));
    draw::draw("t.arrows", &survey, &bins, look)
}

#[test]
fn steps_have_a_lane_with_their_numbers_where_there_is_room() {
    let mut rows = trace();
    for number in 0..10 {
        rows.push(Record {
            ns: Some(100 * MS as u64),
            count: 95 + number,
            name: "step",
            ..Record::new(Kind::Step, number as i64 * 100 * MS, 7)
        });
    }
    let filter = Filter::default();
    let mut survey = Survey::new(&filter, ALL);
    rows.iter().for_each(|event| survey.take(event));
    for (width, drawn) in [(80, "|95  |96   |97   |98  |99   |100  |101"), (40, "|| | || | || | |")] {
        let look = Look { width, ..PLAIN };
        let mut bins = Bins::new(&filter, survey.window().unwrap(), look.columns(), &survey.busiest(24));
        rows.iter().for_each(|event| bins.take(event));
        let picture = draw::draw("t.arrows", &survey, &bins, look);
        let lane = picture.lines().find(|line| line.starts_with("  steps")).unwrap();
        assert!(lane.ends_with("10") && lane.contains(drawn), "{picture}");
    }
}

const PLAIN: Look = Look {
    width: 80,
    colour: false,
};

#[test]
fn a_timeline() {
    insta::assert_snapshot!(drawn(&[], ALL, PLAIN));
}

#[test]
fn idle_time_that_was_measured_says_why() {
    let filter = Filter::parse(&[], &[]).unwrap();
    let gap = |at: i64, ns: i64, name| Record {
        ns: Some((ns * MS).unsigned_abs()),
        name,
        ..Record::new(Kind::Idle, at * MS, 7)
    };
    let gaps = [
        gap(0, 40, "blocked"),
        gap(50, 10, "sync-return"),
        gap(80, 10, "other"),
        gap(92, 8, ""),
    ];
    let window = Window { from: 0, to: 100 * MS };
    let mut survey = Survey::new(&filter, window);
    gaps.iter().for_each(|event| survey.take(event));
    let mut bins = Bins::new(&filter, window, PLAIN.columns(), &survey.busiest(24));
    gaps.iter().for_each(|event| bins.take(event));
    let picture = draw::draw("t.arrows", &survey, &bins, PLAIN);
    let lines: Vec<&str> = picture.lines().filter(|line| line.contains("idle")).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_thread_is_called_as_the_program_calls_it() {
    let mut rows = trace();
    rows.push(Record {
        tid: 9,
        name: "reads\u{1b}[2J ahead",
        ..Record::new(Kind::ThreadName, 50 * MS, 7)
    });
    let filter = Filter::default();
    let mut survey = Survey::new(&filter, ALL);
    rows.iter().for_each(|event| survey.take(event));
    let mut bins = Bins::new(&filter, survey.window().unwrap(), PLAIN.columns(), &survey.busiest(24));
    rows.iter().for_each(|event| bins.take(event));
    let picture = draw::draw("t.arrows", &survey, &bins, PLAIN);
    assert!(picture.contains(" thread 9 reads\\u{1b}[2J ahead\n"), "{picture}");
    assert!(!picture.contains("loader"), "{picture}");
}

#[test]
fn each_of_several_devices_has_its_own_idle_time_and_the_first_one_that_of_before() {
    let filter = Filter::parse(&[], &[]).unwrap();
    let gap = |kind, at: i64, ns: i64, args| Record {
        ns: Some((ns * MS).unsigned_abs()),
        name: "blocked",
        args: Some(args),
        ..Record::new(kind, at * MS, 7)
    };
    let gaps = [
        gap(Kind::Idle, 0, 40, r#"{"device":0}"#),
        gap(Kind::Idle, 50, 10, r#"{"devices":2}"#),
        gap(Kind::DeviceIdle, 45, 15, r#"{"device":0}"#),
        gap(Kind::DeviceIdle, 50, 50, r#"{"device":1}"#),
    ];
    let window = Window { from: 0, to: 100 * MS };
    let mut survey = Survey::new(&filter, window);
    gaps.iter().for_each(|event| survey.take(event));
    let mut bins = Bins::new(&filter, window, PLAIN.columns(), &survey.busiest(24));
    gaps.iter().for_each(|event| bins.take(event));
    let picture = draw::draw("t.arrows", &survey, &bins, PLAIN);
    let lines: Vec<&str> = picture.lines().filter(|line| line.contains("idle ")).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_timeline_in_colours() {
    let look = Look { colour: true, ..PLAIN };
    insta::assert_snapshot!(drawn(&[], ALL, look).replace('\u{1b}', "␛"));
}

#[test]
fn a_part_of_it() {
    let part = Window {
        from: 200 * MS,
        to: 300 * MS,
    };
    insta::assert_snapshot!(drawn(&["!@copy"], part, PLAIN));
}

#[test]
fn no_line_is_wider_than_asked_for() {
    for width in [40, 60, 80, 200] {
        let picture = drawn(&[], ALL, Look { width, colour: false });
        let widest = picture.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(
            width >= 80 && widest <= width || width < 80 && widest <= 80,
            "{width}:\n{picture}"
        );
        assert!(!picture.contains('\u{1b}'), "{picture}");
    }
}

#[test]
fn the_time_in_the_columns_is_the_time_of_the_calls() {
    let filter = Filter::default();
    let lane = Lane::of(&call(0, 1, "", Class::Copy, "runtime")).unwrap();
    let window = Window { from: 0, to: 999 };
    let mut bins = Bins::new(&filter, window, 7, std::slice::from_ref(&lane));
    bins.take(&call(3, 700, "outer", Class::Copy, "runtime"));
    bins.take(&call(10, 90, "inner", Class::Sync, "runtime"));
    bins.take(&call(900, 500, "cut", Class::Copy, "runtime"));
    let row = &bins.rows[&lane];
    let sum: u64 = row.cells.iter().filter_map(|cell| cell.most()).map(|(_, ns)| ns).sum();
    assert_eq!((sum, row.busy_ns), (700 + 99, 700 + 99));
}

#[test]
fn times_that_nobody_can_mean_add_up_to_the_longest() {
    let filter = Filter::default();
    let lost = Record {
        ns: Some(u64::MAX),
        ..Record::new(Kind::Lost, i64::MIN, 7)
    };
    let lane = Lane::of(&lost).unwrap();
    let mut bins = Bins::new(&filter, ALL, 1, std::slice::from_ref(&lane));
    (0..3).for_each(|_| bins.take(&lost));
    let row = &bins.rows[&lane];
    assert_eq!(row.busy_ns, u64::MAX);
    assert_eq!(row.cells[0].most().unwrap().1, u64::MAX);
}
