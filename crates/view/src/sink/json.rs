//! JSON lines by the contract in docs/output.md: `meta`, then records, then `summary`; live or out of a recording.
//!
//! Written by hand: this is the hot path of the event plane, several times faster than a generic serializer.

mod fields;

use super::phases::Phases;
use crate::catalog::Catalog;
use crate::model::order::{Numbered, Numbers};
use crate::record::{Causes, Encoder, Ending, Kind, Meta, Record};
use crate::text::object::object_into;
use fields::{
    annotated, answered, args_into, asked, beside, end_with_stack, executed, fields_of, known, micros, number_of,
    opening, seconds, text, whose,
};
use std::collections::HashMap;

/// Writes JSON lines.
#[derive(Default)]
pub struct Json {
    start_ns: u64,
    /// Of calls that nobody has numbered.
    numbers: Numbers,
    /// Calls that activities may name.
    causes: Causes,
    /// Documented names of functions, where they differ from the symbol, for records that do not say them.
    apis: HashMap<String, String>,
    /// `None`: each call is one line.
    phases: Option<Phases>,
}

impl Json {
    /// For a recording, which has no documented names: with those of `catalog`.
    #[must_use]
    pub fn with_names(self, catalog: &Catalog) -> Json {
        let renamed = catalog.rows.iter().filter(|row| row.api != row.symbol);
        Json {
            apis: renamed.map(|row| (row.symbol.clone(), row.api.clone())).collect(),
            ..self
        }
    }

    /// Has entry and return be lines of their own.
    #[must_use]
    pub fn with_phases(self) -> Json {
        Json {
            phases: Some(Phases::default()),
            ..self
        }
    }

    fn number(&mut self, record: &Record<'_>) -> Numbered {
        record.number.unwrap_or_else(|| {
            let entered = self.start_ns.wrapping_add_signed(record.at);
            let caller = record.since_caller.map_or(0, |since| entered.wrapping_sub(since));
            self.numbers.number(record.tid, record.depth, entered, caller)
        })
    }

    /// `at`: the time of the line.
    fn identity(&self, record: &Record<'_>, number: Numbered, phase: Phase, at: i64, out: &mut Vec<u8>) {
        number_of("{\"event_id\":", Some(number.id), out);
        out.push(b',');
        opening(at, record.kind, out);
        self.what(record, out);
        text(",\"phase\":", phase.letter(), out);
        if phase != Phase::Entry {
            micros(",\"duration_us\":", record.ns, out);
            micros(",\"standstill_us\":", record.standstill_ns, out);
        }
        whose(record, number, out);
        text(",\"category\":", record.class.category(), out);
    }

    fn what(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        text(",\"layer\":", record.layer, out);
        text(",\"name\":", record.name, out);
        let documented = || self.apis.get(record.name).map(String::as_str);
        let api = record.api.or_else(documented).unwrap_or(record.name);
        text(",\"api\":", api, out);
    }

    fn whole(&self, record: &Record<'_>, number: Numbered, out: &mut Vec<u8>) {
        self.identity(record, number, Phase::Whole, record.at, out);
        asked(record, out);
        answered(record, out);
        known(record, out);
        end_with_stack(record, out);
    }

    fn entry(&self, record: &Record<'_>, number: Numbered, out: &mut Vec<u8>) {
        self.identity(record, number, Phase::Entry, record.at, out);
        asked(record, out);
        end_with_stack(record, out);
    }

    fn exit(&self, record: &Record<'_>, number: Numbered, out: &mut Vec<u8>) {
        self.identity(record, number, Phase::Return, record.end(), out);
        answered(record, out);
        known(record, out);
        out.extend_from_slice(b"}\n");
    }

    fn call(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        let number = self.number(record);
        self.causes.note(record, number.id);
        let Some(mut phases) = self.phases.take() else {
            return self.whole(record, number, out);
        };
        if record.ns.is_none() {
            self.whole(record, number, out);
        } else {
            if !phases.has_begun(number.id) {
                phases.release(record.at, out);
                self.entry(record, number, out);
            }
            let mut line = Vec::new();
            self.exit(record, number, &mut line);
            phases.keep(record.end(), record.depth, number.id, line);
        }
        self.phases = Some(phases);
    }

