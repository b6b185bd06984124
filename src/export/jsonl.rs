//! JSON lines by the contract in docs/output.md: `meta` first, `summary` last.
//!
//! As the live lines, and with what a recording knows beyond them: streams, addresses, bytes held; also rows of the
//! types `count`, `sample` and `idle`.

use super::object::object_into;
use super::{Ending, Form};
use crate::catalog::{Catalog, Class};
use crate::model::order::Numbers;
use crate::sink::json::{hex, padded, string};
use crate::trace::{Event, Kind, Meta};
use std::collections::HashMap;
use std::io::Write;

/// Writes JSON lines.
#[derive(Default)]
pub struct Jsonl {
    numbers: Numbers,
    start_ns: u64,
    /// Documented names of functions, where they differ from the symbol.
    apis: HashMap<String, String>,
}

impl Jsonl {
    /// With the documented names that `catalog` has.
    #[must_use]
    pub fn new(catalog: &Catalog) -> Jsonl {
        let renamed = catalog.rows.iter().filter(|row| row.api != row.symbol);
        Jsonl {
            apis: renamed.map(|row| (row.symbol.clone(), row.api.clone())).collect(),
            ..Jsonl::default()
        }
    }

    fn call(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let entered = self.start_ns.wrapping_add_signed(event.at);
        let caller = event.since_caller.map_or(0, |since| entered.wrapping_sub(since));
        let number = self.numbers.number(event.tid, event.depth, entered, caller);
        let _ = write!(out, "{{\"event_id\":{},", number.id);
        opening(event, out);
        text(",\"layer\":", event.layer, out);
        text(",\"name\":", event.name, out);
        text(
            ",\"api\":",
            self.apis.get(event.name).map_or(event.name, |api| api),
            out,
        );
        out.extend_from_slice(b",\"phase\":\"X\"");
        micros(",\"duration_us\":", event.ns, out);
        whose(event, out);
        let _ = write!(out, ",\"depth\":{}", event.depth);
        number_of(",\"parent_id\":", number.caller, out);
        text(",\"category\":", event.class.category(), out);
        match (event.kind, event.args) {
            (Kind::Kernel, Some(fields)) => fields_into(fields, out),
            _ => said(event, out),
        }
        known(event, out);
        if let Some(stack) = event.stack {
            out.extend_from_slice(b",\"stack\":");
            object_into(stack, out);
        }
    }

    fn other(event: &Event<'_>, out: &mut Vec<u8>) {
        out.push(b'{');
        opening(event, out);
        match event.kind {
            Kind::Xid => {
                text(",\"layer\":", event.layer, out);
                return event.args.into_iter().for_each(|args| fields_into(args, out));
            }
            Kind::Lost => {
                out.extend_from_slice(b",\"until\":");
                seconds(event.end(), out);
                number_of(",\"count\":", Some(event.count), out);
                return text(",\"function\":", event.name, out);
            }
            Kind::Idle => micros(",\"idle_us\":", event.ns, out),
            _ => text(",\"name\":", event.name, out),
        }
        if event.kind == Kind::Count {
            text(",\"layer\":", event.layer, out);
            text(",\"class\":", event.class.name(), out);
            number_of(",\"count\":", Some(event.count), out);
            micros(",\"total_us\":", event.ns, out);
        }
        if event.kind == Kind::Sample {
            number_of(",\"value\":", event.bytes, out);
            micros(",\"outside_us\":", event.ns, out);
            if let Some(stack) = event.stack {
                out.extend_from_slice(b",\"stack\":");
                object_into(stack, out);
            }
        }
        number_of(",\"pid\":", Some(event.pid.into()), out);
        let of_thread = event.kind != Kind::Process && event.tid != 0;
        number_of(",\"tid\":", Some(event.tid.into()).filter(|_| of_thread), out);
        text(",\"comm\":", event.comm, out);
        event.args.into_iter().for_each(|args| fields_into(args, out));
    }
}

impl Form for Jsonl {
    fn start(&mut self, meta: &Meta, out: &mut Vec<u8>) {
        self.start_ns = meta.clock.start_monotonic_ns;
        let meta = serde_json::json!({
            "type": "meta",
            "tool": "gpuscope",
            "version": meta.tool,
            "start_monotonic_ns": meta.clock.start_monotonic_ns,
            "start_unix_ns": meta.clock.start_unix_ns,
            "command": meta.command,
            "attach": meta.tier,
            "host": meta.host,
        });
        object_into(&meta.to_string(), out);
        out.push(b'\n');
    }

