//! Reads our own JSON lines back into rows: as far as they are whole, whatever cut them off.
//!
//! Owns what of a line is which part of a row; of its texts `texts` does. What a line has is written by `sink::json`.

mod functions;
mod texts;

use super::line::Line;
use super::reader::{End, Latest};
use crate::catalog::{Class, CopyKind};
use crate::clock::Clock;
use crate::record::{Kind, Meta, Record, Taker};
use anyhow::{Result, anyhow, bail};
use functions::Functions;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Read};
use texts::Texts;

/// The longest is that of the totals.
const LONGEST: u64 = 256 << 20;
/// Threads whose last calls are known; when there are more, nothing is known of any for a moment.
const MOST_THREADS: usize = 1 << 16;
/// Calls that have not returned, and the longest line of one; of others nothing is told.
const MOST_OPEN: usize = 4096;
const AT_END: &str = "\"at_end\":true";
const LONGEST_OPEN: usize = 16 << 10;

/// JSON lines that are being read.
pub struct Lines<R: BufRead> {
    from: R,
    meta: Meta,
    functions: &'static Functions,
    /// Calls of each thread that may be around the next one of it: depth, number, time.
    callers: HashMap<u32, Vec<(u8, u64, i64)>>,
    /// Lines of calls that have not returned, the last of each, by thread and entry.
    open: BTreeMap<(u32, i64), String>,
}

/// What a line is about.
enum Step {
    Row,
    Summary,
    /// What was read was cut off itself.
    Cut(String),
}

impl<R: BufRead> Lines<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// They are none of ours.
    pub fn new(mut from: R) -> Result<Lines<R>> {
        let refused = |why: String| {
            anyhow!("it is no recording: {why}\nhint: gpuscope run -o FILE.jsonl writes lines that can be read")
        };
        let first = next(&mut from).map_err(refused)?;
        let first = first.ok_or_else(|| refused("it is empty".to_owned()))?;
        let meta = Line::of(&first).and_then(|line| meta(&line)).map_err(refused)?;
        Ok(Lines {
            from,
            meta,
            functions: Functions::builtin()?,
            callers: HashMap::new(),
            open: BTreeMap::new(),
        })
    }

    /// What is known of the trace.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Hands all rows to `taker`, snapshots as totals, and the summary to nobody.
    pub fn read(mut self, taker: &mut dyn Taker) -> End {
        taker.start(&self.meta);
        let mut end = End::default();
        end.cut = loop {
            match next(&mut self.from) {
                Ok(Some(line)) => match self.take(&line, taker, &mut end) {
                    Ok(Step::Row) => {}
                    Ok(Step::Summary) => break None,
                    Ok(Step::Cut(why)) => break Some(why),
                    Err(why) => break Some(format!("it is damaged: {why}")),
                },
                Ok(None) => break Some("its end is missing: it was cut off, or is still being written".to_owned()),
                Err(why) => break Some(why),
            }
        };
        self.tell_open(taker, &mut end);
        end
    }

    /// Calls that had not returned by the end. Of lines that were cut off: that have no line of their return.
    fn tell_open(&mut self, taker: &mut dyn Taker, end: &mut End) {
        for text in std::mem::take(&mut self.open).into_values() {
            // each was a line before
            let Ok(line) = Line::of(&text) else { continue };
            if end.summary.is_some() && !line.is_true("at_end") {
                continue;
            }
            let texts = Texts::of(&line, Kind::Open);
            if let Ok(event) = self.event(&line, Kind::Open, &texts) {
                end.rows += 1;
                taker.take(&event);
            }
        }
    }

    fn take(&mut self, text: &str, taker: &mut dyn Taker, end: &mut End) -> Result<Step, String> {
        let line = Line::of(text)?;
        let kind = line.text("type").unwrap_or_default();
        if kind == "cut" {
            let why = line.text("why").unwrap_or_default();
            return Ok(Step::Cut(why.into_owned()));
        }
        end.all_rows += 1;
        if kind == "summary" {
            (end.summary, end.snapshot) = (Some(text.to_owned()), None);
            return Ok(Step::Summary);
        }
        let kind = Kind::from_name(&kind).ok_or("a line is of an unknown type")?;
        if kind == Kind::Snapshot {
            let latest = latest(&line)?;
            taker.totals(latest.at, &latest.totals);
            end.snapshot = Some(latest);
            return Ok(Step::Row);
        }
        if kind == Kind::Open {
            // it may have another line when it returns
            let key = (line.number("tid").unwrap_or(0), line.scaled("ts", 9).unwrap_or(0));
            // those that are told come last, and together
            if line.is_true("at_end") && self.open.len() >= MOST_OPEN {
                self.open.retain(|_, before| before.contains(AT_END));
            }
            let has_room = self.open.len() < MOST_OPEN || self.open.contains_key(&key);
            if has_room && text.len() <= LONGEST_OPEN {
                self.open.insert(key, text.to_owned());
            }
            return Ok(Step::Row);
        }
        let texts = Texts::of(&line, kind);
        let event = self.event(&line, kind, &texts)?;
        if kind == Kind::Call && !self.open.is_empty() {
            self.open.remove(&(event.tid, event.at));
        }
        end.rows += 1;
        taker.take(&event);
        Ok(Step::Row)
    }

    fn event<'a>(&mut self, line: &Line<'a>, kind: Kind, texts: &'a Texts<'a>) -> Result<Record<'a>, String> {
        let at = line.scaled("ts", 9).ok_or("a line has no time")?;
        // of a fault it is who caused it, and the row is nobody's
        let pid = line.number("pid").filter(|_| kind != Kind::Xid).unwrap_or(0);
        let base = Record {
            tid: line
                .number("tid")
                .unwrap_or(if matches!(kind, Kind::Process) { pid } else { 0 }),
            comm: &texts.comm,
            layer: &texts.layer,
            name: &texts.name,
            count: line.number("count").unwrap_or(1),
            args: texts.args.as_deref(),
            ..Record::new(kind, at, pid)
        };
        Ok(match kind {
            Kind::Call | Kind::Kernel => self.call(line, base, texts),
            Kind::Open => Record {
                ns: micros(line, "open_us"),
                ..self.call(line, base, texts)
            },
            Kind::Lost => Record {
                ns: line.scaled("until", 9).map(|until| until.abs_diff(at)),
                ..base
            },
            Kind::Idle | Kind::DeviceIdle => Record {
                ns: micros(line, "idle_us"),
                ..base
            },
            Kind::Sample => Record {
                bytes: line.number("value"),
                ns: micros(line, "outside_us"),
                stack: texts.stack,
                ..base
            },
            Kind::Gpu => Record {
                ns: micros(line, "duration_us"),
                bytes: line.number("bytes"),
                direction: CopyKind::ALL
                    .into_iter()
                    .find(|direction| direction.name() == texts.name),
                host: texts.host(),
                stream: line.number("stream"),
                layer: "gpu",
                ..base
            },
            Kind::Overhead => Record {
                ns: micros(line, "duration_us"),
                layer: "cupti",
                ..base
            },
            Kind::Range | Kind::Mark => Record {
                ns: micros(line, "duration_us"),
                depth: line.number("depth").unwrap_or(0),
                layer: "nvtx",
                ..base
            },
            Kind::ThreadName => Record { layer: "nvtx", ..base },
            Kind::Count => Record {
                class: self.functions.class(line, &texts.name),
                ns: micros(line, "total_us"),
                ..base
            },
            _ => base,
        })
    }

    fn call<'a>(&mut self, line: &Line<'_>, base: Record<'a>, texts: &'a Texts<'a>) -> Record<'a> {
        let class = self.functions.class(line, &texts.name);
        let depth = line.number("depth").unwrap_or(0);
        let result: Option<i64> = line.number("ret").or_else(|| Some(line.number::<u64>("ret")? as i64));
        let own = (line.number("event_id").unwrap_or(0), base.at);
        Record {
            ns: micros(line, "duration_us"),
            class,
            depth,
            since_caller: self.since_caller(line, base.tid, depth, own),
            result,
            error: texts.error.as_deref(),
            failed: line.is_true("failed") || self.functions.is_failure(&texts.name, result),
            bytes: line.number("size"),
            direction: texts.direction(),
            host: texts.host(),
            blocking: class == Class::Sync || line.is_true("blocking"),
            stream: line.address("stream"),
            address: line.address("address"),
            held: line.number("held"),
            kernel: texts.kernel.as_deref(),
            stack: texts.stack,
            ..base
        }
    }

    /// How long before it the call around it was entered, where that has a line.
    fn since_caller(&mut self, line: &Line<'_>, tid: u32, depth: u8, own: (u64, i64)) -> Option<u64> {
        if self.callers.len() >= MOST_THREADS && !self.callers.contains_key(&tid) {
            self.callers.clear();
        }
        let around = self.callers.entry(tid).or_default();
        while around.pop_if(|(other, ..)| *other >= depth).is_some() {}
        let caller: Option<u64> = line.number("parent_id");
        let found = around.iter().rev().find(|(_, id, _)| Some(*id) == caller);
        let since = found.map(|(_, _, at)| own.1.abs_diff(*at));
        around.push((depth, own.0, own.1));
        since
    }
}

