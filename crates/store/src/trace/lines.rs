//! Reads our own JSON lines back into rows: as far as they are whole, whatever cut them off.
//!
//! Owns what of a line is which part of a row. What a line has is written by `sink::json`.

use super::line::Line;
use super::reader::{End, Latest};
use crate::catalog::{Catalog, Class, CopyKind, HostMemory};
use crate::clock::Clock;
use crate::record::{Kind, Meta, Record, Taker};
use anyhow::{Result, anyhow, bail};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::sync::OnceLock;

/// The longest is that of the totals.
const LONGEST: u64 = 256 << 20;
/// Threads whose last calls are known; when there are more, nothing is known of any for a moment.
const MOST_THREADS: usize = 1 << 16;
/// What stands in the line of a call of the kernel driver beside what it was asked.
const OF_EVERY_CALL: [&str; 22] = [
    "event_id",
    "ts",
    "type",
    "layer",
    "name",
    "api",
    "phase",
    "duration_us",
    "pid",
    "tid",
    "comm",
    "depth",
    "parent_id",
    "category",
    "class",
    "failed",
    "blocking",
    "host",
    "stream",
    "address",
    "held",
    "stack",
];

/// JSON lines that are being read.
pub struct Lines<R: BufRead> {
    from: R,
    meta: Meta,
    functions: &'static Functions,
    /// Calls of each thread that may be around the next one of it: depth, number, time.
    callers: HashMap<u32, Vec<(u8, u64, i64)>>,
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
        let functions = match FUNCTIONS.get() {
            Some(known) => known,
            None => {
                let known = Functions::known(&Catalog::builtin()?);
                FUNCTIONS.get_or_init(|| known)
            }
        };
        Ok(Lines {
            from,
            meta,
            functions,
            callers: HashMap::new(),
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
        end
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
            // it has another line when it returns
            return Ok(Step::Row);
        }
        let texts = Texts::of(&line, kind);
        let event = self.event(&line, kind, &texts)?;
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
            Kind::Lost => Record {
                ns: line.scaled("until", 9).map(|until| until.abs_diff(at)),
                ..base
            },
            Kind::Idle => Record {
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

/// Texts of a row, which may have been escaped.
struct Texts<'a> {
    comm: Cow<'a, str>,
    layer: Cow<'a, str>,
    name: Cow<'a, str>,
    error: Option<Cow<'a, str>>,
    kernel: Option<Cow<'a, str>>,
    args: Option<Cow<'a, str>>,
    stack: Option<&'a str>,
    direction: Option<Cow<'a, str>>,
    host: Option<Cow<'a, str>>,
}

impl<'a> Texts<'a> {
    fn of(line: &Line<'a>, kind: Kind) -> Texts<'a> {
        let text = |name| line.text(name).unwrap_or_default();
        let name = match kind {
            Kind::Lost => "function",
            Kind::Idle => "cause",
            _ => "name",
        };
        Texts {
            comm: if kind == Kind::Xid {
                Cow::Borrowed("")
            } else {
                text("comm")
            },
            layer: text("layer"),
            name: if kind == Kind::Xid {
                Cow::Borrowed("Xid")
            } else {
                text(name)
            },
            error: line.text("error"),
            kernel: line.text("kernel"),
            args: args(line, kind),
            stack: line.json("stack"),
            direction: line.text("direction"),
            host: line.text("host"),
        }
    }

    fn direction(&self) -> Option<CopyKind> {
        let name = self.direction.as_deref()?;
        CopyKind::ALL.into_iter().find(|direction| direction.name() == name)
    }

    fn host(&self) -> Option<HostMemory> {
        HostMemory::from_name(self.host.as_deref()?)
    }
}

/// What a row of what a device has done has in columns of its own.
/// The number of a call holds in its file alone.
const OF_EVERY_ACTIVITY: [&str; 10] = [
    "ts",
    "type",
    "name",
    "pid",
    "comm",
    "duration_us",
    "bytes",
    "host",
    "stream",
    "call_id",
];

/// The same of what a program calls a phase of its own.
const OF_EVERY_RANGE: [&str; 8] = ["ts", "type", "name", "pid", "tid", "comm", "duration_us", "depth"];

/// The arguments of a call of a library; of other rows all that stands in the line beside what each has.
fn args<'a>(line: &Line<'a>, kind: Kind) -> Option<Cow<'a, str>> {
    let is_own = |name: &str| match kind {
        Kind::Kernel => !OF_EVERY_CALL.contains(&name),
        Kind::Xid => !["ts", "type", "layer"].contains(&name),
        Kind::Gpu => !OF_EVERY_ACTIVITY.contains(&name),
        Kind::Range | Kind::Mark => !OF_EVERY_RANGE.contains(&name),
        _ => !["ts", "type", "name", "pid", "tid", "comm", "stack"].contains(&name),
    };
    if kind == Kind::Call {
        return Some(Cow::Borrowed(line.json("args").unwrap_or("{}")));
    }
    let has_own = matches!(
        kind,
        Kind::Kernel | Kind::Xid | Kind::Process | Kind::Gpu | Kind::Range | Kind::Mark
    );
    if !has_own {
        return None;
    }
    let own = line.members().iter().filter(|(name, _)| is_own(name));
    let members: Vec<String> = own.map(|(name, value)| format!("\"{name}\":{value}")).collect();
    (!members.is_empty()).then(|| Cow::Owned(format!("{{{}}}", members.join(","))))
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// What the built-in catalogue knows of functions: lines of earlier versions do not say it.
struct Functions {
    by_name: HashMap<String, (Class, bool, Vec<i32>)>,
}

impl Functions {
    fn known(catalog: &Catalog) -> Functions {
        let judged = |row: &crate::catalog::Row| catalog.is_failure(row, 0xffff_fffe);
        let rows = catalog.rows.iter();
        Functions {
            by_name: rows
                .map(|row| (row.symbol.clone(), (row.class, judged(row), row.ok.clone())))
                .collect(),
        }
    }

    fn class(&self, line: &Line<'_>, name: &str) -> Class {
        let said = line.text("class").and_then(|name| Class::from_name(&name));
        let known = || self.by_name.get(name).map(|(class, ..)| *class);
        let grouped = || line.text("category").and_then(|name| Class::from_name(&name));
        said.or_else(known).or_else(grouped).unwrap_or(Class::Other)
    }

    fn is_failure(&self, name: &str, result: Option<i64>) -> bool {
        let code = result
            .and_then(|result| i32::try_from(result).ok())
            .filter(|code| *code != 0);
        let (Some(code), Some((_, true, fine))) = (code, self.by_name.get(name)) else {
            return false;
        };
        !fine.contains(&code)
    }
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
