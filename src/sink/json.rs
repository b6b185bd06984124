//! JSON lines by the contract in docs/output.md: `meta`, then calls, then `summary`.
//!
//! Written by hand: this is the hot path of the event plane, several times faster than a generic serializer.

use super::phases::Phases;
use super::{Entry, Sink};
use crate::catalog::Class;
use crate::clock::Clock;
use crate::decode::{Call, Value};
use crate::model::beside::{Happening, Measure, Measured};
use crate::model::outside;
use crate::model::summary::Summary;
use crate::model::xid::Report;
use crate::text::quantity::drives_a_terminal;
use std::io::Write;

/// Writes JSON lines.
pub struct Json {
    clock: Clock,
    command: Vec<String>,
    tier: String,
    values: Values,
    /// `None`: each call is one record.
    phases: Option<Phases>,
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
            phases: None,
        }
    }

    /// Has entry and return be records of their own.
    #[must_use]
    pub fn with_phases(self) -> Json {
        Json {
            phases: Some(Phases::default()),
            ..self
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

    /// `at`: the time of the record, CLOCK_MONOTONIC ns.
    fn identity(&mut self, entry: &Entry<'_>, phase: Phase, at: u64, out: &mut Vec<u8>) {
        let header = &entry.call.header;
        self.key_number("{\"event_id\":", entry.number.id, out);
        out.extend_from_slice(b",\"ts\":");
        self.seconds(at, out);
        out.extend_from_slice(match entry.asked {
            None => &b",\"type\":\"userspace\",\"layer\":"[..],
            Some(_) => b",\"type\":\"kernel\",\"layer\":",
        });
        string(entry.layer, out);
        out.extend_from_slice(b",\"name\":");
        string(entry.name(), out);
        out.extend_from_slice(b",\"api\":");
        string(&entry.call.row.api, out);
        out.extend_from_slice(b",\"phase\":");
        string(phase.letter(), out);
        if entry.call.returned() && phase != Phase::Entry {
            out.extend_from_slice(b",\"duration_us\":");
            self.micros(header.duration, out);
        }
        if let Some(ns) = entry.facts.standstill_ns.filter(|_| phase != Phase::Entry) {
            out.extend_from_slice(b",\"standstill_us\":");
            self.micros(ns, out);
        }
        self.whose(entry, out);
    }

    fn whose(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        let header = &entry.call.header;
        self.key_number(",\"pid\":", u64::from(header.tgid), out);
        self.key_number(",\"tid\":", u64::from(header.tid), out);
        out.extend_from_slice(b",\"comm\":");
        string(entry.comm, out);
        self.key_number(",\"depth\":", u64::from(header.depth), out);
        if let Some(caller) = entry.number.caller {
            self.key_number(",\"parent_id\":", caller, out);
        }
    }

    /// What was called with what; of a call to the kernel driver also what it has answered.
    fn asked(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        if let Some(asked) = entry.asked {
            out.extend_from_slice(b",\"category\":");
            string(entry.call.row.class.category(), out);
            super::driver::fields_json(asked, out);
        } else {
            self.meaning(entry, out);
        }
    }

    fn whole(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        self.identity(entry, Phase::Whole, entry.call.header.entered, out);
        self.asked(entry, out);
        if entry.asked.is_none() {
            self.result(entry.call, out);
        }
        self.known(entry, out);
        end_with_stack(entry, out);
    }

    fn entry(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        self.identity(entry, Phase::Entry, entry.call.header.entered, out);
        self.asked(entry, out);
        end_with_stack(entry, out);
    }

    fn exit(&mut self, entry: &Entry<'_>, at: u64, out: &mut Vec<u8>) {
        self.identity(entry, Phase::Return, at, out);
        if entry.asked.is_none() {
            self.result(entry.call, out);
        }
        self.known(entry, out);
        out.extend_from_slice(b"}\n");
    }

    /// Returns up to `until` are due.
    fn release(&mut self, until: u64, out: &mut Vec<u8>) {
        if let Some(phases) = self.phases.as_mut() {
            phases.release(until, out);
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
        if let Some(size) = entry.size() {
            self.key_number(",\"size\":", size, out);
        }
        if let Some(direction) = entry.facts.direction.or_else(|| call.direction()) {
            out.extend_from_slice(b",\"direction\":");
            string(direction.name(), out);
        }
    }

    /// What a reader needs beyond the documented name, and what the models have followed.
    fn known(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        let (class, facts) = (entry.call.row.class, &entry.facts);
        if class.name() != class.category() {
            out.extend_from_slice(b",\"class\":");
            string(class.name(), out);
        }
        if entry.failed() {
            out.extend_from_slice(b",\"failed\":true");
        }
        if facts.blocking && class != Class::Sync {
            out.extend_from_slice(b",\"blocking\":true");
        }
        if let Some(host) = facts.host {
            out.extend_from_slice(b",\"host\":");
            string(host.name(), out);
        }
        for (key, number) in [(&b",\"stream\":"[..], facts.stream), (b",\"address\":", facts.address)] {
            if let Some(number) = number {
                out.extend_from_slice(key);
                hex(number, out);
            }
        }
        if let Some(held) = facts.held {
            self.key_number(",\"held\":", held, out);
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

/// Which part of a call a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Whole,
    Entry,
    Return,
}

impl Phase {
    fn letter(self) -> &'static str {
        match self {
            Phase::Whole => "X",
            Phase::Entry => "B",
            Phase::Return => "E",
        }
    }
}

fn end_with_stack(entry: &Entry<'_>, out: &mut Vec<u8>) {
    if let Some(stack) = entry.stack {
        out.extend_from_slice(b",\"stack\":");
        out.extend_from_slice(stack.text(crate::frame::json::frames_json).as_bytes());
    }
    out.extend_from_slice(b"}\n");
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
        let header = &entry.call.header;
        let Some(phases) = self.phases.as_mut().filter(|_| entry.call.returned()) else {
            return self.whole(entry, out);
        };
        let has_begun = phases.has_begun(entry.number.id);
        if !has_begun {
            phases.release(header.entered, out);
            self.entry(entry, out);
        }
        let (at, mut record) = (header.entered.saturating_add(header.duration), Vec::new());
        self.exit(entry, at, &mut record);
        if let Some(phases) = self.phases.as_mut() {
            phases.keep(at, header.depth, entry.number.id, record);
        }
    }

    fn open(&mut self, entry: &Entry<'_>, ns: u64, out: &mut Vec<u8>) {
        if let Some(phases) = self.phases.as_mut() {
            phases.begin(entry.number.id);
            return self.entry(entry, out);
        }
        out.extend_from_slice(b"{\"ts\":");
        self.seconds(entry.call.header.entered, out);
        out.extend_from_slice(b",\"type\":\"open\",\"layer\":");
        string(entry.layer, out);
        out.extend_from_slice(b",\"name\":");
        string(entry.name(), out);
        out.extend_from_slice(b",\"api\":");
        string(&entry.call.row.api, out);
        out.extend_from_slice(b",\"open_us\":");
        self.micros(ns, out);
        self.whose(entry, out);
        out.extend_from_slice(b",\"args\":");
        self.values.args(entry.call, out);
        end_with_stack(entry, out);
    }

    fn passed(&mut self, at: u64, out: &mut Vec<u8>) {
        self.release(at, out);
    }

    fn process(&mut self, pid: u32, at: u64, comm: &str, what: Happening, out: &mut Vec<u8>) {
        self.release(at, out);
        out.extend_from_slice(b"{\"ts\":");
        self.seconds(at, out);
        let (name, more) = match what {
            Happening::Forked { parent } => ("fork", Some((",\"parent_pid\":", parent))),
            Happening::Executed => ("exec", None),
            Happening::Exited => ("exit", None),
            Happening::Killed { signal } => ("exit", Some((",\"signal\":", signal))),
        };
        out.extend_from_slice(b",\"type\":\"process\",\"name\":");
        string(name, out);
        self.key_number(",\"pid\":", u64::from(pid), out);
        out.extend_from_slice(b",\"comm\":");
        string(comm, out);
        if let Some((key, number)) = more {
            self.key_number(key, u64::from(number), out);
        }
        out.extend_from_slice(b"}\n");
    }

    fn xid(&mut self, report: &Report, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"ts\":");
        self.seconds(report.at, out);
        out.extend_from_slice(b",\"type\":\"xid\",\"layer\":\"kernel\"");
        let fields = serde_json::Value::Object(super::xid::fields(report)).to_string();
        let fields = crate::text::quantity::harmless(&fields);
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

    fn measures(&self) -> bool {
        true
    }

    fn measure(&mut self, measure: &Measure, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"ts\":");
        self.seconds(measure.at, out);
        match &measure.what {
            Measured::Count {
                layer,
                function,
                class,
                calls,
            } => {
                out.extend_from_slice(b",\"type\":\"count\",\"name\":");
                string(function, out);
                out.extend_from_slice(b",\"layer\":");
                string(layer, out);
                out.extend_from_slice(b",\"class\":");
                string(class.name(), out);
                self.key_number(",\"count\":", *calls, out);
            }
            Measured::Value { name, value } => {
                out.extend_from_slice(b",\"type\":\"sample\",\"name\":");
                string(name, out);
                self.key_number(",\"value\":", *value, out);
            }
            Measured::Idle { ns } => {
                out.extend_from_slice(b",\"type\":\"idle\",\"idle_us\":");
                self.micros(*ns, out);
            }
            Measured::Outside { ns, stack } => {
                out.extend_from_slice(b",\"type\":\"sample\",\"name\":");
                string(outside::SAMPLE, out);
                out.extend_from_slice(b",\"outside_us\":");
                self.micros(*ns, out);
                if !stack.is_empty() {
                    out.extend_from_slice(b",\"stack\":");
                    out.extend_from_slice(stack.as_bytes());
                }
            }
        }
        self.key_number(",\"pid\":", u64::from(measure.pid), out);
        if measure.tid != 0 {
            self.key_number(",\"tid\":", u64::from(measure.tid), out);
        }
        out.extend_from_slice(b"}\n");
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        self.release(u64::MAX, out);
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

/// A JSON string; what drives no terminal and is no quote or backslash is copied as it is.
pub(crate) fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && !matches!(byte, b'"' | b'\\' | 0x7f | 0xc2 | 0xd8 | 0xe2) {
            continue;
        }
        // the first bytes of controls beyond ASCII, and of what turns the direction of writing
        let Some(character) = text.get(index..).and_then(|rest| rest.chars().next()) else {
            continue;
        };
        if !character.is_ascii() && !drives_a_terminal(character) {
            continue;
        }
        out.extend_from_slice(&bytes[copied..index]);
        copied = index + character.len_utf8();
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            other => drop(write!(out, "\\u{:04x}", other as u32)),
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
        fn any_text_becomes_one_line_that_reads_back(letters in proptest::collection::vec(
            prop_oneof![any::<char>(), proptest::sample::select(&['\u{202e}', '\u{2066}', '\u{61c}', '\u{9b}', 'é', '…'][..])],
            0..20,
        )) {
            let text: String = letters.into_iter().collect();
            let mut out = Vec::new();
            string(&text, &mut out);
            prop_assert!(!std::str::from_utf8(&out).unwrap().contains(drives_a_terminal));
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
