//! The fields of a line.

use crate::catalog::Class;
use crate::model::order::Numbered;
use crate::record::{Kind, Record};
use crate::text::json::{hex, padded, string};
use crate::text::object::object_into;
use std::io::Write;

pub(super) fn opening(at: i64, kind: Kind, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"ts\":");
    seconds(at, out);
    text(",\"type\":", kind.name(), out);
}

pub(super) fn whose(record: &Record<'_>, number: Numbered, out: &mut Vec<u8>) {
    number_of(",\"pid\":", Some(record.pid.into()), out);
    number_of(",\"tid\":", Some(record.tid.into()), out);
    text(",\"comm\":", record.comm, out);
    number_of(",\"depth\":", Some(record.depth.into()), out);
    number_of(",\"parent_id\":", number.caller, out);
}

/// What was called with what; of a call to the kernel driver also what it has answered.
pub(super) fn asked(record: &Record<'_>, out: &mut Vec<u8>) {
    if record.kind == Kind::Kernel {
        return fields_of(record, out);
    }
    if let Some(kernel) = record.kernel {
        text(",\"kernel\":", kernel, out);
    }
    out.extend_from_slice(b",\"args\":");
    args_into(record, out);
    number_of(",\"size\":", record.size(), out);
    if let Some(direction) = record.direction {
        text(",\"direction\":", direction.name(), out);
    }
}

pub(super) fn answered(record: &Record<'_>, out: &mut Vec<u8>) {
    if record.kind == Kind::Kernel {
        return;
    }
    if let Some(result) = record.result {
        let _ = write!(out, ",\"ret\":{result}");
    }
    if let Some(error) = record.error {
        text(",\"error\":", error, out);
    }
}

/// What a reader needs beyond the documented name, and what the models have followed.
pub(super) fn known(record: &Record<'_>, out: &mut Vec<u8>) {
    if record.class.name() != record.class.category() {
        text(",\"class\":", record.class.name(), out);
    }
    if record.failed {
        out.extend_from_slice(b",\"failed\":true");
    }
    if record.blocking && record.class != Class::Sync {
        out.extend_from_slice(b",\"blocking\":true");
    }
    if let Some(host) = record.host {
        text(",\"host\":", host.name(), out);
    }
    for (key, number) in [(",\"stream\":", record.stream), (",\"address\":", record.address)] {
        if let Some(number) = number {
            out.extend_from_slice(key.as_bytes());
            hex(number, out);
        }
    }
    number_of(",\"held\":", record.held, out);
}

/// What a device has done.
pub(super) fn executed(record: &Record<'_>, out: &mut Vec<u8>) {
    text(",\"name\":", record.name, out);
    micros(",\"duration_us\":", record.ns, out);
    number_of(",\"bytes\":", record.bytes, out);
    if let Some(host) = record.host {
        text(",\"host\":", host.name(), out);
    }
}

/// What a program calls a phase of its own.
pub(super) fn annotated(record: &Record<'_>, out: &mut Vec<u8>) {
    text(",\"name\":", record.name, out);
    micros(",\"duration_us\":", record.ns, out);
    number_of(",\"depth\":", Some(record.depth.into()), out);
}

/// What counts and samples have.
pub(super) fn beside(record: &Record<'_>, out: &mut Vec<u8>) {
    if record.kind == Kind::Count {
        text(",\"layer\":", record.layer, out);
        text(",\"class\":", record.class.name(), out);
        number_of(",\"count\":", Some(record.count), out);
        micros(",\"total_us\":", record.ns, out);
    }
    if record.kind == Kind::Sample {
        number_of(",\"value\":", record.bytes, out);
        micros(",\"outside_us\":", record.ns, out);
        stack_into(record, out);
    }
}

pub(super) fn end_with_stack(record: &Record<'_>, out: &mut Vec<u8>) {
    stack_into(record, out);
    out.extend_from_slice(b"}\n");
}

pub(super) fn stack_into(record: &Record<'_>, out: &mut Vec<u8>) {
    if let Some(stack) = record.stack {
        out.extend_from_slice(b",\"stack\":");
        own_or_checked(stack, record, out);
    }
}

pub(super) fn args_into(record: &Record<'_>, out: &mut Vec<u8>) {
    own_or_checked(record.args.unwrap_or("{}"), record, out);
}

/// What this process has just written need not be looked through again.
pub(super) fn own_or_checked(json: &str, record: &Record<'_>, out: &mut Vec<u8>) {
    let is_own = record.traced.is_some() || record.activity.is_some() || record.range.is_some();
    match is_own {
        true => out.extend_from_slice(json.as_bytes()),
        false => object_into(json, out),
    }
}

/// The fields of the arguments, each behind a comma.
pub(super) fn fields_of(record: &Record<'_>, out: &mut Vec<u8>) {
    let Some(object) = record.args else { return };
    let start = out.len();
    own_or_checked(object, record, out);
    match out.get(start..) {
        Some(b"{}") => out.truncate(start),
        Some([b'{', ..]) => {
            out[start] = b',';
            out.pop();
        }
        // it was no object
        _ => drop(out.splice(start..start, *b",\"args\":")),
    }
}

pub(super) fn text(key: &str, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(key.as_bytes());
    string(text, out);
}

pub(super) fn number_of(key: &str, number: Option<u64>, out: &mut Vec<u8>) {
    if let Some(number) = number {
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }
}

pub(super) fn micros(key: &str, ns: Option<u64>, out: &mut Vec<u8>) {
    if let Some(ns) = ns {
        number_of(key, Some(ns / 1000), out);
        out.push(b'.');
        padded(ns % 1000, 3, out);
    }
}

/// Nine decimals.
pub(super) fn seconds(at: i64, out: &mut Vec<u8>) {
    if at < 0 {
        out.push(b'-');
    }
    number_of("", Some(at.unsigned_abs() / 1_000_000_000), out);
    out.push(b'.');
    padded(at.unsigned_abs() % 1_000_000_000, 9, out);
}
