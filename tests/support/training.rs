//! Rows as a training loop of PyTorch makes them, without a GPU.
//!
//! A step has the calls of one of `tests/gpu/transformer.py` on an H200, getters aside, which become one row a second each:
//! 193 launches by the runtime with the driver's within them, 70 by cuBLAS alone, of 45 kernels in the same order each
//! step; a batch copied in, 8 memsets, 6 events; and the loss read, which waits for the step of some 10.7 ms. The second
//! half is made by the thread of the backward pass. Times are random to the nanosecond; addresses of memory come from a
//! pool of 64 blocks, those of arguments on the stack vary; all from one seed.

#![allow(dead_code, reason = "each user has its own part")]

use gpuscope::catalog::{Class, CopyKind, HostMemory};
use gpuscope::record::{Kind, Record};

const PID: u32 = 41_872;
const BACKWARD: u32 = 41_903;
const RUNTIME_LAUNCHES: usize = 193;
const BLAS_LAUNCHES: usize = 70;
const KERNELS: usize = 45;
const SECOND: i64 = 1_000_000_000;

/// A row that owns its texts.
pub struct Row {
    name: &'static str,
    layer: &'static str,
    class: Class,
    kind: Kind,
    at: i64,
    ns: Option<u64>,
    tid: u32,
    depth: u8,
    since_caller: Option<u64>,
    bytes: Option<u64>,
    count: u64,
    direction: Option<CopyKind>,
    host: Option<HostMemory>,
    blocking: bool,
    stream: Option<u64>,
    kernel: Option<String>,
    stack: Option<String>,
    args: Option<String>,
}

impl Row {
    /// As it is recorded, `later` by so many ns.
    pub fn event(&self, later: i64) -> Record<'_> {
        let (result, error) = match self.layer {
            "runtime" => (Some(0), Some("cudaSuccess")),
            "driver" => (Some(0), Some("CUDA_SUCCESS")),
            _ => (None, None),
        };
        Record {
            ns: self.ns,
            tid: self.tid,
            comm: if self.tid == BACKWARD {
                "pt_autograd_0"
            } else {
                "python3"
            },
            layer: self.layer,
            name: self.name,
            class: self.class,
            depth: self.depth,
            count: self.count,
            since_caller: self.since_caller,
            result,
            error,
            bytes: self.bytes,
            direction: self.direction,
            host: self.host,
            blocking: self.blocking,
            stream: self.stream,
            kernel: self.kernel.as_deref(),
            stack: self.stack.as_deref(),
            args: self.args.as_deref(),
            ..Record::new(self.kind, self.at + later, PID)
        }
    }

    pub fn at(&self) -> i64 {
        self.at
    }
}

struct Kernel {
    name: String,
    function: u64,
    handle: u64,
}

/// Makes rows.
pub struct Training {
    random: u64,
    now: i64,
    tid: u32,
    told: i64,
    kernels: Vec<Kernel>,
    rows: Vec<Row>,
}

impl Training {
    /// The rows of so many steps, in order, and how long they took, ns.
    pub fn steps(steps: usize) -> (Vec<Row>, i64) {
        let mut training = Training {
            random: 7,
            now: 0,
            tid: PID,
            told: 0,
            kernels: Vec::new(),
            rows: Vec::new(),
        };
        training.kernels = (0..KERNELS).map(|number| training.kernel(number as u64)).collect();
        (0..steps).for_each(|_| training.step());
        (training.rows, training.now)
    }

    fn kernel(&mut self, number: u64) -> Kernel {
        let shapes = [
            "vectorized_elementwise_kernel",
            "unrolled_elementwise_kernel",
            "reduce_kernel",
            "gemm_bf16",
        ];
        let shape = shapes[(number % 4) as usize];
        Kernel {
            name: format!(
                "{shape}<{}, at::native::Functor{number}<float, c10::BFloat16>, Array<char*, {}>>",
                number % 8,
                number % 3
            ),
            function: 0x7f31_8a00_0000 + self.below(1 << 24) * 16,
            handle: 0x5581_0000_0000 + self.below(1 << 24) * 16,
        }
    }

    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// About `typical` ns, and at times much longer.
    fn time(&mut self, typical: u64) -> u64 {
        let spread = self.below(typical) + self.below(typical / 2 + 1);
        let rare = if self.below(64) == 0 {
            self.below(20 * typical)
        } else {
            0
        };
        typical / 2 + spread + rare
    }

    fn pause(&mut self, typical: u64) {
        self.now += self.time(typical) as i64;
    }

    /// One of the blocks that the caching allocator has.
    fn block(&mut self) -> u64 {
        0x7f2a_4000_0000 + self.below(64) * (2 << 20)
    }

