//! The summary at the end of a run.

use gpuscope::catalog::{Class, CopyKind, Layer};
use gpuscope::model::kernel_name::KernelName;
use gpuscope::model::launches::{Kernel, Shape, Streams};
use gpuscope::model::summary::{Copies, Cost, Failure, Function, Summary};
use gpuscope::sink::summary::{to_json, to_text};
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
        lost_events: 17,
        malformed: 0,
        processes: 2,
        unseen: vec!["/tmp/x\u{1b}[2J\nb: not usable: 32-bit".to_owned()],
        counted_only: vec!["cudaGetDevice".to_owned(), "hostile\u{1b}[2J".to_owned()],
        attached: vec!["/lib/libcuda.so.1 (712 functions)".to_owned()],
        cost: Cost {
            calls: 1_234_000,
            entries: 583,
            ns_per_call: 612.5,
            ns_per_entry: 301.25,
            cpu_seconds: 1.25,
            rss_bytes: 30 << 20,
        },
        tier: "uprobe.session".to_owned(),
        memory: gpuscope::model::memory::Report::default(),
        work: Vec::new(),
    }
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
fn summary_as_json() {
    let json = serde_json::to_string_pretty(&to_json(&summary())).expect("JSON");
    insta::assert_snapshot!(json);
}

#[test]
fn nothing_in_the_summary_drives_a_terminal() {
    assert!(!to_text(&summary()).contains(|c: char| c.is_control() && c != '\n'));
}
