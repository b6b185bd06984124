//! Time by call path, of rows as a recording has them.

use super::tree::Sum;
use super::{Paths, Tree, Weight};
use crate::catalog::Class;
use crate::model::outside::{BETWEEN, LOOK_NS, SAMPLE};
use crate::model::snapshot::Snapshot;
use crate::record::{Kind, Record, Taker};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

const FORWARD: &str = r#"[{"function":"cuLaunchKernel","module":"libcuda.so.1","language":"native"},
    {"function":"forward","file":"/home/me/train.py","line":42,"language":"python"},
    {"function":"<module>","file":"/home/me/train.py","line":99,"language":"python"}]"#;
const LOSS: &str = r#"[{"function":"loss_item","file":"/home/me/train.py","line":50,"language":"python"},
    {"function":"<module>","file":"/home/me/train.py","line":99,"language":"python"}]"#;

fn call(layer: &'static str, class: Class, at: i64, stack: Option<&'static str>) -> Record<'static> {
    Record {
        ns: Some(5),
        tid: 8,
        comm: "python",
        layer,
        name: "cuCall",
        class,
        stack,
        blocking: class == Class::Sync,
        ..Record::new(Kind::Call, at, 7)
    }
}

/// An activity of 10 ns because of the call of thread 8 at that time.
fn ran(name: &'static str, call_at: Option<i64>) -> Record<'static> {
    let call = call_at.map_or(String::new(), |at| format!("\"call_tid\":8,\"call_ts_ns\":{at},"));
    let args = format!("{{\"activity\":\"kernel\",\"device\":1,{call}\"match\":\"ordered\"}}");
    Record {
        ns: Some(10),
        tid: 0,
        comm: "python",
        layer: "gpu",
        name,
        args: Some(args.leak()),
        ..Record::new(Kind::Gpu, 1000, 7)
    }
}

fn taken(rows: &[Record<'_>]) -> Paths {
    let mut paths = Paths::default();
    rows.iter().for_each(|row| paths.take(row));
    paths
}

/// As collapsed stacks.
fn lines(tree: &Tree) -> Vec<String> {
    let line = |end: &usize| {
        let names = tree.path(*end).into_iter().map(|node| tree.frame(node).shown.clone());
        format!("{} {}", names.collect::<Vec<_>>().join(";"), tree.nodes[*end].own.ns)
    };
    tree.ends().iter().map(line).collect()
}

#[test]
fn time_of_a_device_is_that_of_the_path_of_its_call() {
    let paths = taken(&[
        call("driver", Class::Launch, 100, Some(FORWARD)),
        ran("gemm", Some(100)),
        ran("gemm", Some(100)),
        ran("HtoD", None),
    ]);
    let tree = paths.tree(Weight::Gpu, None);
    assert_eq!(
        lines(&tree),
        [
            "python 7, device 1;threads named python;train.py:99 <module>;train.py:42 forward;cuLaunchKernel (libcuda.so.1);gemm 20",
            "python 7, device 1;(no call path);HtoD 10"
        ]
    );
    assert_eq!(tree.total(), Sum { ns: 30, count: 3 });
    assert!(tree.has_paths());
}

#[test]
fn an_activity_may_come_before_its_call_and_name_the_call_around_it() {
    let driver = Record {
        since_caller: Some(20),
        ..call("driver", Class::Launch, 120, Some(FORWARD))
    };
    let tree = taken(&[
        ran("gemm", Some(100)),
        call("runtime", Class::Launch, 100, None),
        driver,
    ])
    .tree(Weight::Gpu, None);
    assert_eq!((lines(&tree).len(), tree.total().ns), (1, 10));
    assert!(lines(&tree)[0].contains("forward"), "{:?}", lines(&tree));
}

#[test]
fn what_has_no_call_or_no_stack_has_no_call_path() {
    let paths = taken(&[
        call("driver", Class::Launch, 100, None),
        ran("gemm", Some(100)),
        ran("gemm", Some(7)),
    ]);
    let tree = paths.tree(Weight::Gpu, None);
    assert_eq!(lines(&tree), ["python 7, device 1;(no call path);gemm 20"]);
    assert!(!tree.has_paths());
}

/// One call that has a stack, whose copy took no time, does not make a graph of all the others.
#[test]
fn a_path_to_no_time_is_none() {
    let short = Record {
        ns: Some(0),
        ..ran("DtoH", Some(200))
    };
    let paths = taken(&[
        call("driver", Class::Launch, 100, None),
        ran("gemm", Some(100)),
        call("driver", Class::Copy, 200, Some(FORWARD)),
        short,
    ]);
    let tree = paths.tree(Weight::Gpu, None);
    assert_eq!(tree.total(), Sum { ns: 10, count: 2 });
    assert!(!tree.has_paths());
}

#[test]
fn waits_are_those_of_one_layer_with_copies_that_block() {
    let copy = Record {
        blocking: true,
        ..call("driver", Class::Copy, 60, None)
    };
    let failed = Record {
        failed: true,
        ..call("driver", Class::Sync, 70, Some(LOSS))
    };
    let paths = taken(&[
        call("runtime", Class::Sync, 40, Some(LOSS)),
        call("driver", Class::Sync, 41, Some(LOSS)),
        copy,
        call("driver", Class::Copy, 65, Some(LOSS)),
        failed,
    ]);
    assert_eq!(
        lines(&paths.tree(Weight::Wait, None)),
        [
            "process 7;threads named python;train.py:99 <module>;train.py:50 loss_item;cuCall 5",
            "process 7;(no call path);cuCall 5"
        ]
    );
}

#[test]
fn what_totals_have_beyond_rows_is_said() {
    let exact = json!({
        "gpu": {"devices": [{"pid": 7, "device": 1, "kernels": 3, "kernel_us": 0.05, "memsets": 1, "memset_us": 0.002}]},
        "work": [{"pid": 7, "comm": "python", "waits": [{"function": "cuCall", "count": 2, "total_us": 0.006}],
            "copies": [{"blocking": true, "count": 1, "call_us": 0.003}, {"blocking": false, "count": 1, "call_us": 9.0}]}],
    });
    let exact = Snapshot::read(&exact).expect("totals");
    let paths = taken(&[ran("gemm", None), call("driver", Class::Sync, 41, Some(LOSS))]);
    let gpu = paths.tree(Weight::Gpu, Some(&exact));
    assert_eq!(gpu.total(), Sum { ns: 52, count: 4 });
    assert_eq!(lines(&gpu)[0], "python 7, device 1;(no call path);(without rows) 42");
    let waits = paths.tree(Weight::Wait, Some(&exact));
    assert_eq!(waits.total(), Sum { ns: 9, count: 3 });
    assert_eq!(lines(&waits)[1], "python 7;(no call path);(without rows) 4");
}

proptest! {
    #[test]
    fn no_time_is_left_out_whatever_comes_in_whichever_order(
        rows in vec((0..4u8, 0..6i64, any::<bool>(), 0..1_000_000_000u64), 0..80)
    ) {
        let mut paths = Paths::default();
        let (mut gpu, mut waits) = (0, [0, 0]);
        for (what, at, stack, ns) in rows {
            let stack = stack.then_some(if at % 2 == 0 { FORWARD } else { LOSS });
            let row = match what {
                0 => call("driver", Class::Launch, at, stack),
                1 => ran("gemm", Some(at).filter(|at| *at > 0)),
                2 => call("driver", Class::Sync, at, stack),
                _ => call("runtime", Class::Sync, at, stack),
            };
            match what {
                0 => {}
                1 => gpu += ns,
                layer => waits[usize::from(layer) - 2] += ns,
            }
            paths.take(&Record { ns: Some(ns), ..row });
        }
        prop_assert_eq!(paths.tree(Weight::Gpu, None).total().ns, gpu);
        let waited = paths.tree(Weight::Wait, None).total().ns;
        prop_assert!(waits.contains(&waited), "{} of {:?}", waited, waits);
    }
}

#[test]
fn of_a_stack_that_is_too_deep_the_innermost_frames_are_kept() {
    let frames: Vec<_> = (0..600)
        .map(|number| json!({"function": format!("f{number}"), "language": "python"}))
        .collect();
    let stack = json!(frames).to_string();
    let wait = Record {
        stack: Some(&stack),
        ..call("driver", Class::Sync, 40, None)
    };
    let line = lines(&taken(&[wait]).tree(Weight::Wait, None)).remove(0);
    assert!(
        line.starts_with("process 7;threads named python;(outer frames);f511;f510;"),
        "{line}"
    );
    assert!(line.ends_with(";f1;f0;cuCall 5"), "{line}");
}

fn sample(name: &'static str, ns: u64, stack: Option<&'static str>) -> Record<'static> {
    Record {
        ns: Some(ns),
        tid: 8,
        comm: "python",
        name,
        stack,
        ..Record::new(Kind::Sample, 100, 7)
    }
}

#[test]
fn time_outside_cuda_is_of_samples_for_what_each_stands_for() {
    let held = Record {
        bytes: Some(4096),
        ns: None,
        ..sample("memory.held", 0, None)
    };
    let paths = taken(&[
        sample(SAMPLE, 5_000_000, Some(LOSS)),
        sample(BETWEEN, 30_000, Some(LOSS)),
        sample(BETWEEN, 10_000, Some(LOSS)),
        sample(SAMPLE, 1_000, None),
        held,
    ]);
    let tree = paths.tree(Weight::Host, None);
    let there = 5_000_000 + 2 * LOOK_NS;
    assert_eq!(
        lines(&tree),
        [
            format!("process 7;threads named python;train.py:99 <module>;train.py:50 loss_item {there}"),
            "process 7;(no call path) 1000".to_owned()
        ]
    );
    let all = Sum {
        ns: there + 1_000,
        count: 4,
    };
    assert_eq!(tree.total(), all);
    assert!(!tree.lacks_paths() && tree.has_paths());
}