    fn step(&mut self) {
        self.tid = PID;
        let began = self.now;
        self.copy_in();
        (0..8).for_each(|_| self.memset());
        for position in 0..RUNTIME_LAUNCHES {
            if position == RUNTIME_LAUNCHES / 2 {
                self.tid = BACKWARD;
            }
            self.launch(position);
            if position % 3 == 0 {
                self.blas_launch(position);
            }
            if position % 32 == 0 {
                self.event_record();
            }
        }
        (0..BLAS_LAUNCHES - RUNTIME_LAUNCHES.div_ceil(3)).for_each(|position| self.blas_launch(position));
        self.tid = PID;
        self.read_loss(began);
        if self.now - self.told > SECOND {
            self.tell();
        }
    }

    fn row(&self, name: &'static str, layer: &'static str, class: Class) -> Row {
        Row {
            name,
            layer,
            class,
            kind: Kind::Call,
            at: self.now,
            ns: None,
            tid: self.tid,
            depth: 0,
            since_caller: None,
            bytes: None,
            count: 1,
            direction: None,
            host: None,
            blocking: false,
            stream: None,
            kernel: None,
            stack: None,
            args: None,
        }
    }

    /// A call of the runtime and the driver's within it.
    fn pair(&mut self, mut outer: Row, mut inner: Row, inside: u64) {
        let (before, within, after) = (self.time(700), self.time(inside), self.time(400));
        outer.ns = Some(before + within + after);
        inner.ns = Some(within);
        inner.at += before as i64;
        inner.since_caller = Some(before);
        inner.depth = 1;
        self.now += (before + within + after) as i64;
        self.rows.extend([outer, inner]);
    }

    fn copy_in(&mut self) {
        let (to, from) = (self.block(), 0x7f10_0000_0000 + self.below(4) * (4 << 20));
        let mut outer = self.row("cudaMemcpyAsync", "runtime", Class::Copy);
        let mut inner = self.row("cuMemcpyHtoDAsync_v2", "driver", Class::Copy);
        outer.args = Some(format!(
            "{{\"dst\":\"{to:#x}\",\"src\":\"{from:#x}\",\"count\":4194304,\"kind\":\"cudaMemcpyHostToDevice\",\"stream\":\"0x0\"}}"
        ));
        inner.args = Some(format!(
            "{{\"dstDevice\":\"{to:#x}\",\"srcHost\":\"{from:#x}\",\"ByteCount\":4194304,\"hStream\":\"0x0\"}}"
        ));
        for row in [&mut outer, &mut inner] {
            row.bytes = Some(4 << 20);
            row.direction = Some(CopyKind::HtoD);
        }
        (inner.host, inner.stream) = (Some(HostMemory::Pinned), Some(0));
        self.pair(outer, inner, 3_000);
        self.pause(9_000);
    }

    fn memset(&mut self) {
        let (to, bytes) = (self.block(), 512 * (1 + self.below(6)));
        let mut outer = self.row("cudaMemsetAsync", "runtime", Class::Memset);
        let mut inner = self.row("cuMemsetD8Async", "driver", Class::Memset);
        outer.args = Some(format!(
            "{{\"devPtr\":\"{to:#x}\",\"value\":0,\"count\":{bytes},\"stream\":\"0x0\"}}"
        ));
        inner.args = Some(format!(
            "{{\"dstDevice\":\"{to:#x}\",\"uc\":0,\"N\":{bytes},\"hStream\":\"0x0\"}}"
        ));
        (outer.bytes, inner.bytes, inner.stream) = (Some(bytes), Some(bytes), Some(0));
        self.pair(outer, inner, 2_200);
        self.pause(6_000);
    }

    fn launch(&mut self, position: usize) {
        let (grid, block) = (1 + position * 37 % 2048, 32 << (position % 6));
        let stack = 0x7ffd_1000_0000_u64 + position as u64 * 4096 + self.below(8) * 48;
        let kernel = &self.kernels[position % KERNELS];
        let mut outer = self.row("cudaLaunchKernel", "runtime", Class::Launch);
        let mut inner = self.row("cuLaunchKernel", "driver", Class::Launch);
        outer.args = Some(format!(
            "{{\"func\":\"{:#x}\",\"gridDim\":[{grid},1,1],\"blockDim\":[{block},1,1],\"args\":\"{stack:#x}\",\"sharedMem\":0,\"stream\":\"0x0\"}}",
            kernel.function
        ));
        inner.args = Some(format!(
            "{{\"f\":\"{:#x}\",\"gridDimX\":{grid},\"gridDimY\":1,\"gridDimZ\":1,\"blockDimX\":{block},\"blockDimY\":1,\"blockDimZ\":1,\"sharedMemBytes\":0,\"hStream\":\"0x0\",\"kernelParams\":\"{stack:#x}\",\"extra\":\"0x0\"}}",
            kernel.handle
        ));
        (outer.kernel, inner.kernel) = (Some(kernel.name.clone()), Some(kernel.name.clone()));
        inner.stream = Some(0);
        self.pair(outer, inner, 2_600);
        self.pause(8_000);
    }

