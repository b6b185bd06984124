//! The summary at the end of a run.

use gpuscope::catalog::{Class, CopyKind, Layer};
use gpuscope::driver::xid::Xid;
use gpuscope::elf::Cost as Place;
use gpuscope::frame::{Frame, Language};
use gpuscope::model::cost::{Cost, Hits, Records, Standstill};
use gpuscope::model::kernel_name::KernelName;
use gpuscope::model::launches::{Kernel, Shape, Streams};
use gpuscope::model::open::OpenCall;
use gpuscope::model::outside::Outside;
use gpuscope::model::step::Told;
use gpuscope::model::summary::{Chosen, Copies, Failure, Function, Summary, UnderWay};
use gpuscope::model::totals::{Spent, Totals};
use gpuscope::model::xid::{Faults, Report, Source, Tally};
use gpuscope::sink::summary::{to_json, to_text, to_text_within};
use std::sync::Arc;

pub fn function(layer: Layer, label: &str, name: &str, class: Class, calls: u64) -> Function {
    Function {
        layer,
        label: label.to_owned(),
        name: name.to_owned(),
        class,
        calls,
        errors: 0,
        total_ns: calls * 2_600,
        max_ns: 63_300_000,
        bytes: 0,
        p50_ns: 2_560,
        p99_ns: 4_096,
        unfinished: 0,
        lost: 0,
        without_args: 0,
        timed: true,
        driver: None,
        standstill_ns: 0,
    }
}

fn frame(function: &str) -> Frame {
    Frame {
        function: function.to_owned(),
        module: Some("app".to_owned()),
        offset: Some(0x1234),
        file: None,
        line: None,
        language: Language::Native,
        inlined: false,
    }
}

fn outside() -> Outside {
    let mut outside = Outside::default();
    outside.add(1234, Some("train.py:10 load_batch"), 970_000_000);
    outside.add(1234, None, 30_000_000);
    outside
}

fn open() -> Vec<OpenCall> {
    let call = |function: &str, ns, ended| OpenCall {
        layer: "driver".to_owned(),
        function: function.to_owned(),
        pid: 1234,
        tid: 1240,
        comm: "hostile\u{1b}[2J".to_owned(),
        ns,
        ended,
        stack: None,
    };
    vec![
        OpenCall {
            stack: Some(vec![frame("poll"), frame("wait\u{1b}[2J")]),
            ..call("cuCtxSynchronize", 7_200_000_000, false)
        },
        call("cuStreamSynchronize", 1_500_000_000, true),
    ]
}

fn cost() -> Cost {
    let hits = |place, returns, count, ns| Hits {
        place,
        returns,
        count,
        ns,
    };
    Cost {
        hits: vec![
            hits(Place::Emulated, true, 1_234_000, 612.5),
            hits(Place::SingleStepped, true, 20, 9_000.0),
            hits(Place::Emulated, false, 583, 301.25),
        ],
        records: Records {
            count: 1_234_020,
            ns: 200.0,
        },
        standstill: Standstill {
            times: 2,
            ns: 6_100_000,
        },
        waiting: Standstill::default(),
        busiest_share: 0.75,
        several_threads: true,
        unpriced: 0,
        cpu_seconds: 1.25,
        rss_bytes: 30 << 20,
    }
}

fn kernel(symbol: &str, launches: u64, shapes: &[([u32; 3], [u32; 3], u32, u64)]) -> Kernel {
    let shape = |&(grid, block, shared_bytes, count): &([u32; 3], [u32; 3], u32, u64)| {
        (
            Shape {
                grid,
                block,
                shared_bytes,
            },
            count,
        )
    };
    Kernel {
        place: None,
        stream: Streams::One(1, 0x7f20),
        name: KernelName::read(symbol.as_bytes(), false).map(Arc::new),
        reason: None,
        launches,
        failed: 3,
        threads: launches * 32_768,
        total_ns: launches * 2_600,
        max_ns: 63_300_000,
        p50_ns: 2_560,
        p99_ns: 4_096,
        timed: true,
        shapes: shapes.iter().map(shape).collect(),
        shape_count: shapes.len(),
        processes: 2,
        captured: 0,
        in_graphs: 0,
    }
}

fn kernels() -> Vec<Kernel> {
    let gemm = kernel(
        "_Z4gemmIfLi128EEvPKT_",
        1_200_000,
        &[
            ([128, 2, 1], [256, 1, 1], 49_152, 1_000_000),
            ([1, 1, 1], [32, 8, 2], 0, 200_000),
        ],
    );
    let triton = Kernel {
        captured: 3,
        in_graphs: 12_000,
        ..kernel("triton_per_fused_add_0", 7, &[([8, 1, 1], [128, 1, 1], 0, 7)])
    };
    let unknown = Kernel {
        name: None,
        reason: Some("the handle could not be read"),
        timed: false,
        failed: 0,
        ..kernel("?", 2, &[])
    };
    [gemm, triton, unknown].into_iter().collect()
}

