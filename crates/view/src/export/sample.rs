//! A made-up trace with a row of each type, for snapshots.

use crate::catalog::{Class, CopyKind, HostMemory};
use crate::clock::Clock;
use crate::record::{Encoder, Ending, Kind, Meta, Record};

pub(crate) fn meta() -> Meta {
    Meta {
        clock: Clock {
            start_monotonic_ns: 1_000_000_000,
            start_unix_ns: 1_700_000_000_000_000_000,
        },
        command: vec!["python".to_owned(), "train \"x\".py".to_owned()],
        tier: "uprobe.session".to_owned(),
        host: "node-7".to_owned(),
        tool: "0.1.0".to_owned(),
    }
}

fn call(at: i64, ns: u64, name: &'static str, class: Class) -> Record<'static> {
    Record {
        ns: Some(ns),
        tid: 8,
        comm: "python",
        layer: "runtime",
        name,
        class,
        result: Some(0),
        error: Some("cudaSuccess"),
        args: Some("{}"),
        ..Record::new(Kind::Call, at, 7)
    }
}

fn driver(since: u64, event: Record<'static>) -> Record<'static> {
    Record {
        layer: "driver",
        depth: 1,
        since_caller: Some(since),
        error: Some("CUDA_SUCCESS"),
        ..event
    }
}

fn of_process(kind: Kind, at: i64, name: &'static str) -> Record<'static> {
    Record {
        comm: "python",
        name,
        ..Record::new(kind, at, 7)
    }
}

fn sampled(at: i64, name: &'static str, value: u64) -> Record<'static> {
    Record {
        bytes: Some(value),
        ..of_process(Kind::Sample, at, name)
    }
}

/// In order of entry, but for a wait that comes late.
pub(crate) fn events() -> Vec<Record<'static>> {
    let alloc = call(20_300, 6_000, "cuMemAlloc_v2", Class::Alloc);
    let launch = call(40_200, 2_000, "cuLaunchKernel", Class::Launch);
    let copy = call(60_000, 9_000, "cuMemcpyHtoD_v2", Class::Copy);
    let wait = call(100_500, 250_000_000, "cuStreamSynchronize", Class::Sync);
    vec![
        Record {
            args: Some("{\"parent_pid\":1}"),
            ..of_process(Kind::Process, -5_000, "fork")
        },
        of_process(Kind::Process, 5_000, "exec"),
        Record {
            args: Some("{\"devPtr\":\"0x7f0000000000\",\"size\":1073741824}"),
            ..call(20_000, 7_001, "cudaMalloc", Class::Alloc)
        },
        Record {
            bytes: Some(1 << 30),
            address: Some(0x7f00_0000_0000),
            held: Some(1 << 30),
            stack: Some("[{\"function\":\"main\",\"file\":\"train.py\",\"line\":3}]"),
            ..driver(300, alloc)
        },
        Record {
            kernel: Some("gemm<float,128>"),
            ..call(40_000, 3_000, "cudaLaunchKernel", Class::Launch)
        },
        Record {
            kernel: Some("gemm<float,128>"),
            stream: Some(0x5500),
            ..driver(200, launch)
        },
        Record {
            layer: "driver",
            bytes: Some(4096),
            direction: Some(CopyKind::HtoD),
            host: Some(HostMemory::Pageable),
            blocking: true,
            stream: Some(0),
            failed: true,
            result: Some(700),
            error: Some("CUDA_ERROR_ILLEGAL_ADDRESS"),
            ..copy
        },
        Record {
            layer: "kernel",
            depth: 1,
            since_caller: Some(1_000),
            error: None,
            args: Some("{\"device\":\"nvidiactl\",\"args\":{\"size\":64},\"ret\":0}"),
            kind: Kind::Kernel,
            ..call(61_000, 500, "NV_ESC_RM_ALLOC", Class::Ioctl)
        },
        sampled(80_000, "copy.bytes", 4096),
        sampled(80_000, "gpu.depth_at_most", 3),
        Record {
            name: "nvml.power_mw",
            bytes: Some(70_000),
            ..Record::new(Kind::Sample, 80_000, 0)
        },
        Record {
            count: 3500,
            layer: "runtime",
            ns: Some(700_000),
            ..of_process(Kind::Count, 90_000, "cudaGetDevice")
        },
        driver(500, wait),
        Record {
            ns: None,
            result: None,
            error: None,
            ..call(100_000, 0, "cudaEntryOnly", Class::Other)
        },
        Record {
            count: 12,
            ns: Some(1_000_000),
            name: "cudaMemcpy\u{1b}[2J",
            tid: 0,
            ..Record::new(Kind::Lost, 260_000_000, 0)
        },
        Record {
            ns: Some(5_000_000),
            ..of_process(Kind::Idle, 270_000_000, "")
        },
        sampled(280_000_000, "copy.bytes", 8192),
        Record {
            name: "Xid",
            layer: "kernel",
            tid: 0,
            args: Some("{\"name\":\"Xid 31\",\"code\":31,\"pid\":7}"),
            ..Record::new(Kind::Xid, 285_000_000, 0)
        },
        Record {
            ns: Some(30_000),
            tid: 0,
            layer: "gpu",
            stream: Some(13),
            args: Some(
                r#"{"activity":"kernel","device":1,"context":1,"call_tid":8,"call_ts_ns":40000,"match":"ordered"}"#,
            ),
            ..of_process(Kind::Gpu, 45_000, "gemm<float,128>")
        },
        Record {
            ns: Some(21_000),
            tid: 8,
            ..of_process(Kind::Idle, 24_000, "memory")
        },
        Record {
            ns: Some(61_000),
            tid: 8,
            args: Some(r#"{"devices":2}"#),
            ..of_process(Kind::Idle, 80_000, "blocked")
        },
        Record {
            ns: Some(70_000),
            tid: 8,
            args: Some(r#"{"device":1}"#),
            ..of_process(Kind::DeviceIdle, 75_000, "blocked")
        },
        Record {
            ns: Some(60_000),
            tid: 8,
            layer: "nvtx",
            args: Some("{\"domain\":\"train\",\"color\":\"#ff76b900\"}"),
            ..of_process(Kind::Range, 15_000, "step 1")
        },
        Record {
            ns: Some(15_000),
            tid: 8,
            layer: "nvtx",
            depth: 1,
            args: Some(r#"{"domain":"train"}"#),
            ..of_process(Kind::Range, 30_000, "forward \u{1b}[2J")
        },
        Record {
            tid: 8,
            layer: "nvtx",
            args: Some(r#"{"domain":""}"#),
            ..of_process(Kind::Mark, 50_000, "loss is NaN")
        },
        of_process(Kind::Process, 290_000_000, "exit"),
        Record {
            kind: Kind::Open,
            ns: Some(5_000_000),
            result: None,
            error: None,
            args: Some(r#"{"stream":"0xd"}"#),
            ..call(284_000_000, 0, "cudaStreamSynchronize", Class::Sync)
        },
    ]
}

/// The whole trace as `encoder` writes it.
pub(crate) fn bytes(encoder: &mut dyn Encoder) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.start(&meta(), &mut out);
    for event in events() {
        match event.kind {
            Kind::Open => encoder.take_unreturned(&event, &mut out),
            _ => encoder.take(&event, &mut out),
        }
    }
    let ending = Ending {
        summary: Some("{\"type\":\"summary\",\"layers\":{}}"),
        cut: None,
    };
    encoder.finish(&ending, &mut out);
    out
}

/// As text.
pub(crate) fn written(encoder: &mut dyn Encoder) -> String {
    String::from_utf8(bytes(encoder)).expect("UTF-8")
}
