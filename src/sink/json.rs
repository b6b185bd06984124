//! JSON lines by the contract in docs/output.md: `meta`, then calls, then `summary`.
//!
//! Written by hand: this is the hot path of the event plane, several times faster than a generic serializer.

use super::{Clock, Entry, Happening, Sink};
use crate::decode::{Call, Value};
use crate::model::summary::Summary;
use crate::model::xid::Report;
use std::io::Write;

/// Writes JSON lines.
pub struct Json {
    clock: Clock,
    command: Vec<String>,
    tier: String,
    values: Values,
}

impl Clone for Json {
    fn clone(&self) -> Json {
        Json::new(self.clock, self.command.clone(), self.tier.clone())
    }
}

impl Json {
    /// `command`: the traced command, empty when none was started.
    pub fn new(clock: Clock, command: Vec<String>, tier: String) -> Json {
        Json {
            clock,
            command,
            tier,
            values: Values(itoa::Buffer::new()),
        }
    }

    /// Seconds since the start, with nine decimals.
    fn seconds(&mut self, at: u64, out: &mut Vec<u8>) {
        let since = i128::from(at) - i128::from(self.clock.start_monotonic_ns);
        if since < 0 {
            out.push(b'-');
        }
        let since = since.unsigned_abs() as u64;
        self.values.number(since / 1_000_000_000, out);
        out.push(b'.');
        padded(since % 1_000_000_000, 9, out);
    }

    fn micros(&mut self, ns: u64, out: &mut Vec<u8>) {
        self.values.number(ns / 1000, out);
        out.push(b'.');
        padded(ns % 1000, 3, out);
    }

    fn key_number(&mut self, key: &str, number: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(key.as_bytes());
        self.values.number(number, out);
    }

    fn identity(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        let header = &entry.call.header;
        self.key_number("{\"event_id\":", entry.number.id, out);
        out.extend_from_slice(b",\"ts\":");
        self.seconds(header.entered, out);
        out.extend_from_slice(match entry.asked {
            None => &b",\"type\":\"userspace\",\"layer\":"[..],
            Some(_) => b",\"type\":\"kernel\",\"layer\":",
        });
        string(entry.layer, out);
        out.extend_from_slice(b",\"name\":");
        string(entry.name(), out);
        out.extend_from_slice(b",\"api\":");
        string(&entry.call.row.api, out);
        out.extend_from_slice(b",\"phase\":\"X\"");
        if entry.call.returned() {
            out.extend_from_slice(b",\"duration_us\":");
            self.micros(header.duration, out);
        }
        self.key_number(",\"pid\":", u64::from(header.tgid), out);
        self.key_number(",\"tid\":", u64::from(header.tid), out);
        out.extend_from_slice(b",\"comm\":");
        string(entry.comm, out);
        self.key_number(",\"depth\":", u64::from(header.depth), out);
        if let Some(caller) = entry.number.caller {
            self.key_number(",\"parent_id\":", caller, out);
        }
    }

    fn meaning(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        let call = entry.call;
        out.extend_from_slice(b",\"category\":");
        string(call.row.class.category(), out);
        if let Some(kernel) = entry.kernel {
            out.extend_from_slice(b",\"kernel\":");
            string(kernel, out);
        }
        out.extend_from_slice(b",\"args\":");
        self.values.args(call, out);
        if let Some(size) = call.size() {
            self.key_number(",\"size\":", size, out);
        }
        if let Some(direction) = call.direction() {
            out.extend_from_slice(b",\"direction\":");
            string(direction.name(), out);
        }
    }

    fn result(&mut self, call: &Call<'_>, out: &mut Vec<u8>) {
        if !call.returned() {
            return;
        }
        if let Some(value) = call.plain_result() {
            out.extend_from_slice(b",\"ret\":");
            match value {
                Value::Signed(number) => self.values.signed(number, out),
                Value::Unsigned(number) | Value::Address(number) | Value::Size(number) => {
                    self.values.number(number, out)
                }
                _ => out.extend_from_slice(b"null"),
            }
        }
        if let Some(name) = call.result_name() {
            out.extend_from_slice(b",\"error\":");
            string(name, out);
        }
    }
}

/// Writes numbers and arguments.
struct Values(itoa::Buffer);

impl Values {
    fn number(&mut self, number: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.format(number).as_bytes());
    }

    fn signed(&mut self, number: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.format(number).as_bytes());
    }

    fn args(&mut self, call: &Call<'_>, out: &mut Vec<u8>) {
        out.push(b'{');
        for (index, (name, value)) in call.args().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            string(name, out);
            out.push(b':');
            self.value(&value, out);
        }
        out.push(b'}');
    }

    fn value(&mut self, value: &Value<'_>, out: &mut Vec<u8>) {
        match value {
            Value::Unsigned(number) | Value::Size(number) => self.number(*number, out),
            Value::Signed(number) => self.signed(*number, out),
            Value::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Value::Address(address) => hex(*address, out),
            Value::Name(name) => string(name, out),
            Value::Text { text, .. } => string(text, out),
            Value::Dim3(axes) => self.axes(axes, out),
            Value::Opaque | Value::Unreadable | Value::Unset => out.extend_from_slice(b"null"),
            Value::Struct(structure) => {
                out.push(b'{');
                for (index, (name, value)) in structure.fields().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    string(name, out);
                    out.push(b':');
                    self.value(&value, out);
                }
                out.push(b'}');
            }
        }
    }

    fn axes(&mut self, axes: &[u32; 3], out: &mut Vec<u8>) {
        for (index, axis) in axes.iter().enumerate() {
            out.push(if index == 0 { b'[' } else { b',' });
            self.number(u64::from(*axis), out);
        }
        out.push(b']');
    }
}

