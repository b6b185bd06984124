//! A recording of a training loop that never was: what it does is known to the last call.

use gpuscope::catalog::{Class, CopyKind, HostMemory};
use gpuscope::clock::Clock;
use gpuscope::record::{Kind, Meta, Record};
use gpuscope::trace::Recorder;

/// Kernels of one step.
const KERNELS: [&str; 8] = [
    "gemm<float,128>",
    "vectorized_elementwise_kernel<4,CUDAFunctor_add<float>>",
    "reduce_kernel<512,1,ReduceOp<float>>",
    "softmax_warp_forward",
    "layer_norm_kernel",
    "triton_per_fused_add_0",
    "flash_fwd_kernel<128>",
    "index_select",
];
/// Bytes of one batch.
pub const BATCH: u64 = 256 << 20;
const PYTHON: &str = r#"[{"function":"cuStreamSynchronize","module":"libcuda.so.1","offset":4660,"file":null,"line":null,"language":"native","inlined":false},{"function":"loss_item","module":null,"offset":null,"file":"/home/me/train.py","line":50,"language":"python","inlined":false},{"function":"<module>","module":null,"offset":null,"file":"/home/me/train.py","line":80,"language":"python","inlined":false}]"#;
const PYTHON_ALLOC: &str = r#"[{"function":"cuMemAlloc_v2","module":"libcuda.so.1","offset":4660,"file":null,"line":null,"language":"native","inlined":false},{"function":"make_batch","module":null,"offset":null,"file":"/home/me/train.py","line":23,"language":"python","inlined":false},{"function":"<module>","module":null,"offset":null,"file":"/home/me/train.py","line":80,"language":"python","inlined":false}]"#;

/// What describes it.
pub fn meta() -> Meta {
    Meta {
        clock: Clock {
            start_monotonic_ns: 1_000_000_000,
            start_unix_ns: 1_795_336_897_000_000_000,
        },
        command: ["python", "train.py", "--epochs", "3"].map(str::to_owned).to_vec(),
        tier: "uprobe.session".to_owned(),
        host: "node-7".to_owned(),
        tool: "0.1.0".to_owned(),
    }
}

/// Where rows go.
pub struct Loop<'a> {
    recorder: Recorder,
    out: &'a mut Vec<u8>,
    pub rows: u64,
    /// Calls have call stacks.
    pub stacks: bool,
    now: i64,
}

const PID: u32 = 4711;

impl<'a> Loop<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Loop<'a> {
        Loop {
            recorder: Recorder::new(&meta()).expect("a recorder"),
            out,
            rows: 0,
            stacks: true,
            now: 0,
        }
    }

    /// Hands what was recorded so far on.
    pub fn pour(&mut self, to: &mut dyn std::io::Write) -> std::io::Result<()> {
        to.write_all(self.out)?;
        self.out.clear();
        Ok(())
    }

    /// One row.
    pub fn push(&mut self, event: &Record<'_>) {
        self.rows += 1;
        self.recorder.push(event, self.out);
    }

    /// A call of the runtime with the driver's call in it; they end so many ns later.
    fn call<'e>(&mut self, names: (&'e str, &'e str), class: Class, ns: u64, with: impl Fn(&mut Record<'e>)) {
        let outer: Record<'e> = Record {
            ns: Some(ns),
            tid: PID,
            comm: "python",
            layer: "runtime",
            name: names.0,
            class,
            result: Some(0),
            error: Some("cudaSuccess"),
            args: Some("{}"),
            ..Record::new(Kind::Call, self.now, PID)
        };
        let mut inner = Record {
            ns: Some(ns - ns / 4),
            layer: "driver",
            name: names.1,
            depth: 1,
            since_caller: Some(ns / 8),
            error: Some("CUDA_SUCCESS"),
            at: self.now + (ns / 8) as i64,
            ..outer
        };
        let mut outer = outer;
        with(&mut outer);
        with(&mut inner);
        (outer.held, outer.address) = (None, None);
        outer.kernel = None;
        if !self.stacks {
            (outer.stack, inner.stack) = (None, None);
        }
        self.push(&outer);
        self.push(&inner);
        self.now += ns as i64;
    }

    /// One step: a batch is allocated and copied, kernels are launched, the loss is asked for, and the batch is freed.
    /// With `churn` off the batch is kept. 4 rows more than twice the launches, 8 without churn.
    pub fn step(&mut self, number: u64, launches: u64, churn: bool) {
        if churn {
            self.call(("cudaMalloc", "cuMemAlloc_v2"), Class::Alloc, 900_000, |event| {
                event.bytes = Some(BATCH);
                event.address = Some(0x7f00_0000_0000);
                event.held = Some(BATCH + (2 << 30));
                event.stack = Some(PYTHON_ALLOC);
                event.args = Some(r#"{"dptr":"0x7f0000000000","bytesize":268435456}"#);
            });
        }
        self.call(
            ("cudaMemcpyAsync", "cuMemcpyHtoDAsync_v2"),
            Class::Copy,
            400_000,
            |event| {
                event.bytes = Some(BATCH / 16);
                event.direction = Some(CopyKind::HtoD);
                event.host = Some(HostMemory::Pageable);
                event.stream = Some(0x10);
                event.args = Some(r#"{"dstDevice":"0x7f0000000000","srcHost":"0x55d0c0de0000","ByteCount":16777216}"#);
            },
        );
        for launch in 0..launches {
            let kernel = KERNELS[((number + launch) % 8) as usize];
            let ns = 2_600 + (launch * 7919 + number * 104_729) % 2_400;
            let args = format!(
                r#"{{"f":"0x55d0c0de{launch:04x}","gridDimX":{},"blockDimX":256}}"#,
                64 + launch
            );
            self.call(("cudaLaunchKernel", "cuLaunchKernel"), Class::Launch, ns, |event| {
                event.kernel = Some(kernel);
                event.stream = Some(0x10);
                event.args = Some(&args);
            });
            self.now += 1_500;
        }
        let wait = 3_000_000 + (number * 7919 % 1000) * 2_000;
        self.call(
            ("cudaStreamSynchronize", "cuStreamSynchronize"),
            Class::Sync,
            wait,
            |event| {
                event.stream = Some(0x10);
                event.blocking = true;
                event.stack = Some(PYTHON);
            },
        );
        let idle = 1_200_000;
        self.push(&Record {
            ns: Some(idle),
            ..Record::new(Kind::Idle, self.now, PID)
        });
        if churn {
            self.call(("cudaFree", "cuMemFree_v2"), Class::Free, 1_100_000, |event| {
                event.address = Some(0x7f00_0000_0000);
                event.held = Some(2 << 30);
            });
        }
        self.now += idle as i64;
    }

    /// Ends it; `summary`: the exact totals, if it was not cut off.
    pub fn end(mut self, summary: Option<&str>) -> u64 {
        if summary.is_some() {
            let last = Record {
                args: summary,
                ..Record::new(Kind::Summary, self.now, 0)
            };
            self.recorder.push(&last, self.out);
        }
        self.recorder.end(self.out);
        self.rows
    }
}
