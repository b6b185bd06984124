//! What is wrong with one process so far, and why its devices were idle: as a summary of it says both.

use crate::model::snapshot::executed::{Device, IdleCause};
use crate::model::snapshot::{Finding, Snapshot, Work};
use crate::model::work::Certainty;
use serde::Serialize;

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
}

/// How long devices of a process had nothing to do, and why.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Idle {
    pub pid: u32,
    /// As the process numbers it; `None`: all of its devices together, by what it gave them.
    pub device: Option<u32>,
    pub seconds: f64,
    pub of_seconds: f64,
    /// `measured`; `bound`: at most where a device is named, at least where none is; `inferred`.
    pub certainty: String,
    /// Most time first; empty: they are known of what devices were seen to execute alone.
    pub causes: Vec<IdleCause>,
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
            None => "~",
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
    fn what_was_found_is_what_the_summary_says() {
        let found = Findings::of(&snapshot(), 7, 5.0).findings.unwrap();
        assert_eq!((found[0].rule.as_str(), found[0].share), ("sync-stall", 0.25));
        assert_eq!(
            (found[0].place.as_deref(), found[0].cure.as_str()),
            (Some("train.py:3 step"), "wait less")
        );
    }
}