/// The arguments of a call as an object; of a call of the kernel driver, all that it was asked and has answered.
pub fn args_of(entry: &Entry<'_>, out: &mut Vec<u8>) {
    match entry.asked {
        Some(asked) => {
            let start = out.len();
            super::driver::fields_json(asked, out);
            out[start] = b'{';
            out.push(b'}');
        }
        None => Values(itoa::Buffer::new()).args(entry.call, out),
    }
}

impl Sink for Json {
    fn start(&mut self, out: &mut Vec<u8>) {
        let meta = serde_json::json!({
            "type": "meta",
            "tool": "gpuscope",
            "version": env!("CARGO_PKG_VERSION"),
            "start_monotonic_ns": self.clock.start_monotonic_ns,
            "start_unix_ns": self.clock.start_unix_ns,
            "command": self.command,
            "attach": self.tier,
        });
        let _ = writeln!(out, "{meta}");
    }

    fn call(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        self.identity(entry, out);
        if let Some(asked) = entry.asked {
            out.extend_from_slice(b",\"category\":");
            string(entry.call.row.class.category(), out);
            super::driver::fields_json(asked, out);
        } else {
            self.meaning(entry, out);
            self.result(entry.call, out);
        }
        if let Some(stack) = entry.stack {
            out.extend_from_slice(b",\"stack\":");
            out.extend_from_slice(stack.text(super::memory::frames_json).as_bytes());
        }
        out.extend_from_slice(b"}\n");
    }

    fn process(&mut self, pid: u32, at: u64, comm: &str, what: Happening, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"ts\":");
        self.seconds(at, out);
        let (name, parent) = match what {
            Happening::Forked { parent } => ("fork", Some(parent)),
            Happening::Executed => ("exec", None),
            Happening::Exited => ("exit", None),
        };
        out.extend_from_slice(b",\"type\":\"process\",\"name\":");
        string(name, out);
        self.key_number(",\"pid\":", u64::from(pid), out);
        out.extend_from_slice(b",\"comm\":");
        string(comm, out);
        if let Some(parent) = parent {
            self.key_number(",\"parent_pid\":", u64::from(parent), out);
        }
        out.extend_from_slice(b"}\n");
    }

    fn xid(&mut self, report: &Report, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"ts\":");
        self.seconds(report.at, out);
        out.extend_from_slice(b",\"type\":\"xid\",\"layer\":\"kernel\"");
        let fields = serde_json::Value::Object(super::xid::fields(report)).to_string();
        let fields = super::quantity::harmless(&fields);
        out.push(b',');
        out.extend_from_slice(fields.trim_start_matches('{').as_bytes());
        out.push(b'\n');
    }

    fn lost(&mut self, function: &str, count: u64, from: u64, to: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"ts\":");
        self.seconds(from, out);
        out.extend_from_slice(b",\"type\":\"lost\",\"until\":");
        self.seconds(to, out);
        self.key_number(",\"count\":", count, out);
        out.extend_from_slice(b",\"function\":");
        string(function, out);
        out.extend_from_slice(b"}\n");
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        let _ = writeln!(out, "{}", super::summary::to_json_line(summary));
    }
}

pub(crate) fn padded(number: u64, digits: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + digits, b'0');
    let mut rest = number;
    for place in out[start..].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

pub(crate) fn hex(number: u64, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\"0x");
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
    for place in (0..digits).rev() {
        out.push(DIGITS[(number >> (4 * place) & 15) as usize]);
    }
    out.push(b'"');
}

/// A JSON string; what is no control character, quote or backslash is copied as it is.
pub(crate) fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && !matches!(byte, b'"' | b'\\' | 0x7f | 0xc2) {
            continue;
        }
        // C1 controls, which some terminals obey, are 0xc2 and a second byte below 0xa0
        let second = bytes.get(index + 1).copied().filter(|_| byte == 0xc2);
        let c1 = second.filter(|second| *second < 0xa0);
        if byte == 0xc2 && c1.is_none() {
            continue;
        }
        out.extend_from_slice(&bytes[copied..index]);
        copied = index + 1 + usize::from(c1.is_some());
        match c1.unwrap_or(byte) {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            control => drop(write!(out, "\\u{control:04x}")),
        }
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_becomes_one_line_that_reads_back(text in any::<String>()) {
            let mut out = Vec::new();
            string(&text, &mut out);
            prop_assert!(!std::str::from_utf8(&out).unwrap().contains(char::is_control));
            let back: String = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(back, text);
        }

        #[test]
        fn hexadecimal_has_no_leading_zeros(number in any::<u64>()) {
            let mut out = Vec::new();
            hex(number, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), format!("\"{number:#x}\""));
        }
    }
}
