//! What is shown of the work of devices: copies, waits, when they were surely idle.

use gpuscope::catalog::{CopyKind, HostMemory, Layer};
use gpuscope::frame::{Frame, Language};
use gpuscope::model::memory::{Origin, Report};
use gpuscope::model::summary::{Copies, Summary};
use gpuscope::model::work::{
    Bandwidth, Certainty, CopyReport, Created, GpuReport, GraphReport, HiddenKind, HiddenWait, ProcessReport,
    SIZE_BUCKETS, StreamReport, WaitReport,
};
use gpuscope::sink::summary::{to_json, to_json_line, to_text};
use gpuscope::wire::WorkLoss;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

fn process(pid: u32, comm: &str) -> ProcessReport {
    ProcessReport {
        pid,
        comm: comm.to_owned(),
        origin: Origin::Start,
        first_at: SECOND,
        ended_at: None,
        copies: Vec::new(),
        streams: Vec::new(),
        created: Created::default(),
        waits: Vec::new(),
        hidden: Vec::new(),
        gpu: GpuReport::default(),
        graphs: GraphReport::default(),
        lost: WorkLoss::default(),
    }
}

/// `count` copies of `each` bytes, each call of which takes 100 µs.
fn copies(direction: Option<CopyKind>, host: Option<HostMemory>, blocking: bool, count: u64, each: u64) -> CopyReport {
    let mut sizes = [0; SIZE_BUCKETS];
    sizes[each.max(1).ilog2() as usize] = count;
    CopyReport {
        direction,
        host,
        blocking,
        count,
        bytes: count * each,
        unsized_count: 0,
        call_ns: count * MS / 10,
        sizes,
        bandwidth: Some(Bandwidth {
            bytes: count * each,
            ns: count * MS / 10,
            certainty: if blocking {
                Certainty::Measured
            } else {
                Certainty::Bound
            },
        }),
    }
}

fn stream(stream: u64, submissions: u64) -> StreamReport {
    StreamReport {
        stream,
        context: 0x5500,
        tid: None,
        priority: None,
        nonblocking: None,
        submissions,
        copied: BTreeMap::new(),
        busy_at_most_ns: submissions * MS,
        depth_at_most: submissions / 10,
        blocked_ns: submissions * MS / 2,
        alive: true,
    }
}

fn wait(function: &str, stream: Option<u64>, site: u64, count: u64) -> WaitReport {
    WaitReport {
        row: 7,
        function: function.to_owned(),
        stream,
        site,
        count,
        total_ns: count * 10 * MS,
        max_ns: 63 * MS,
    }
}

fn hidden(kind: HiddenKind, certainty: Certainty, site: u64, count: u64) -> HiddenWait {
    HiddenWait {
        kind,
        site,
        count,
        total_ns: count * MS,
        certainty,
    }
}

/// A training script: seen from its start, every claim is a bound.
fn training() -> ProcessReport {
    use {CopyKind::*, HiddenKind::*, HostMemory::*};
    let unsized_copies = CopyReport {
        unsized_count: 3,
        bandwidth: None,
        sizes: [0; SIZE_BUCKETS],
        ..copies(None, Some(Unknown), true, 3, 0)
    };
    ProcessReport {
        copies: vec![
            copies(Some(HtoD), Some(Pinned), true, 1024, MIB),
            copies(Some(HtoD), Some(Pageable), false, 100, 64 << 10),
            copies(Some(DtoD), None, false, 50, 4096),
            copies(Some(PtoP), None, false, 2, 4096),
            copies(Some(HtoH), Some(Managed), true, 2, 600),
            copies(Some(DtoH), Some(Pageable), true, 60, 4),
            unsized_copies,
        ],
        streams: streams(),
        created: Created {
            streams: 12,
            streams_destroyed: 3,
            events: 1,
            events_destroyed: 1,
        },
        waits: vec![
            wait("cuStreamSynchronize", Some(0x7f10), 1, 90),
            wait("cuStreamSynchronize", Some(0x7f10), 2, 9),
            wait("cuStreamSynchronize", Some(0x7f10), 0, 1),
            wait("cuEventSynchronize", Some(0), 1, 20),
            wait("cuCtxSynchronize", None, 0, 2),
        ],
        hidden: vec![
            hidden(Item, Certainty::Measured, 2, 60),
            hidden(PageableAsync, Certainty::Inferred, 1, 50),
            hidden(BlockingCopy, Certainty::Measured, 1, 40),
            hidden(Free, Certainty::Inferred, 0, 5),
            hidden(Alloc, Certainty::Inferred, 0, 2),
        ],
        gpu: GpuReport {
            window_ns: 40 * SECOND,
            busy_at_most_ns: 27_700 * MS,
            idle_at_least_ns: 12_300 * MS,
            idle_gaps: 1200,
            longest_idle_ns: SECOND,
            elapsed_count: 100,
            elapsed_ns: 27 * SECOND,
            slow_submissions: 12,
            slow_submission_ns: 1200 * MS,
            slow_depth_at_most: 1024,
            ..GpuReport::default()
        },
        graphs: GraphReport {
            launches: 100,
            known_launches: 80,
            kernels: 12_000,
            copies: 160,
            memsets: 1,
            captured: 150,
        },
        ..process(1234, "python")
    }
}

