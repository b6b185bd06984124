//! Requests for recordings: what Alertmanager posts, or nobody in particular, and which processes they mean.

use crate::owner::Owner;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests that are taken in a minute.
const A_MINUTE: usize = 6;
const MINUTE: Duration = Duration::from_secs(60);
/// What Prometheus puts before a label that a target has of its own.
const EXPORTED: &str = "exported_";

/// A program that is traced, as far as labels of an alert may mean it.
#[derive(Debug, Clone)]
pub(crate) struct Program<'a> {
    pub pid: u32,
    pub owner: Option<&'a Owner>,
}

/// Which processes are meant: those that one of these sets of labels fits; without any set, all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ask(Vec<BTreeMap<String, String>>);

/// Alertmanager's webhook, as far as it matters.
#[derive(Deserialize)]
struct Notification {
    alerts: Vec<Alert>,
}

#[derive(Deserialize)]
struct Alert {
    #[serde(default)]
    status: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl Ask {
    /// What a request says: nothing, or alerts. `None`: none of these fires any more.
    ///
    /// # Errors
    /// It says something else.
    pub(crate) fn parse(body: &[u8]) -> Result<Option<Ask>, String> {
        if body.trim_ascii().is_empty() {
            return Ok(Some(Ask::default()));
        }
        let said: Notification = serde_json::from_slice(body)
            .map_err(|error| format!("this is no notification of Alertmanager: {error}"))?;
        let firing = said.alerts.into_iter().filter(|alert| alert.status != "resolved");
        let sets: Vec<_> = firing.map(|alert| alert.labels).collect();
        Ok((!sets.is_empty()).then_some(Ask(sets)))
    }

    /// Whether a program is meant. `names`: the labels that owners have; `on_gpu`: processes on the GPU of that index.
    /// A label that says nothing of a program says nothing here, nor does a GPU on which nobody is known to be.
    pub(crate) fn means(
        &self,
        program: &Program<'_>,
        names: &[String],
        on_gpu: &dyn Fn(&str) -> BTreeSet<u32>,
    ) -> bool {
        let fits = |set: &BTreeMap<String, String>| {
            let is_owners = names.iter().all(|name| {
                let has = program.owner.and_then(|owner| owner.get(name)).unwrap_or_default();
                name == "pid" || told(set, name).is_none_or(|wanted| wanted == has)
            });
            let is_it = told(set, "pid").is_none_or(|pid| pid == program.pid.to_string());
            let is_there = told(set, "gpu").is_none_or(|gpu| {
                let there = on_gpu(gpu);
                there.is_empty() || there.contains(&program.pid)
            });
            is_owners && is_it && is_there
        };
        self.0.is_empty() || self.0.iter().any(fits)
    }
}

fn told<'a>(set: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    let exported = set.get(&format!("{EXPORTED}{name}"));
    exported.or_else(|| set.get(name)).map(String::as_str)
}

/// Requests on their way from the web server to who keeps.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    open: AtomicBool,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    waiting: Vec<Ask>,
    times: VecDeque<Instant>,
}

impl Asks {
    /// From now on there is somebody who keeps.
    pub(crate) fn open(&self) {
        self.open.store(true, Ordering::Release);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Whether one more may ask at `now`; it is counted.
    pub(crate) fn may_ask(&self, now: Instant) -> bool {
        let times = &mut self.taken().times;
        while times
            .pop_front_if(|at| now.saturating_duration_since(*at) >= MINUTE)
            .is_some()
        {}
        let may = times.len() < A_MINUTE;
        if may {
            times.push_back(now);
        }
        may
    }

    pub(crate) fn add(&self, ask: Ask) {
        self.taken().waiting.push(ask);
    }

    pub(crate) fn take(&self) -> Vec<Ask> {
        std::mem::take(&mut self.taken().waiting)
    }

    fn taken(&self) -> std::sync::MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::fixture::owner;

    /// PIDs of 7 and 8, of `train` and `serve` in one pod; 7 is on GPU 0.
    fn meant(body: &str) -> Vec<u32> {
        let ask = Ask::parse(body.as_bytes())
            .expect("a request")
            .expect("something fires");
        let names = ["comm", "pod"].map(str::to_owned);
        let on_gpu = |gpu: &str| match gpu {
            "0" => BTreeSet::from([7]),
            _ => BTreeSet::new(),
        };
        let is_meant = |(pid, comm): &(u32, &str)| {
            let owner = owner(&[("comm", comm), ("pod", "a")]);
            let program = Program {
                pid: *pid,
                owner: Some(&owner),
            };
            ask.means(&program, &names, &on_gpu)
        };
        let known = [(7, "train"), (8, "serve")].into_iter();
        known.filter(is_meant).map(|(pid, _)| pid).collect()
    }

    fn alert(labels: &str) -> String {
        format!(r#"{{"version":"4","status":"firing","alerts":[{{"status":"firing","labels":{{{labels}}}}}]}}"#)
    }

    #[test]
    fn who_says_nothing_means_everybody() {
        for body in ["", " \n", &alert(r#""alertname":"Slow","severity":"page""#)] {
            assert_eq!(meant(body), [7, 8], "{body:?}");
        }
    }

    #[test]
    fn labels_of_an_alert_choose_programs() {
        for (labels, expected) in [
            (r#""comm":"train""#, vec![7]),
            (r#""pod":"a","pid":"8""#, vec![8]),
            (r#""pod":"a","comm":"nobody""#, vec![]),
            (r#""pod":"gpuscope-x","exported_pod":"a""#, vec![7, 8]),
            (r#""gpu":"0""#, vec![7]),
            (r#""gpu":"5""#, vec![7, 8]),
        ] {
            assert_eq!(meant(&alert(labels)), expected, "{labels}");
        }
    }

    #[test]
    fn one_of_several_alerts_is_enough_and_resolved_ones_mean_nobody() {
        let alerts = r#"{"alerts":[{"labels":{"comm":"x"}},{"labels":{"comm":"serve"}},
            {"status":"resolved","labels":{"comm":"train"}}]}"#;
        assert_eq!(meant(alerts), [8]);
        let resolved = br#"{"alerts":[{"status":"resolved","labels":{"comm":"train"}}]}"#;
        assert_eq!(Ask::parse(resolved), Ok(None));
    }

    #[test]
    fn what_is_no_notification_is_refused() {
        for body in ["x", "[]", "{}", r#"{"alerts":[{"labels":{"pid":7}}]}"#, "\u{0}"] {
            let said = Ask::parse(body.as_bytes()).unwrap_err();
            assert!(said.starts_with("this is no notification of Alertmanager: "), "{said}");
        }
    }

    #[test]
    fn so_many_may_ask_in_a_minute() {
        let (asks, now) = (Asks::default(), Instant::now());
        assert!(!asks.is_open());
        assert!((0..A_MINUTE).all(|_| asks.may_ask(now)));
        assert!(!asks.may_ask(now + MINUTE / 2));
        assert!(asks.may_ask(now + MINUTE));
    }
}
