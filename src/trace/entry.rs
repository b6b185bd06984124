//! Rows of calls that were just traced.

use super::event::{Event, Kind};
use crate::catalog::Class;
use crate::clock::Clock;
use crate::decode::Value;
use crate::frame::json::frames_json;
use crate::model::beside::{Happening, Measure, Measured};
use crate::model::outside;
use crate::model::xid::Report;
use crate::sink::{Entry, json};

/// Makes rows; keeps the memory of their texts.
#[derive(Debug)]
pub struct Entries {
    clock: Clock,
    args: Vec<u8>,
    error: Option<String>,
}

impl Entries {
    /// `clock`: where times begin.
    #[must_use]
    pub fn new(clock: Clock) -> Entries {
        Entries {
            clock,
            args: Vec::new(),
            error: None,
        }
    }

    /// ns since the start, of CLOCK_MONOTONIC ns.
    #[must_use]
    pub fn since(&self, at: u64) -> i64 {
        at.wrapping_sub(self.clock.start_monotonic_ns) as i64
    }

    /// The row of a call. `args`: whether its arguments are wanted, too.
    pub fn call<'a>(&'a mut self, entry: &'a Entry<'a>, args: bool) -> Event<'a> {
        self.args.clear();
        if args {
            json::args_of(entry, &mut self.args);
        }
        self.error = entry.asked.and_then(crate::sink::driver::error_name);
        let at = self.since(entry.call.header.entered);
        let (call, header) = (entry.call, &entry.call.header);
        let user_space = entry.asked.is_none();
        Event {
            ns: call.returned().then_some(header.duration),
            tid: header.tid,
            comm: entry.comm,
            layer: entry.layer,
            name: entry.name(),
            class: call.row.class,
            depth: header.depth,
            since_caller: (header.caller != 0).then(|| header.entered.saturating_sub(header.caller)),
            result: result(entry),
            error: match entry.asked {
                Some(_) => self.error.as_deref(),
                None => call.result_name().filter(|_| call.returned()),
            },
            failed: entry.failed(),
            bytes: entry.asked.map_or_else(|| call.size(), |asked| asked.ioctl.size),
            direction: entry.facts.direction.or_else(|| call.direction()),
            host: entry.facts.host,
            blocking: entry.facts.blocking || call.row.class == Class::Sync,
            stream: entry.facts.stream,
            address: entry.facts.address,
            held: entry.facts.held,
            kernel: entry.kernel,
            stack: entry.stack.map(|stack| stack.text(frames_json)),
            args: args.then(|| std::str::from_utf8(&self.args).unwrap_or("{}")),
            ..Event::new(if user_space { Kind::Call } else { Kind::Kernel }, at, header.tgid)
        }
    }

    /// The row of what happened to a process.
    pub fn process<'a>(&'a mut self, pid: u32, at: u64, comm: &'a str, what: Happening) -> Event<'a> {
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
        Event {
            comm,
            name,
            args: std::str::from_utf8(&self.args).ok().filter(|args| !args.is_empty()),
            ..Event::new(Kind::Process, self.since(at), pid)
        }
    }

    /// The row of a fault.
    pub fn xid(&mut self, report: &Report) -> Event<'_> {
        let fields = serde_json::Value::Object(crate::sink::xid::fields(report)).to_string();
        self.args = crate::text::quantity::harmless(&fields).into_bytes();
        Event {
            name: "Xid",
            layer: "kernel",
            args: std::str::from_utf8(&self.args).ok(),
            ..Event::new(Kind::Xid, self.since(report.at), 0)
        }
    }

    /// The row of what was measured.
    #[must_use]
    pub fn measure<'a>(&self, measure: &'a Measure) -> Event<'a> {
        let row = |kind| Event {
            tid: measure.tid,
            ..Event::new(kind, self.since(measure.at), measure.pid)
        };
        match &measure.what {
            Measured::Count {
                layer,
                function,
                class,
                calls,
            } => Event {
                layer,
                name: function,
                class: *class,
                count: *calls,
                ..row(Kind::Count)
            },
            Measured::Value { name, value } => Event {
                name,
                bytes: Some(*value),
                ..row(Kind::Sample)
            },
            Measured::Idle { ns } => Event {
                ns: Some(*ns),
                ..row(Kind::Idle)
            },
            Measured::Outside { ns, stack } => Event {
                name: outside::SAMPLE,
                ns: Some(*ns),
                stack: Some(&**stack).filter(|stack| !stack.is_empty()),
                ..row(Kind::Sample)
            },
        }
    }

    /// The row of calls that have none. `from`, `to`: CLOCK_MONOTONIC ns.
    #[must_use]
    pub fn lost<'a>(&self, function: &'a str, count: u64, from: u64, to: u64) -> Event<'a> {
        Event {
            name: function,
            count,
            ns: Some(to.saturating_sub(from)),
            ..Event::new(Kind::Lost, self.since(from), 0)
        }
    }
}

fn result(entry: &Entry<'_>) -> Option<i64> {
    let call = entry.call;
    if let Some(asked) = entry.asked {
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