    fn take(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event.kind {
            Kind::Call | Kind::Kernel => self.call(event, out),
            _ => Jsonl::other(event, out),
        }
        if event.kind == Kind::Process && event.name == "exit" {
            self.numbers.forget(event.pid);
        }
        out.extend_from_slice(b"}\n");
    }

    fn finish(&mut self, ending: &Ending<'_>, out: &mut Vec<u8>) {
        match (ending.summary, ending.cut) {
            (Some(summary), _) => object_into(summary, out),
            (None, why) => {
                text("{\"type\":\"cut\",\"why\":", why.unwrap_or("its end is missing"), out);
                out.push(b'}');
            }
        }
        out.push(b'\n');
    }
}

fn opening(event: &Event<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"ts\":");
    seconds(event.at, out);
    text(",\"type\":", event.kind.name(), out);
}

fn whose(event: &Event<'_>, out: &mut Vec<u8>) {
    let _ = write!(out, ",\"pid\":{},\"tid\":{}", event.pid, event.tid);
    text(",\"comm\":", event.comm, out);
}

/// What the call was told and has answered.
fn said(event: &Event<'_>, out: &mut Vec<u8>) {
    event
        .kernel
        .into_iter()
        .for_each(|kernel| text(",\"kernel\":", kernel, out));
    out.extend_from_slice(b",\"args\":");
    object_into(event.args.unwrap_or("{}"), out);
    number_of(",\"size\":", event.bytes, out);
    if let Some(direction) = event.direction {
        text(",\"direction\":", direction.name(), out);
    }
    if let Some(result) = event.result {
        let _ = write!(out, ",\"ret\":{result}");
    }
    event
        .error
        .into_iter()
        .for_each(|error| text(",\"error\":", error, out));
}

/// What the models knew of it.
fn known(event: &Event<'_>, out: &mut Vec<u8>) {
    class(event, out);
    for (is_so, words) in [
        (event.failed, &b",\"failed\":true"[..]),
        (event.blocking && event.class != Class::Sync, b",\"blocking\":true"),
    ] {
        if is_so {
            out.extend_from_slice(words);
        }
    }
    if let Some(host) = event.host {
        text(",\"host\":", host.name(), out);
    }
    for (key, number) in [(",\"stream\":", event.stream), (",\"address\":", event.address)] {
        if let Some(number) = number {
            out.extend_from_slice(key.as_bytes());
            hex(number, out);
        }
    }
    number_of(",\"held\":", event.held, out);
}

/// Where it says more than the category.
fn class(event: &Event<'_>, out: &mut Vec<u8>) {
    if event.class.name() != event.class.category() {
        text(",\"class\":", event.class.name(), out);
    }
}

/// The fields of an object, each behind a comma.
fn fields_into(object: &str, out: &mut Vec<u8>) {
    let start = out.len();
    object_into(object, out);
    match out.get(start..) {
        Some(b"{}") => out.truncate(start),
        Some([b'{', ..]) => {
            out[start] = b',';
            out.pop();
        }
        // it was no object
        _ => {
            out.splice(start..start, *b",\"args\":");
        }
    }
}

fn text(key: &str, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(key.as_bytes());
    string(text, out);
}

fn number_of(key: &str, number: Option<u64>, out: &mut Vec<u8>) {
    if let Some(number) = number {
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }
}

fn micros(key: &str, ns: Option<u64>, out: &mut Vec<u8>) {
    if let Some(ns) = ns {
        number_of(key, Some(ns / 1000), out);
        out.push(b'.');
        padded(ns % 1000, 3, out);
    }
}

/// Nine decimals.
fn seconds(at: i64, out: &mut Vec<u8>) {
    if at < 0 {
        out.push(b'-');
    }
    number_of("", Some(at.unsigned_abs() / 1_000_000_000), out);
    out.push(b'.');
    padded(at.unsigned_abs() % 1_000_000_000, 9, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::sample;

    #[test]
    fn json_lines() {
        let mut jsonl = Jsonl::new(&Catalog::builtin().unwrap());
        insta::assert_snapshot!(sample::written(&mut jsonl));
    }

    #[test]
    fn every_line_is_an_object() {
        let text = sample::written(&mut Jsonl::default());
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.iter().all(|line| line.is_object() && line["type"].is_string()));
        assert_eq!(lines.len(), sample::events().len() + 2);
    }

    #[test]
    fn what_is_no_json_stays_text() {
        let event = Event {
            args: Some("{\"a\":1}\n{\"type\":\"summary\"}"),
            ..Event::new(Kind::Call, 0, 7)
        };
        let mut out = Vec::new();
        Jsonl::default().take(&event, &mut out);
        let line: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(line["args"], event.args.unwrap());
    }
}