/// What `export` makes of the last snapshot of a recording that was cut off, behind its rows.
fn latest(line: &Line<'_>) -> Result<Latest, String> {
    Ok(Latest {
        at: line.scaled("ts", 9).ok_or("a line has no time")?,
        totals: line.json("totals").ok_or("a snapshot has no totals")?.to_owned(),
        rows_after: None,
        whole: true,
    })
}

/// The next line, without its end.
fn next(from: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut line = Vec::new();
    let taken = from.take(LONGEST).read_until(b'\n', &mut line);
    match taken.map_err(|error| format!("it cannot be read any further: {error}"))? {
        0 => return Ok(None),
        _ if line.pop() != Some(b'\n') => return Err("it ends within a line: it was cut off".to_owned()),
        _ => {}
    }
    let text = String::from_utf8(line).map_err(|_| "it is damaged: a line is no UTF-8".to_owned())?;
    Ok(Some(text))
}

fn micros(line: &Line<'_>, name: &str) -> Option<u64> {
    line.scaled(name, 3).and_then(|ns| u64::try_from(ns).ok())
}

fn meta(line: &Line<'_>) -> Result<Meta, String> {
    let text = |name| line.text(name).unwrap_or_default().into_owned();
    if text("type") != "meta" || text("tool") != "gpuscope" {
        return Err("its first line is no meta line of gpuscope".to_owned());
    }
    let clock = Clock {
        start_monotonic_ns: line.number("start_monotonic_ns").ok_or("its meta line has no start")?,
        start_unix_ns: line.number("start_unix_ns").ok_or("its meta line has no start")?,
    };
    let command = line.json("command").and_then(|words| serde_json::from_str(words).ok());
    Ok(Meta {
        clock,
        command: command.unwrap_or_default(),
        tier: text("attach"),
        host: text("host"),
        tool: text("version"),
    })
}

/// Whether these are lines rather than a recording.
///
/// # Errors
/// It cannot be read.
pub(super) fn are_lines(from: &mut impl BufRead) -> Result<bool> {
    match from.fill_buf() {
        Ok(bytes) => Ok(bytes.first() == Some(&b'{')),
        Err(error) => bail!("it cannot be read: {error}"),
    }
}