fn streams() -> Vec<StreamReport> {
    let own = StreamReport {
        priority: Some(-5),
        nonblocking: Some(true),
        copied: BTreeMap::from([(CopyKind::HtoD, 1024 * MIB), (CopyKind::DtoH, 240)]),
        ..stream(0x7f10, 5000)
    };
    let of_thread = StreamReport {
        tid: Some(1240),
        context: 0,
        ..stream(2, 300)
    };
    let gone = StreamReport {
        alive: false,
        priority: Some(0),
        nonblocking: Some(false),
        ..stream(0x7f20, 20)
    };
    let default = stream(0, 1000);
    let more = (0..3).map(|number| stream(0x8000 + number, 3));
    [own, default, of_thread, gone].into_iter().chain(more).collect()
}

/// Attached late, and some of it was lost: less than bounds, and why.
fn server() -> ProcessReport {
    ProcessReport {
        origin: Origin::Late,
        copies: vec![copies(
            Some(CopyKind::HtoD),
            Some(HostMemory::Pinned),
            true,
            10,
            10 * MIB,
        )],
        streams: vec![stream(0, 7)],
        waits: vec![wait("cuCtxSynchronize", None, 0, 3)],
        gpu: GpuReport {
            window_ns: 5 * SECOND,
            busy_at_most_ns: 5 * SECOND,
            notes: vec!["work may have been given in ways that were not seen\u{1b}[2J".to_owned()],
            inferred: true,
            ..GpuReport::default()
        },
        graphs: GraphReport {
            launches: 3,
            ..GraphReport::default()
        },
        lost: WorkLoss {
            copies: 12,
            bytes: 3 * MIB,
            others: 5,
        },
        ..process(77, "ser\u{1b}[2Jver\u{9b}")
    }
}

fn frame(function: &str, line: u32) -> Frame {
    Frame {
        function: function.to_owned(),
        module: None,
        offset: None,
        file: Some("/home/me/train.py".to_owned()),
        line: Some(line),
        language: Language::Python,
        inlined: false,
    }
}

fn summary(work: Vec<ProcessReport>) -> Summary {
    let memory = Report {
        stacks: [
            (1, vec![frame("forward", 42), frame("<module>", 80)]),
            (2, vec![frame("lo\u{1b}[2Jss", 50)]),
        ]
        .into(),
        ..Report::default()
    };
    Summary {
        work,
        memory,
        ..Summary::default()
    }
}

/// Without what has nothing to do with it.
fn shown(work: Vec<ProcessReport>) -> String {
    let text = to_text(&summary(work));
    let body = text.split_once("──\n").expect("a title").1;
    body.split_once("\nlost: ").expect("an end").0.to_owned()
}

#[test]
fn work_of_a_process_seen_from_its_start() {
    insta::assert_snapshot!(shown(vec![training()]));
}

#[test]
fn work_of_several_processes_one_attached_late() {
    insta::assert_snapshot!(shown(vec![training(), server()]));
}

#[test]
fn work_as_json() {
    let json = to_json(&summary(vec![training(), server()]))["work"].take();
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).expect("JSON"));
}

