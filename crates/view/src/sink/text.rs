//! Text, one line per completed call, readable as strace's is.

use super::sizes::Sizes;
use super::work::bandwidth;
use crate::clock::{Clock, WallClock};
use crate::decode::Value;
use crate::model::activity::{Activity, What};
use crate::model::range::Range;
use crate::model::work::Certainty;
use crate::model::xid::Report;
use crate::record::{Encoder, Kind, Record, Traced};
use crate::text::quantity::{duration, escape_into, quote_into};
use std::io::Write;

const RED: &str = "\x1b[1;31m";
const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";

/// Writes lines of text.
#[derive(Debug)]
pub struct Text {
    clock: WallClock,
    /// CLOCK_MONOTONIC at the start of the trace, ns.
    start_ns: u64,
    /// Seconds east of UTC.
    zone: i64,
    colour: bool,
    sizes: Sizes,
}

impl Text {
    /// `zone`: seconds east of UTC in which times of day are shown.
    pub fn new(clock: Clock, zone: i64, colour: bool) -> Text {
        Text::by(WallClock::new(clock), zone, colour)
    }

    /// As [`Text::new`], by a clock that may be set meanwhile.
    pub fn by(clock: WallClock, zone: i64, colour: bool) -> Text {
        Text {
            start_ns: clock.clock().start_monotonic_ns,
            clock,
            zone,
            colour,
            sizes: Sizes::Rounded,
        }
    }

    /// The same with sizes written like that.
    #[must_use]
    pub fn with_sizes(self, sizes: Sizes) -> Text {
        Text { sizes, ..self }
    }

    fn paint(&self, code: &str, out: &mut Vec<u8>) {
        if self.colour {
            out.extend_from_slice(code.as_bytes());
        }
    }

    /// `at`: ns since the start.
    fn time(&self, at: i64, out: &mut Vec<u8>) {
        let at = self.start_ns.wrapping_add_signed(at);
        let unix_us = self.clock.clock().unix_ns(at) / 1000 + i128::from(self.zone) * 1_000_000;
        let day_us = unix_us.rem_euclid(86_400_000_000) as u64;
        let (seconds, micros) = (day_us / 1_000_000, day_us % 1_000_000);
        let _ = write!(
            out,
            "{:02}:{:02}:{:02}.{micros:06}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        );
    }

    fn result(&self, record: &Record<'_>, traced: &Traced<'_>, out: &mut Vec<u8>) {
        let call = traced.call;
        if !call.returned() {
            out.extend_from_slice(b" (entry only)");
            return;
        }
        match (call.result_name(), call.plain_result()) {
            (Some(name), _) => drop(write!(out, " = {name}")),
            (None, Some(value)) => {
                out.extend_from_slice(b" = ");
                write_value(&value, self.sizes, out);
            }
            (None, None) => {}
        }
        let _ = write!(out, " <{}", duration(call.header.duration));
        if let Some(bytes_per_second) = traced.bandwidth() {
            let _ = write!(out, ", {}", bandwidth(bytes_per_second, Certainty::Measured));
        }
        if let Some(freed) = record.freed.filter(|_| !call.refused()) {
            let _ = write!(out, ", {} given back", self.sizes.text(freed));
        }
        if let Some(ns) = record.standstill_ns {
            let _ = write!(out, ", {} of it waiting for probes", duration(ns));
        }
        out.push(b'>');
    }
}

impl Text {
    /// When and who, and how deep within other calls.
    fn origin(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        self.paint(DIM, out);
        self.time(record.at, out);
        out.extend_from_slice(b"  ");
        escape_into(record.comm, out);
        let _ = write!(out, " {}/{}", record.pid, record.tid);
        self.paint(RESET, out);
        let _ = write!(out, "{:width$}", "", width = 3 + 2 * usize::from(record.depth));
    }

    /// When, who and what.
    fn begin(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        self.origin(record, out);
        self.paint(if record.failed { RED } else { BOLD }, out);
        escape_into(record.name, out);
        self.paint(if record.failed { "" } else { RESET }, out);
    }

    fn stack(&self, traced: &Traced<'_>, out: &mut Vec<u8>) {
        let indent = 22 + 2 * usize::from(traced.call.header.depth);
        let lines = traced
            .stack
            .map(|stack| crate::frame::lines::frame_lines(&stack.frames));
        for line in lines.unwrap_or_default() {
            self.paint(DIM, out);
            let _ = write!(out, "{:indent$}{line}", "");
            self.paint(RESET, out);
            out.push(b'\n');
        }
    }
}

impl Text {
    fn call(&self, record: &Record<'_>, traced: &Traced<'_>, out: &mut Vec<u8>) {
        self.begin(record, out);
        match traced.asked {
            None => {
                write_args(traced, self.sizes, out);
                self.result(record, traced, out);
            }
            Some(asked) => {
                super::driver::args_text(asked, self.sizes, out);
                super::driver::result_text(asked, traced.call.header.duration, out);
            }
        }
        self.paint(RESET, out);
        out.push(b'\n');
        self.stack(traced, out);
    }

    fn open(&self, record: &Record<'_>, traced: &Traced<'_>, out: &mut Vec<u8>) {
        self.begin(record, out);
        write_args(traced, self.sizes, out);
        self.paint(RED, out);
        let _ = write!(out, " … has not returned after {}", duration(record.ns.unwrap_or(0)));
        self.paint(RESET, out);
        out.push(b'\n');
        self.stack(traced, out);
    }

