//! What is wrong with one process so far, and why its devices were idle: as a summary of it says both.

use crate::frame::json::frame_of;
use crate::frame::lines::frame_place;
use crate::model::snapshot::executed::{Device, IdleCause};
use crate::model::snapshot::{Finding, Snapshot, Work};
use crate::model::work::Certainty;
use serde::Serialize;
use serde_json::Value;

/// In place of a process: all of them.
const ALL: u32 = 0;

/// What is wrong with one process so far, and why its devices were idle.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Findings {
    pub pid: u32,
    /// Its calls were looked at for so long.
    pub seconds: f64,
    /// What is grave first, then by cost; `None`: `not_looked_for` says why.
    pub findings: Option<Vec<Finding>>,
    pub not_looked_for: Option<String>,
    /// Most time first.
    pub idle: Vec<Idle>,
    /// The same.
    pub waits: Vec<WaitSite>,
}

/// Waits of one kind from one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct WaitSite {
    pub pid: u32,
    /// The function, or which hidden kind.
    pub what: String,
    /// Nobody asked for it by name.
    pub hidden: bool,
    /// Not all of it need have been waiting.
    pub(crate) is_at_most: bool,
    /// `None`: no call stack was taken.
    #[serde(rename = "where")]
    pub place: Option<String>,
    pub calls: u64,
    pub seconds: f64,
}

/// How long devices of a process had nothing to do, and why.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Idle {
    pub pid: u32,
    /// As the process numbers it; `None`: all of its devices together, by what it gave them.
    pub device: Option<u32>,
    pub seconds: f64,
    pub(crate) of_seconds: f64,
    /// `measured`; `bound`: at most where a device is named, at least where none is; `inferred`.
    pub certainty: String,
    /// Most time first; empty: they are known of what devices were seen to execute alone.
    pub(crate) causes: Vec<IdleCause>,
}

impl Findings {
    /// What a summary says of a process after so many seconds; `pid` 0: of all that are in it.
    pub(crate) fn of(snapshot: &Snapshot, pid: u32, seconds: f64) -> Findings {
        let is_its = |of: u32| pid == ALL || of == pid;
        let devices = snapshot.gpu.iter().flat_map(|gpu| &gpu.devices);
        let devices = devices.filter(|device| is_its(device.pid) && device.window_ns() > 0);
        let executed: Vec<Idle> = devices.map(Idle::measured).collect();
        let given = snapshot.work.iter().filter(|work| {
            let is_measured = executed.iter().any(|idle| idle.pid == work.pid);
            is_its(work.pid) && work.gpu.window_ns > 0 && !is_measured
        });
        let mut idle: Vec<Idle> = given.map(Idle::bounded).collect();
        idle.extend(executed);
        idle.sort_by(|left, right| right.seconds.total_cmp(&left.seconds));
        Findings {
            pid,
            seconds,
            findings: snapshot.findings.clone(),
            not_looked_for: snapshot.no_findings.clone(),
            idle,
            waits: waits(snapshot.work.iter().filter(|work| is_its(work.pid))),
        }
    }

    /// Nobody could look, and why.
    pub(crate) fn refused(pid: u32, why: String) -> Findings {
        Findings {
            pid,
            not_looked_for: Some(why),
            ..Findings::default()
        }
    }
}

/// Streams and stacks that lead to one line are one place.
fn waits<'a>(works: impl Iterator<Item = &'a Work>) -> Vec<WaitSite> {
    let mut all: Vec<WaitSite> = Vec::new();
    for new in works.flat_map(sites) {
        let key = |one: &WaitSite| (one.pid, one.what.clone(), one.hidden, one.is_at_most, one.place.clone());
        match all.iter_mut().find(|known| key(known) == key(&new)) {
            Some(known) => {
                known.calls += new.calls;
                known.seconds += new.seconds;
            }
            None => all.push(new),
        }
    }
    all.sort_by(|left, right| right.seconds.total_cmp(&left.seconds));
    all
}

fn sites(work: &Work) -> impl Iterator<Item = WaitSite> {
    let place = |stack: &[Value]| frame_place(&stack.iter().map(frame_of).collect::<Vec<_>>());
    let asked = work.waits.iter().map(move |wait| WaitSite {
        pid: work.pid,
        what: wait.function.clone(),
        hidden: false,
        is_at_most: false,
        place: place(&wait.stack),
        calls: wait.count,
        seconds: wait.total_ns as f64 / 1e9,
    });
    let hidden = work.hidden.iter().map(move |wait| WaitSite {
        pid: work.pid,
        what: wait.kind.clone(),
        hidden: true,
        is_at_most: wait.certainty != Certainty::Measured.name(),
        place: place(&wait.stack),
        calls: wait.count,
        seconds: wait.total_ns as f64 / 1e9,
    });
    asked.chain(hidden).filter(|site| site.calls > 0)
}

