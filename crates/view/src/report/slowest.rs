//! The slowest single calls, and those that had not returned.

use super::site;
use crate::record::Record;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Calls that are kept.
const KEPT: usize = 10;
/// Bytes of arguments or of a stack that are kept.
const LONGEST: usize = 1 << 14;

/// One call.
#[derive(Debug, Clone, Serialize)]
pub struct Slow {
    pub(crate) at_ns: i64,
    pub ns: u64,
    pub pid: u32,
    pub tid: u32,
    pub comm: String,
    pub layer: String,
    pub name: String,
    /// Name of its result, where it is a code.
    pub result: Option<String>,
    pub failed: bool,
    pub kernel: Option<String>,
    /// JSON object, as docs/output.md has it; `None`: not known, or too long.
    #[serde(serialize_with = "as_json")]
    pub args: Option<String>,
    /// JSON array of frames, innermost first.
    #[serde(serialize_with = "as_json")]
    pub stack: Option<String>,
    /// The frame that a person looks for.
    pub site: Option<String>,
}

/// Single calls, the slowest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Slowest(Vec<Slow>);

impl Slowest {
    /// Calls within calls are left out: what is around them took longer.
    pub(super) fn take(&mut self, event: &Record<'_>) {
        let Some(ns) = event.ns.filter(|_| event.depth == 0) else {
            return;
        };
        keep(&mut self.0, event, ns);
    }

    pub(super) fn list(&self) -> Vec<Slow> {
        self.0.clone()
    }
}

/// Calls that had not returned by the end of the recording.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Unreturned {
    /// All of them, those within others, too.
    pub count: u64,
    /// Those that had been open for longest, the outermost of equal ones first.
    pub longest: Vec<Slow>,
}

impl Unreturned {
    pub(super) fn take(&mut self, event: &Record<'_>) {
        self.count = self.count.saturating_add(1);
        keep(&mut self.longest, event, event.ns.unwrap_or(0));
    }
}

/// Puts a call among the longest, if it is one of them; of equal ones the first stays before.
fn keep(longest: &mut Vec<Slow>, event: &Record<'_>, ns: u64) {
    let place = longest.partition_point(|one| one.ns >= ns);
    if place < KEPT {
        longest.insert(place, Slow::of(event, ns));
        longest.truncate(KEPT);
    }
}

impl Slow {
    fn of(event: &Record<'_>, ns: u64) -> Slow {
        let brief = |text: &&str| text.len() <= LONGEST;
        Slow {
            at_ns: event.at,
            ns,
            pid: event.pid,
            tid: event.tid,
            comm: event.comm.to_owned(),
            layer: event.layer.to_owned(),
            name: event.name.to_owned(),
            result: event.error.map(str::to_owned),
            failed: event.failed,
            kernel: event.kernel.map(str::to_owned),
            args: event.args.filter(brief).map(str::to_owned),
            stack: event.stack.filter(brief).map(str::to_owned),
            site: event.stack.and_then(site::place),
        }
    }
}

/// What is no JSON is nothing.
fn as_json<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    let value = text
        .as_deref()
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    value.serialize(serializer)
}