    /// A call that has not returned. `at_end`: and will not be seen to.
    fn open(&mut self, record: &Record<'_>, at_end: bool, out: &mut Vec<u8>) {
        let number = self.number(record);
        if let Some(phases) = self.phases.as_mut() {
            phases.begin(number.id);
            let begun = Record {
                kind: Kind::Call,
                ..*record
            };
            return self.entry(&begun, number, out);
        }
        out.push(b'{');
        opening(record.at, record.kind, out);
        self.what(record, out);
        micros(",\"open_us\":", record.ns, out);
        if at_end {
            out.extend_from_slice(b",\"at_end\":true");
        }
        whose(record, number, out);
        out.extend_from_slice(b",\"args\":");
        args_into(record, out);
        end_with_stack(record, out);
    }

    fn other(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        out.push(b'{');
        opening(record.at, record.kind, out);
        match record.kind {
            Kind::Xid => {
                text(",\"layer\":", record.layer, out);
                fields_of(record, out);
                return out.extend_from_slice(b"}\n");
            }
            Kind::Lost => {
                out.extend_from_slice(b",\"until\":");
                seconds(record.end(), out);
                number_of(",\"count\":", Some(record.count), out);
                text(",\"function\":", record.name, out);
                return out.extend_from_slice(b"}\n");
            }
            Kind::Snapshot => {
                out.extend_from_slice(b",\"totals\":");
                object_into(record.args.unwrap_or("{}"), out);
                return out.extend_from_slice(b"}\n");
            }
            Kind::Idle | Kind::DeviceIdle => {
                micros(",\"idle_us\":", record.ns, out);
                if !record.name.is_empty() {
                    text(",\"cause\":", record.name, out);
                }
            }
            Kind::Overhead => {
                text(",\"name\":", record.name, out);
                micros(",\"duration_us\":", record.ns, out);
            }
            Kind::Gpu => executed(record, out),
            Kind::Range | Kind::Mark => annotated(record, out),
            _ => text(",\"name\":", record.name, out),
        }
        beside(record, out);
        number_of(",\"pid\":", Some(record.pid.into()), out);
        let of_thread = record.kind != Kind::Process && record.tid != 0;
        number_of(",\"tid\":", Some(record.tid.into()).filter(|_| of_thread), out);
        if !record.comm.is_empty() {
            text(",\"comm\":", record.comm, out);
        }
        if record.kind == Kind::Gpu {
            number_of(",\"stream\":", record.stream, out);
            number_of(",\"call_id\":", self.causes.of(record), out);
        }
        fields_of(record, out);
        out.extend_from_slice(b"}\n");
    }

    /// Returns up to `until` are due.
    fn release(&mut self, until: i64, out: &mut Vec<u8>) {
        if let Some(phases) = self.phases.as_mut() {
            phases.release(until, out);
        }
    }
}

impl Encoder for Json {
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

    fn take(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        match record.kind {
            Kind::Call | Kind::Kernel => self.call(record, out),
            Kind::Open => self.open(record, false, out),
            Kind::Process => {
                self.release(record.at, out);
                self.other(record, out);
            }
            _ => self.other(record, out),
        }
        if record.kind == Kind::Process && record.name == "exit" {
            self.numbers.forget(record.pid);
        }
    }

    fn passed(&mut self, at: i64, out: &mut Vec<u8>) {
        self.release(at, out);
    }

    /// Once more, with how long it has been open by now; as phases it has its line already.
    fn take_unreturned(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        if self.phases.is_none() {
            self.open(record, true, out);
        }
    }

    fn finish(&mut self, ending: &Ending<'_>, out: &mut Vec<u8>) {
        self.release(i64::MAX, out);
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

/// Which part of a call a line is.
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

#[cfg(all(test, feature = "record"))]
mod tests {
    use super::*;
    use crate::export::sample;

    #[test]
    fn json_lines() {
        let mut jsonl = Json::default().with_names(&Catalog::builtin().unwrap());
        insta::assert_snapshot!(sample::written(&mut jsonl));
    }

    #[test]
    fn every_line_is_an_object() {
        let text = sample::written(&mut Json::default());
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.iter().all(|line| line.is_object() && line["type"].is_string()));
        assert_eq!(lines.len(), sample::events().len() + 2);
    }

    #[test]
    fn what_is_no_json_stays_text() {
        let event = Record {
            args: Some("{\"a\":1}\n{\"type\":\"summary\"}"),
            ..Record::new(Kind::Call, 0, 7)
        };
        let mut out = Vec::new();
        Json::default().take(&event, &mut out);
        let line: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(line["args"], event.args.unwrap());
    }
}