impl Idle {
    fn measured(device: &Device) -> Idle {
        Idle {
            pid: device.pid,
            device: Some(device.device),
            seconds: device.idle_ns as f64 / 1e9,
            of_seconds: device.window_ns() as f64 / 1e9,
            certainty: device.certainty.clone(),
            causes: device.idle_causes.clone(),
        }
    }

    fn bounded(work: &Work) -> Idle {
        Idle {
            pid: work.pid,
            device: None,
            seconds: work.gpu.idle_ns as f64 / 1e9,
            of_seconds: work.gpu.window_ns as f64 / 1e9,
            certainty: work.gpu.certainty.clone(),
            causes: Vec::new(),
        }
    }

    /// Before the time: what certainty makes of it.
    pub(crate) fn sign(&self) -> &'static str {
        let is = |certainty: Certainty| self.certainty == certainty.name();
        match self.device {
            _ if is(Certainty::Measured) => "",
            Some(_) => "≤",
            None if is(Certainty::Bound) => "≥",
            None => "≳",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn snapshot() -> Snapshot {
        let executed = json!({"pid": 7, "device": 1, "busy_us": 2e6, "idle_us": 1e6, "certainty": "measured",
            "idle_causes": [{"cause": "blocked", "idle_us": 9e5, "gaps": 3, "longest_us": 5e5, "where": "train.py:3"}]});
        let work = |pid: u32| json!({"pid": pid, "comm": "python", "gpu": {"window_us": 4e6, "idle_at_least_us": 2e6, "certainty": "bound"}});
        let summary = json!({
            "gpu": {"devices": [executed]},
            "work": [work(7), work(8)],
            "findings": [{"rule": "sync-stall", "title": "It waits", "cost_ns": 1, "share": 0.25, "certainty": "bound",
                "where": "train.py:3 step", "do": "wait less"}],
        });
        Snapshot::read(&summary).unwrap()
    }

    #[test]
    fn what_devices_executed_goes_before_what_follows_from_calls() {
        let measured = Findings::of(&snapshot(), 7, 5.0);
        assert_eq!(measured.idle.len(), 1);
        assert_eq!((measured.idle[0].device, measured.idle[0].sign()), (Some(1), ""));
        assert_eq!(measured.idle[0].causes[0].place.as_deref(), Some("train.py:3"));
        let bound = Findings::of(&snapshot(), 8, 5.0);
        assert_eq!((bound.idle[0].device, bound.idle[0].sign()), (None, "≥"));
        assert!(bound.idle[0].causes.is_empty());
        assert_eq!(Findings::of(&snapshot(), ALL, 5.0).idle.len(), 2);
    }

    #[test]
    fn waits_of_one_line_are_summed_and_those_without_a_stack_stay_apart() {
        let stack = |line: u32| json!([{"function": "step", "file": "train.py", "line": line, "language": "python"}]);
        let wait = |stack| json!({"function": "cuStreamSynchronize", "count": 2, "total_us": 1e6, "stack": stack});
        let summary = json!({"work": [
            {"pid": 7, "comm": "python", "waits": [wait(stack(3)), wait(stack(3)), wait(stack(9)), wait(json!([]))],
             "hidden": [{"kind": "free", "count": 1, "total_us": 5e5, "certainty": "inferred", "stack": stack(3)}]},
            {"pid": 8, "comm": "python", "waits": [wait(stack(3))]},
        ]});
        let waits = Findings::of(&Snapshot::read(&summary).unwrap(), 7, 5.0).waits;
        let told: Vec<(u64, f64, bool)> = waits
            .iter()
            .map(|wait| (wait.calls, wait.seconds, wait.is_at_most))
            .collect();
        assert_eq!(
            told,
            [(4, 2.0, false), (2, 1.0, false), (2, 1.0, false), (1, 0.5, true)]
        );
        assert!(
            waits[0]
                .place
                .as_deref()
                .is_some_and(|place| place.contains("train.py:3")),
            "{waits:?}"
        );
        assert!(waits.iter().any(|wait| wait.place.is_none()) && waits[3].hidden);
    }

    #[test]
    fn what_was_found_is_what_the_summary_says() {
        let found = Findings::of(&snapshot(), 7, 5.0).findings.unwrap();
        assert_eq!((found[0].rule.as_str(), found[0].share), ("sync-stall", 0.25));
        assert_eq!(
            (found[0].place.as_deref(), found[0].cure.as_str()),
            (Some("train.py:3 step"), "wait less")
        );
    }
}