#[test]
fn the_document_explains_every_field_of_work() {
    let document = include_str!("../../docs/output.md");
    let lacks = |key: &str| assert!(document.contains(&format!("`{key}`")), "docs/output.md lacks `{key}`");
    fn keys(value: &Value, found: &mut dyn FnMut(&str)) {
        match value {
            Value::Object(object) => object.iter().for_each(|(key, value)| {
                found(key);
                keys(value, found);
            }),
            Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }
    keys(&to_json(&summary(vec![training(), server()]))["work"], &mut |key| {
        lacks(key)
    });
}

#[test]
fn nothing_is_said_of_a_process_that_gave_a_device_nothing_to_do() {
    assert_eq!(shown(vec![process(5, "idle")]), "");
    assert_eq!(shown(Vec::new()), "");
    assert_eq!(to_json(&summary(Vec::new()))["work"], serde_json::json!([]));
}

#[test]
fn copies_are_told_once() {
    let copies = |layer: &str| Copies {
        layer: layer.to_owned(),
        direction: Some(CopyKind::HtoD),
        calls: 9,
        bytes: 900,
    };
    let mut all = summary(vec![training()]);
    all.copies = vec![copies("driver"), copies("mylib")];
    assert!(!to_text(&all).contains("copies by direction"));
    let own = gpuscope::model::summary::Function {
        layer: Layer::Custom,
        ..super::summary::function(Layer::Custom, "mylib", "my_copy", gpuscope::catalog::Class::Copy, 9)
    };
    all.functions = vec![own];
    let text = to_text(&all);
    assert!(
        text.contains("HtoD (mylib)") && !text.contains("HtoD (driver)"),
        "{text}"
    );
    all.work.clear();
    assert!(to_text(&all).contains("HtoD (driver)"));
    assert_eq!(to_json(&all)["copies"].as_array().map(Vec::len), Some(2));
}

#[test]
fn nothing_of_work_drives_a_terminal() {
    let text = shown(vec![training(), server()]);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text}");
    let json = to_json_line(&summary(vec![training(), server()]));
    assert!(!json.contains(char::is_control), "{json}");
    let back: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(back["work"][1]["comm"], "ser\u{1b}[2Jver\u{9b}");
}

#[test]
fn many_processes_waits_and_streams_are_cut_and_say_so() {
    let many = (0..30).map(|pid| ProcessReport {
        waits: (0..9)
            .map(|stream| wait("cuStreamSynchronize", Some(stream), 0, 1))
            .collect(),
        ..ProcessReport { pid, ..training() }
    });
    let text = shown(many.collect());
    for words in [
        "22 more processes (--summary json has all)",
        " in 262 more (--summary json has all)",
        "  … 2 more streams, 6 submissions (--summary json has all)",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// Every number of a report is this one or another.
fn extreme(numbers: &[u64; 4]) -> ProcessReport {
    let [a, b, c, d] = *numbers;
    let certainty = [Certainty::Measured, Certainty::Bound, Certainty::Inferred][(a % 3) as usize];
    let copy = CopyReport {
        bytes: a,
        call_ns: b,
        count: c,
        unsized_count: d,
        sizes: [a; SIZE_BUCKETS],
        bandwidth: Some(Bandwidth {
            bytes: a,
            ns: b,
            certainty,
        }),
        ..copies(None, None, a & 1 == 0, 1, 1)
    };
    let one_stream = StreamReport {
        submissions: a,
        copied: BTreeMap::from([(CopyKind::HtoD, b), (CopyKind::DtoH, c)]),
        busy_at_most_ns: c,
        depth_at_most: d,
        blocked_ns: a,
        ..stream(b, 1)
    };
    let one_wait = WaitReport {
        count: b,
        total_ns: a,
        max_ns: c,
        ..wait("f", Some(d), a, 1)
    };
    ProcessReport {
        copies: vec![copy.clone(), copy],
        streams: vec![one_stream; 7],
        created: Created {
            streams: a,
            streams_destroyed: b,
            events: c,
            events_destroyed: d,
        },
        waits: vec![one_wait; 3],
        hidden: vec![
            HiddenWait {
                count: b,
                total_ns: a,
                ..hidden(HiddenKind::Item, certainty, c, 1)
            };
            2
        ],
        gpu: GpuReport {
            window_ns: a,
            busy_at_most_ns: b,
            idle_at_least_ns: c,
            idle_gaps: d,
            longest_idle_ns: a,
            elapsed_count: b,
            elapsed_ns: c,
            slow_submissions: d,
            slow_submission_ns: a,
            slow_depth_at_most: b,
            ..GpuReport::default()
        },
        graphs: GraphReport {
            launches: a,
            known_launches: b,
            kernels: c,
            copies: d,
            memsets: a,
            captured: b,
        },
        lost: WorkLoss {
            copies: a,
            bytes: b,
            others: c,
        },
        ..process(1, "x")
    }
}

/// Numbers that are not finite become null.
fn numbers_are_numbers(value: &Value, key: &str) {
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| numbers_are_numbers(value, key)),
        Value::Array(values) => values.iter().for_each(|value| numbers_are_numbers(value, key)),
        _ if key.ends_with("_us") || key == "bytes_per_second" => {
            assert!(value.as_f64().is_some_and(f64::is_finite), "{key}: {value}");
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn any_numbers_are_finite_in_json_and_written_as_text(
        numbers in prop::array::uniform4(prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>()])
    ) {
        let all = summary(vec![extreme(&numbers), extreme(&numbers)]);
        let json = to_json(&all);
        prop_assert_eq!(json["work"].as_array().map(Vec::len), Some(2));
        numbers_are_numbers(&json["work"], "");
        prop_assert!(!to_text(&all).contains("NaN"));
    }
}
