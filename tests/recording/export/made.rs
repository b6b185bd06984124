//! Made-up traces, and what must be seen of them.

use gpuscope::catalog::Class;
use gpuscope::clock::Clock;
use gpuscope::record::{Kind, Meta, Record, Taker};
use gpuscope::trace::recorder::Memory;
use std::collections::BTreeMap;

/// Rows, and how often and for how long each name is to be seen on threads.
#[derive(Default)]
pub struct Made {
    rows: Vec<Record<'static>>,
    pub calls: BTreeMap<String, (u64, u64)>,
    pub submissions: u64,
    pub arrows: u64,
    pub numbers: u64,
    /// Slices that are no calls and no submissions.
    pub others: u64,
}

const STEP: i64 = 1_000_000;

impl Made {
    /// Two processes with two threads each, `steps` launches of each thread, every tenth of them with a wait that comes
    /// late; numbers, gaps, loss, a fault, lives.
    pub fn trace(steps: i64) -> Made {
        let mut made = Made::default();
        for pid in [100, 200] {
            made.process(pid, "fork", -5);
            made.process(pid, "exec", 1);
        }
        for step in 1..=steps {
            for tid in [100, 101, 200, 201] {
                made.step(tid / 100 * 100, tid, step * STEP + i64::from(tid));
            }
            made.sample("copy.bytes", step * STEP + 900_000, step as u64 * 4096);
        }
        let end = (steps + 1) * STEP;
        for _ in 0..2 {
            made.numbers += 1;
            made.rows.push(Record {
                count: 7,
                name: "cudaGetDevice",
                ..Record::new(Kind::Count, end, 100)
            });
        }
        made.other(Kind::Idle, end, 100, "");
        made.other(Kind::Lost, end, 0, "cudaStreamQuery");
        made.other(Kind::Xid, end, 0, "Xid");
        made.process(100, "exit", end + 10);
        // the other one lives on
        made.others += 2;
        made
    }

    pub fn recording(&self, host: &str) -> Vec<u8> {
        self.recording_since(host, 1_700_000_000_000_000_000)
    }

    pub fn recording_since(&self, host: &str, start_unix_ns: u64) -> Vec<u8> {
        self.recorded(host, start_unix_ns, Kind::Summary, "{\"type\":\"summary\"}", 0)
    }

    /// As one that was cut off behind totals of 9 s.
    #[allow(dead_code, reason = "tests/real does not ask it")]
    pub fn cut_recording(&self, totals: &'static str) -> Vec<u8> {
        self.recorded("node-7", 1, Kind::Snapshot, totals, 9_000_000_000)
    }

    fn recorded(&self, host: &str, start_unix_ns: u64, last: Kind, totals: &'static str, at: i64) -> Vec<u8> {
        let mut memory = Memory::new();
        memory.start(&Meta {
            clock: Clock {
                start_monotonic_ns: 5_000_000_000,
                start_unix_ns,
            },
            command: vec!["./made".to_owned()],
            tier: "uprobe.session".to_owned(),
            host: host.to_owned(),
            tool: "0.1.0".to_owned(),
        });
        self.rows.iter().for_each(|row| memory.take(row));
        memory.take(&Record {
            args: Some(totals),
            ..Record::new(last, at, 0)
        });
        memory.end();
        memory.bytes
    }

    /// When each call of that name began, since the start, and how long it took, ns.
    #[allow(dead_code, reason = "tests/real asks it")]
    pub fn times_of(&self, name: &str) -> Vec<(i64, u64)> {
        let calls = self.rows.iter().filter(|row| row.name == name);
        calls.map(|row| (row.at, row.ns.unwrap_or(0))).collect()
    }

    pub fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    fn call(&mut self, row: Record<'static>) {
        let (count, ns) = self.calls.entry(row.name.to_owned()).or_default();
        *count += 1;
        *ns += row.ns.unwrap_or(0);
        self.arrows += u64::from(row.since_caller.is_some() && row.kind == Kind::Call);
        if row.stream.is_some() {
            self.submissions += 1;
            self.arrows += 1;
        }
        self.rows.push(row);
    }

    fn step(&mut self, pid: u32, tid: u32, at: i64) {
        let call = |at, ns, name, layer| Record {
            ns: Some(ns),
            tid,
            name,
            layer,
            comm: "made \u{1b}[2J\"<b>",
            class: Class::Launch,
            args: Some("{\"a\":\"0x1\",\"b\":[1,2,3],\"c\":{\"d\":null}}"),
            ..Record::new(Kind::Call, at, pid)
        };
        self.call(call(at, 5_001, "cudaLaunchKernel", "runtime"));
        self.call(Record {
            depth: 1,
            since_caller: Some(300),
            stream: Some(u64::from(tid % 2) * 0x5500),
            kernel: Some("gemm<float,128>"),
            ..call(at + 300, 4_000, "cuLaunchKernel", "driver")
        });
        self.call(Record {
            kind: Kind::Kernel,
            class: Class::Ioctl,
            depth: 2,
            since_caller: Some(100),
            ..call(at + 400, 77, "NV_ESC_RM_CONTROL", "kernel")
        });
        if at / STEP % 10 == 0 {
            self.call(Record {
                class: Class::Sync,
                depth: 1,
                since_caller: Some(50),
                ..call(at + 10_050, 800_003, "cuStreamSynchronize", "driver")
            });
            // each one takes another time
            let more = (at / STEP + at % STEP) as u64;
            self.call(Record {
                class: Class::Sync,
                ..call(at + 10_000, 800_103 + more, "cudaStreamSynchronize", "runtime")
            });
        }
        self.call(Record {
            class: Class::Free,
            held: Some(at as u64),
            ..call(at + 900_000, 1, "cudaFree", "runtime")
        });
        self.numbers += 1;
    }

    fn sample(&mut self, name: &'static str, at: i64, value: u64) {
        // from the second on, also how many bytes a second
        self.numbers += 1 + u64::from(self.rows.iter().any(|row| row.name == name));
        self.rows.push(Record {
            name,
            bytes: Some(value),
            ..Record::new(Kind::Sample, at, 100)
        });
    }

    fn other(&mut self, kind: Kind, at: i64, pid: u32, name: &'static str) {
        self.others += 1;
        self.rows.push(Record {
            name,
            ns: (kind != Kind::Xid).then_some(1000),
            count: 3,
            ..Record::new(kind, at, pid)
        });
    }

    fn process(&mut self, pid: u32, name: &'static str, at: i64) {
        self.others += u64::from(name == "exec");
        self.rows.push(Record {
            name,
            comm: "made",
            ..Record::new(Kind::Process, at, pid)
        });
    }
}