fn summary() -> Summary {
    let runtime = |name, class, calls| function(Layer::Runtime, "runtime", name, class, calls);
    let launch = Function {
        errors: 3,
        lost: 17,
        unfinished: 1,
        standstill_ns: 6_100_000,
        ..runtime("cudaLaunchKernel", Class::Launch, 1_234_567)
    };
    let copy = Function {
        bytes: 3 << 30,
        ..runtime("cudaMemcpy", Class::Copy, 12)
    };
    let entry_only = Function {
        timed: false,
        max_ns: 0,
        ..function(Layer::Custom, "mylib", "my_raw", Class::Other, 5)
    };
    let many = (0..30).map(|index| {
        function(
            Layer::Driver,
            "driver",
            &format!("cuF{index}"),
            Class::Query,
            100 - index,
        )
    });
    Summary {
        driver: None,
        gpu: None,
        aggregates: Vec::new(),
        steps: Told {
            why_none: Some("no launch was seen".to_owned()),
            ..Told::default()
        },
        findings: gpuscope::model::finding::Diagnosis::default(),
        kernels: kernels(),
        full_names: false,
        seconds: 12.5,
        functions: [launch, copy].into_iter().chain(many).chain([entry_only]).collect(),
        failures: vec![Failure {
            function: "cudaLaunchKernel".to_owned(),
            error: "cudaErrorInvalidConfiguration".to_owned(),
            code: 9,
            count: 3,
        }],
        copies: vec![
            Copies {
                layer: "runtime".to_owned(),
                direction: Some(CopyKind::HtoD),
                calls: 10,
                bytes: 3 << 30,
            },
            Copies {
                layer: "driver".to_owned(),
                direction: None,
                calls: 2,
                bytes: 4096,
            },
        ],
        engine: Some(Chosen {
            engine: "kernel",
            why: "bad\u{1b}[2J is linked statically".to_owned(),
        }),
        lost_events: 17,
        malformed: 0,
        processes: 2,
        unseen: vec!["/tmp/x\u{1b}[2J\nb: not usable: 32-bit".to_owned()],
        counted_only: vec!["cudaGetDevice".to_owned(), "hostile\u{1b}[2J".to_owned()],
        attached: vec!["/lib/libcuda.so.1 (712 functions)".to_owned()],
        cost: cost(),
        open: open(),
        under_way: vec![UnderWay {
            layer: "runtime".to_owned(),
            at_begin: 2,
            at_end: 3,
        }],
        outside: Some(outside()),
        totals: Totals {
            ioctls: Some(Spent {
                calls: 1_204,
                ns: 12_300_000,
            }),
            ..Totals::default()
        },
        tier: "uprobe.session".to_owned(),
        memory: gpuscope::model::memory::Report::default(),
        work: Vec::new(),
        xids: xids(),
        more_xids: 3,
    }
}

/// What every kind of report looks like; names come from programs.
pub fn reports() -> Vec<Report> {
    let lines = [
        "NVRM: Xid (PCI:0000:17:00): 31, pid=7, name=tr\u{1b}[2Jain, Ch 00000008, intr 10000000",
        "NVRM: Xid (PCI:0000:65:00 GPU-I:05 GPU-CI:00): 45, pid=8, name=b, Ch 10 caused by previous Xid 31",
        "NVRM: Xid (PCI:0000:17:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:17:00): 4242, a code\u{1b}[2J of tomorrow",
        "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32",
    ];
    let report = |(index, line): (usize, &str)| Report {
        traced: index == 0,
        ..Report::new(
            Xid::of_record(line).expect("an Xid"),
            2_000_000_000 + index as u64,
            [Source::Both, Source::Log][index % 2],
        )
    };
    lines.into_iter().enumerate().map(report).collect()
}

fn xids() -> Vec<Faults> {
    let mut tally = Tally::default();
    let all = reports();
    all.iter().chain(&all[..1]).for_each(|report| tally.add(report));
    tally.faults()
}

#[test]
fn summary_as_text() {
    insta::assert_snapshot!(to_text(&summary()));
}

#[test]
fn summary_as_text_without_calls() {
    insta::assert_snapshot!(to_text(&Summary::default()));
}

#[test]
fn on_a_terminal_of_80_columns_no_line_is_longer_and_nothing_is_missing() {
    let (whole, narrow) = (to_text(&summary()), to_text_within(&summary(), Some(80)));
    assert!(whole.lines().any(|line| line.chars().count() > 80));
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&whole), words(&narrow));
}

#[test]
fn summary_as_json() {
    let json = serde_json::to_string_pretty(&to_json(&summary())).expect("JSON");
    insta::assert_snapshot!(json);
}

#[test]
fn nothing_in_the_summary_drives_a_terminal() {
    assert!(!to_text(&summary()).contains(|c: char| c.is_control() && c != '\n'));
}
