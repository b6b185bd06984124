//! Records of what is being traced.

use super::{Kind, Record, Traced, json, xid};
use crate::catalog::Class;
use crate::clock::Clock;
use crate::decode::Value;
use crate::frame::json::frames_json;
use crate::model::activity::{Activity, Waited, What, Why};
use crate::model::beside::{Happening, Measure, Measured};
use crate::model::outside;
use crate::model::range::{Range, Shape};
use crate::model::xid::Report;

/// Makes records; keeps the memory of their texts.
#[derive(Debug)]
pub struct Maker {
    clock: Clock,
    args: Vec<u8>,
}

impl Maker {
    /// `clock`: where times begin.
    #[must_use]
    pub fn new(clock: Clock) -> Maker {
        Maker {
            clock,
            args: Vec::new(),
        }
    }

    /// ns since the start, of CLOCK_MONOTONIC ns.
    #[must_use]
    pub fn since(&self, at: u64) -> i64 {
        self.clock.since(at)
    }

    /// CLOCK_MONOTONIC ns, of ns since the start.
    #[must_use]
    pub fn monotonic(&self, since: i64) -> u64 {
        self.clock.at(since)
    }

    /// The row of a call. `args`: whether its arguments are wanted, too.
    pub fn call<'a>(&'a mut self, traced: &'a Traced<'a>, args: bool) -> Record<'a> {
        self.args.clear();
        if args {
            json::args_of(traced, &mut self.args);
        }
        let at = self.since(traced.call.header.entered);
        let (call, header) = (traced.call, &traced.call.header);
        let user_space = traced.asked.is_none();
        Record {
            ns: call.returned().then_some(header.duration),
            tid: header.tid,
            comm: traced.comm,
            layer: traced.layer,
            name: traced.name(),
            class: call.row.class,
            depth: header.depth,
            since_caller: (header.caller != 0).then(|| header.entered.saturating_sub(header.caller)),
            result: result(traced),
            error: match traced.asked {
                Some(asked) => asked.error.as_deref(),
                None => call.result_name().filter(|_| call.returned()),
            },
            failed: traced.failed(),
            bytes: traced.asked.map_or_else(|| call.size(), |asked| asked.ioctl.size),
            direction: traced.facts.direction.or_else(|| call.direction()),
            host: traced.facts.host,
            blocking: traced.facts.blocking || call.row.class == Class::Sync,
            stream: traced.facts.stream,
            address: traced.facts.address,
            held: traced.facts.held,
            kernel: traced.kernel,
            stack: traced.stack.map(|stack| stack.text(frames_json)),
            args: args.then(|| std::str::from_utf8(&self.args).unwrap_or("{}")),
            number: Some(traced.number),
            api: Some(&call.row.api),
            freed: traced.facts.freed,
            standstill_ns: traced.facts.standstill_ns,
            traced: Some(traced),
            ..Record::new(if user_space { Kind::Call } else { Kind::Kernel }, at, header.tgid)
        }
    }

    /// The record of a call that has not returned for `ns`.
    pub fn open<'a>(&'a mut self, traced: &'a Traced<'a>, ns: u64) -> Record<'a> {
        Record {
            kind: Kind::Open,
            ns: Some(ns),
            ..self.call(traced, true)
        }
    }

    /// The row of what happened to a process.
    pub fn process<'a>(&'a mut self, pid: u32, at: u64, comm: &'a str, what: Happening) -> Record<'a> {
        self.args.clear();
        let name = match what {
            Happening::Forked { parent } => {
                self.args = format!("{{\"parent_pid\":{parent}}}").into_bytes();
                "fork"
            }
            Happening::Executed => "exec",
            Happening::Exited => "exit",
            Happening::Killed { signal } => {
                self.args = format!("{{\"signal\":{signal}}}").into_bytes();
                "exit"
            }
        };
        Record {
            comm,
            name,
            args: std::str::from_utf8(&self.args).ok().filter(|args| !args.is_empty()),
            ..Record::new(Kind::Process, self.since(at), pid)
        }
    }

    /// The row of a fault.
    pub fn xid<'a>(&'a mut self, report: &'a Report) -> Record<'a> {
        let fields = serde_json::Value::Object(xid::fields(report)).to_string();
        self.args = crate::text::quantity::harmless(&fields).into_bytes();
        Record {
            name: "Xid",
            layer: "kernel",
            fault: Some(report),
            args: std::str::from_utf8(&self.args).ok(),
            ..Record::new(Kind::Xid, self.since(report.at), 0)
        }
    }

    /// The row of what a device has done for the process of that name. `args`: whether its arguments are wanted, too.
    pub fn activity<'a>(&'a mut self, activity: &'a Activity, comm: &'a str, full: bool, args: bool) -> Record<'a> {
        self.args.clear();
        if args {
            let call = activity.call.map(|call| (call.tid, self.since(call.entered)));
            json::args_of_activity(activity, call, &mut self.args);
        }
        let (direction, host) = match activity.what {
            What::Copy { direction, host, .. } => (direction, host),
            _ => (None, None),
        };
        Record {
            ns: Some(activity.ns()),
            tid: 0,
            comm,
            layer: "gpu",
            name: activity.name(full),
            bytes: activity.bytes(),
            direction,
            host,
            stream: Some(activity.stream.into()),
            args: args.then(|| std::str::from_utf8(&self.args).unwrap_or("{}")),
            activity: Some(activity),
            ..Record::new(Kind::Gpu, self.since(activity.begin), activity.pid)
        }
    }

    /// The row of what the program calls a phase of its own.
    /// `category`: what the program calls its category.
    pub fn range<'a>(&'a mut self, range: &'a Range, category: Option<&str>, comm: &'a str, args: bool) -> Record<'a> {
        self.args.clear();
        if range.shape == Shape::Thread {
            return self.thread_name(range);
        }
        if args {
            json::args_of_range(range, category, &mut self.args);
        }
        let (kind, ns) = match range.shape {
            Shape::Pushed | Shape::Started => (Kind::Range, Some(range.end - range.begin)),
            Shape::Mark | Shape::Thread | Shape::Category => (Kind::Mark, None),
        };
        Record {
            ns,
            tid: range.tid,
            comm,
            layer: "nvtx",
            name: &range.name,
            depth: u8::try_from(range.level).unwrap_or(u8::MAX),
            args: args.then(|| std::str::from_utf8(&self.args).unwrap_or("{}")),
            range: Some(range),
            ..Record::new(kind, self.since(range.begin), range.pid)
        }
    }

    fn thread_name<'a>(&self, range: &'a Range) -> Record<'a> {
        Record {
            tid: range.category,
            layer: "nvtx",
            name: &range.name,
            ..Record::new(Kind::ThreadName, self.since(range.begin), range.pid)
        }
    }

    /// The row of what was measured.
    pub fn measure<'a>(&'a mut self, measure: &'a Measure) -> Record<'a> {
        self.args.clear();
        if let Measured::Idle { devices, .. } = measure.what {
            json::args_of_idle(devices, &mut self.args);
        }
        let row = |kind| Record {
            tid: measure.tid,
            ..Record::new(kind, self.since(measure.at), measure.pid)
        };
        match &measure.what {
            Measured::Count {
                layer,
                function,
                class,
                calls,
            } => Record {
                layer,
                name: function,
                class: *class,
                count: *calls,
                ..row(Kind::Count)
            },
            Measured::Value { name, value } => Record {
                name,
                bytes: Some(*value),
                ..row(Kind::Sample)
            },
            Measured::Idle { ns, devices, why } => Record {
                ns: Some(*ns),
                name: why.map_or("", Why::name),
                args: std::str::from_utf8(&self.args).ok().filter(|args| !args.is_empty()),
                ..row(match devices {
                    Waited::One(_) => Kind::DeviceIdle,
                    _ => Kind::Idle,
                })
            },
            Measured::Overhead { ns, kind } => Record {
                ns: Some(*ns),
                name: kind.name(),
                layer: "cupti",
                ..row(Kind::Overhead)
            },
            Measured::Outside { ns, stack, .. } | Measured::Between { ns, stack } => Record {
                name: match measure.what {
                    Measured::Between { .. } => outside::BETWEEN,
                    _ => outside::SAMPLE,
                },
                ns: Some(*ns),
                stack: Some(&**stack).filter(|stack| !stack.is_empty()),
                ..row(Kind::Sample)
            },
        }
    }

    /// The row of the totals up to `at`, CLOCK_MONOTONIC ns.
    #[must_use]
    pub fn totals<'a>(&self, at: u64, totals: &'a str) -> Record<'a> {
        Record {
            args: Some(totals),
            ..Record::new(Kind::Snapshot, self.since(at), 0)
        }
    }

    /// The record of calls that have none. `from`, `to`: CLOCK_MONOTONIC ns.
    #[must_use]
    pub fn lost<'a>(&self, function: &'a str, count: u64, from: u64, to: u64) -> Record<'a> {
        Record::lost(function, count, self.since(from), self.since(to))
    }
}

fn result(traced: &Traced<'_>) -> Option<i64> {
    let call = traced.call;
    if let Some(asked) = traced.asked {
        return Some(asked.ioctl.result);
    }
    if !call.returned() {
        return None;
    }
    match call.plain_result()? {
        Value::Signed(number) => Some(number),
        Value::Unsigned(number) | Value::Address(number) | Value::Size(number) => Some(number as i64),
        _ => None,
    }
}