    fn executed(&self, record: &Record<'_>, activity: &Activity, out: &mut Vec<u8>) {
        self.paint(DIM, out);
        self.time(record.at, out);
        out.extend_from_slice(b"  ");
        escape_into(record.comm, out);
        let _ = write!(out, " {}/gpu{}.{}", record.pid, activity.device, activity.stream);
        self.paint(RESET, out);
        out.extend_from_slice(b"   ");
        escape_into(record.name, out);
        if let What::Kernel { grid, block, .. } = &activity.what {
            let [[gx, gy, gz], [bx, by, bz]] = [grid, block];
            let _ = write!(out, "<<<({gx},{gy},{gz}), ({bx},{by},{bz})>>>");
        }
        if let Some(size) = record.bytes {
            let _ = write!(out, " {}", self.sizes.text(size));
        }
        let _ = writeln!(out, " <{}>", duration(activity.ns()));
    }

    /// A phase as the program calls it, or a moment.
    fn annotated(&self, record: &Record<'_>, range: &Range, out: &mut Vec<u8>) {
        self.origin(record, out);
        out.extend_from_slice(b"NVTX ");
        quote_into(record.name, out);
        if !range.domain.is_empty() {
            out.extend_from_slice(b" of ");
            escape_into(&range.domain, out);
        }
        let _ = match record.ns {
            Some(ns) if range.open => writeln!(out, " <{}, not ended>", duration(ns)),
            Some(ns) => writeln!(out, " <{}>", duration(ns)),
            None => writeln!(out, " (mark)"),
        };
    }

    fn xid(&self, at: i64, report: &Report, out: &mut Vec<u8>) {
        self.paint(DIM, out);
        self.time(at, out);
        let process = crate::driver::xid::words::process(&report.xid);
        let _ = write!(out, "  {}", process.as_deref().unwrap_or("no process named"));
        self.paint(RESET, out);
        self.paint(RED, out);
        let _ = write!(out, "   {}", super::xid::line(report));
        self.paint(RESET, out);
        out.push(b'\n');
    }

    fn lost(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        self.paint(RED, out);
        self.time(record.at, out);
        out.extend_from_slice(b" .. ");
        self.time(record.end(), out);
        let _ = write!(out, "  lost {} events of ", record.count);
        escape_into(record.name, out);
        self.paint(RESET, out);
        out.push(b'\n');
    }
}

impl Encoder for Text {
    /// It has its line already, and the summary names it.
    fn take_unreturned(&mut self, _record: &Record<'_>, _out: &mut Vec<u8>) {}

    fn take(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        match (record.kind, record.traced, record.fault) {
            (Kind::Open, Some(traced), _) => self.open(record, traced, out),
            (_, Some(traced), _) => self.call(record, traced, out),
            (Kind::Xid, _, Some(report)) => self.xid(record.at, report, out),
            (Kind::Lost, ..) => self.lost(record, out),
            (Kind::Gpu, ..) => {
                if let Some(activity) = record.activity {
                    self.executed(record, activity, out);
                }
            }
            (Kind::Range | Kind::Mark, ..) => {
                if let Some(range) = record.range {
                    self.annotated(record, range, out);
                }
            }
            _ => {}
        }
    }

    fn tick(&mut self, _out: &mut Vec<u8>) {
        self.clock.refresh();
    }

    fn keeps(&self) -> bool {
        false
    }
}

fn write_args(traced: &Traced<'_>, sizes: Sizes, out: &mut Vec<u8>) {
    let call = traced.call;
    let kernel_at = call.row.launch.as_ref().map(|launch| launch.kernel.arg);
    out.push(b'(');
    if !call.has_args() {
        out.extend_from_slice("…nested too deeply for arguments…".as_bytes());
    }
    for (index, (name, value)) in call.args().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        escape_into(name, out);
        out.push(b'=');
        match traced.kernel {
            Some(kernel) if kernel_at == Some(index) => escape_into(kernel, out),
            _ => write_value(&value, sizes, out),
        }
    }
    out.push(b')');
}

fn write_value(value: &Value<'_>, sizes: Sizes, out: &mut Vec<u8>) {
    let _ = match value {
        Value::Unsigned(number) => write!(out, "{number}"),
        Value::Signed(number) => write!(out, "{number}"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Size(size) => write!(out, "{}", sizes.text(*size)),
        Value::Address(0) => write!(out, "NULL"),
        Value::Address(address) => write!(out, "{address:#x}"),
        Value::Name(name) => write!(out, "{name}"),
        Value::Dim3([x, y, z]) => write!(out, "({x},{y},{z})"),
        Value::Opaque => write!(out, "{{…}}"),
        Value::Unreadable => write!(out, "?"),
        Value::Unset => write!(out, "-"),
        Value::Text { text, cut } => {
            quote_into(text, out);
            write!(out, "{}", if *cut { "…" } else { "" })
        }
        Value::Struct(structure) => {
            out.push(b'{');
            for (index, (name, value)) in structure.fields().enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                escape_into(name, out);
                out.push(b'=');
                write_value(&value, sizes, out);
            }
            write!(out, "}}")
        }
    };
}

/// The local time zone now, in seconds east of UTC.
pub fn local_zone() -> i64 {
    // SAFETY: both calls only fill the structures that they are given
    unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut local = std::mem::zeroed::<libc::tm>();
        libc::localtime_r(&raw const now, &raw mut local);
        local.tm_gmtoff
    }
}