    fn blas_launch(&mut self, position: usize) {
        let (config, params) = (
            0x7ffd_2000_0000 + self.below(16) * 64,
            0x7ffd_2100_0000 + self.below(16) * 64,
        );
        let kernel = &self.kernels[(position * 7 + 3) % KERNELS];
        let mut row = self.row("cuLaunchKernelEx", "driver", Class::Launch);
        row.args = Some(format!(
            "{{\"config\":\"{config:#x}\",\"f\":\"{:#x}\",\"kernelParams\":\"{params:#x}\",\"extra\":\"0x0\"}}",
            kernel.handle
        ));
        (row.kernel, row.stream) = (Some(kernel.name.clone()), Some(0));
        let ns = self.time(3_400);
        row.ns = Some(ns);
        self.now += ns as i64;
        self.rows.push(row);
        self.pause(9_000);
    }

    fn event_record(&mut self) {
        let event = 0x5590_0000_0000 + self.below(16) * 0x120;
        let mut outer = self.row("cudaEventRecord", "runtime", Class::Event);
        let mut inner = self.row("cuEventRecord", "driver", Class::Event);
        outer.args = Some(format!("{{\"event\":\"{event:#x}\",\"stream\":\"0x0\"}}"));
        inner.args = Some(format!("{{\"hEvent\":\"{event:#x}\",\"hStream\":\"0x0\"}}"));
        self.pair(outer, inner, 900);
        self.pause(3_000);
    }

    /// `loss.item()`: a small copy to pageable memory, and a wait until the step of 10.7 ms is over.
    fn read_loss(&mut self, began: i64) {
        let from = self.block();
        let mut outer = self.row("cudaMemcpyAsync", "runtime", Class::Copy);
        let mut inner = self.row("cuMemcpyDtoHAsync_v2", "driver", Class::Copy);
        outer.args = Some(format!(
            "{{\"dst\":\"0x7ffd0badcafe\",\"src\":\"{from:#x}\",\"count\":4,\"kind\":\"cudaMemcpyDeviceToHost\",\"stream\":\"0x0\"}}"
        ));
        inner.args = Some(format!(
            "{{\"dstHost\":\"0x7ffd0badcafe\",\"srcDevice\":\"{from:#x}\",\"ByteCount\":4,\"hStream\":\"0x0\"}}"
        ));
        for row in [&mut outer, &mut inner] {
            row.bytes = Some(4);
            row.direction = Some(CopyKind::DtoH);
        }
        (inner.host, inner.stream, inner.stack) = (Some(HostMemory::Pageable), Some(0), Some(stack()));
        self.pair(outer, inner, 12_000);
        let mut outer = self.row("cudaStreamSynchronize", "runtime", Class::Sync);
        let mut inner = self.row("cuStreamSynchronize", "driver", Class::Sync);
        outer.args = Some("{\"stream\":\"0x0\"}".to_owned());
        inner.args = Some("{\"hStream\":\"0x0\"}".to_owned());
        (outer.blocking, inner.blocking, inner.stream) = (true, true, Some(0));
        inner.stack = Some(stack());
        let left = (10_700_000 - (self.now - began)).max(20_000) as u64;
        self.pair(outer, inner, left);
        self.pause(40_000);
    }

    /// What is told once a second.
    fn tell(&mut self) {
        self.told = self.now;
        for name in [
            "cudaGetDevice",
            "cudaGetLastError",
            "cudaStreamIsCapturing",
            "cuCtxGetCurrent",
            "cuCtxGetDevice",
        ] {
            let count = 20_000 + self.below(300_000);
            let row = self.row(name, "runtime", Class::Query);
            self.rows.push(Row {
                kind: Kind::Count,
                count,
                ..row
            });
        }
        for name in [
            "memory.held",
            "gpu.idle_at_least_ns",
            "gpu.busy_at_most_ns",
            "launches",
            "thread.cpu_ns",
        ] {
            let bytes = Some(self.below(1 << 40));
            let row = self.row(name, "", Class::Other);
            self.rows.push(Row {
                kind: Kind::Sample,
                bytes,
                ..row
            });
        }
    }
}

/// Twelve frames, as those of a training script are.
fn stack() -> String {
    let frame = |number: usize| {
        format!(
            "{{\"file\":\"/opt/conda/lib/python3.12/site-packages/torch/nn/modules/module.py\",\"function\":\"Module._call_impl_{number}\",\"language\":\"python\",\"line\":{}}}",
            1500 + number
        )
    };
    format!("[{}]", (0..12).map(frame).collect::<Vec<_>>().join(","))
}
