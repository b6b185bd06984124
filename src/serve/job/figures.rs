//! Sums of a job over the exporters of its nodes.

use super::Wanted;
use super::read::{Metrics, Series};
use crate::model::waiting::Waiting;
use crate::model::work::{HiddenKind, Reason};
use std::collections::{BTreeMap, BTreeSet};

/// Answers of queries, no errors.
const NOT_READY: [&str; 2] = ["cudaErrorNotReady", "CUDA_ERROR_NOT_READY"];

/// By so much sums of one scrape may differ.
const UNEVEN_SECONDS: f64 = 0.01;
/// Of what `--keep` tells alone: of it nothing here is made.
const OF_BLACK_BOX: &str = "call_ring";

/// What is known of a job. Times in seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Exporters that were asked, and those that know the job.
    pub nodes: usize,
    pub nodes_with_job: usize,
    /// Exporters that did not answer: what they know is missing.
    pub silent_nodes: usize,
    /// Whether any says for how long it used its GPUs.
    pub knows_use: bool,
    /// Of its processes, from first work to last, added up: surely idle, and the rest.
    pub idle_seconds: f64,
    pub busy_at_most_seconds: f64,
    /// GPU-seconds that a scheduler had given it, and those of them in which a process of its was there.
    pub reserved_seconds: f64,
    pub reserved_bound_seconds: f64,
    /// GPU-seconds by reason.
    pub waste: BTreeMap<String, f64>,
    /// GPU-seconds by node (its number) and GPU; no GPU: which it was is not known.
    pub waste_by_gpu: BTreeMap<(usize, String), f64>,
    /// What of it is no bound.
    pub inferred_seconds: f64,
    pub blocked_seconds: f64,
    pub hidden_waits: BTreeMap<String, f64>,
    /// By line of a program, where exporters know it.
    pub waits_at: BTreeMap<String, WaitsAt>,
    /// By function, how long the longest call lasts that has not returned.
    pub open_seconds: BTreeMap<String, f64>,
    pub launches: f64,
    pub copied_bytes: f64,
    pub pageable_bytes: f64,
    /// By error and function.
    pub errors: BTreeMap<(String, String), f64>,
    /// Held when processes ended.
    pub unreturned_bytes: f64,
    /// Of the nodes, since their exporters began.
    pub lost_records: f64,
    /// The same: how long a budget left calls of a kind unseen.
    pub unseen_seconds: BTreeMap<String, f64>,
    pub not_understood: u64,
}

/// Waits in calls from one line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WaitsAt {
    waiting: Waiting,
    /// Functions and kinds of hidden waits.
    pub what: BTreeSet<String>,
}

impl WaitsAt {
    /// At least.
    #[must_use]
    pub(crate) fn seconds(&self) -> f64 {
        self.waiting.at_least().unwrap_or(0.0)
    }
}

impl Figures {
    /// Lines that were waited at, the longest first.
    #[must_use]
    pub(crate) fn lines_waited_at(&self) -> Vec<(&str, &WaitsAt)> {
        let waits = self.waits_at.iter().filter(|(_, waits)| waits.seconds() > 0.0);
        let mut waits: Vec<(&str, &WaitsAt)> = waits.map(|(line, waits)| (line.as_str(), waits)).collect();
        waits.sort_by(|one, other| other.1.seconds().total_cmp(&one.1.seconds()));
        waits
    }

    fn wait_at(&mut self, what: &str, line: String, seconds: f64) {
        let hidden = HiddenKind::from_name(what).map(HiddenKind::name);
        let waits = self.waits_at.entry(line).or_default();
        waits.waiting.note(hidden, Some(seconds));
        waits.what.insert(what.to_owned());
    }

    /// So many more exporters were asked, and did not answer.
    pub(crate) fn miss(&mut self, exporters: usize) {
        self.nodes += exporters;
        self.silent_nodes += exporters;
    }

    /// GPU-seconds without work, at least.
    #[must_use]
    pub(crate) fn wasted_seconds(&self) -> f64 {
        self.waste
            .values()
            .fold(self.unplaced_seconds(), |sum, seconds| sum + seconds)
    }

    /// GPU-seconds of idle time of processes that use them.
    fn wasted_in_use_seconds(&self) -> f64 {
        let in_use = |name: &str| Reason::from_name(name).is_none_or(Reason::is_in_use);
        let waste = self.waste.iter().filter(|(name, _)| in_use(name));
        waste.fold(0.0, |sum, (_, seconds)| sum + seconds)
    }

    /// Idle time of which it is not known yet on which GPUs that was, and so not why: of one at least.
    #[must_use]
    pub(crate) fn unplaced_seconds(&self) -> f64 {
        Some(self.idle_seconds - self.wasted_in_use_seconds())
            .filter(|seconds| *seconds > UNEVEN_SECONDS)
            .unwrap_or(0.0)
    }

    /// How much of the time in use `seconds` of idle time are: that counts for each GPU of a process, time in use once.
    pub(super) fn share_of_use(&self, seconds: f64) -> Option<f64> {
        let idle_of_gpus = self.wasted_in_use_seconds() + self.unplaced_seconds();
        let share = seconds / idle_of_gpus * self.idle_seconds / self.used_seconds();
        share.is_finite().then_some(share)
    }

    /// From first work to last, added up over processes.
    #[must_use]
    pub(crate) fn used_seconds(&self) -> f64 {
        self.idle_seconds + self.busy_at_most_seconds
    }

    /// What an exporter says of itself, whatever the job.
    fn add_of_node(&mut self, series: &Series) {
        let value = series.value;
        match series.name.as_str() {
            "gpuscope_lost_records_total" if series.label("reason") != Some(OF_BLACK_BOX) => self.lost_records += value,
            "gpuscope_budget_unseen_seconds_total" => {
                let calls = series.label("calls").unwrap_or_default().to_owned();
                *self.unseen_seconds.entry(calls).or_default() += value;
            }
            _ => {}
        }
    }

    fn add(&mut self, node: usize, series: &Series) {
        let label = |name: &str| series.label(name).unwrap_or_default().to_owned();
        let value = series.value;
        match series.name.as_str() {
            "gpuscope_gpu_idle_at_least_seconds_total" => self.idle_seconds += value,
            "gpuscope_gpu_busy_at_most_seconds_total" => {
                self.knows_use = true;
                self.busy_at_most_seconds += value;
            }
            "gpuscope_reserved_gpu_seconds_total" => self.reserved_seconds += value,
            "gpuscope_reserved_bound_gpu_seconds_total" => self.reserved_bound_seconds += value,
            "gpuscope_waste_gpu_seconds_total" => {
                *self.waste.entry(label("reason")).or_default() += value;
                *self.waste_by_gpu.entry((node, label("gpu"))).or_default() += value;
                if series.label("certainty") == Some("inferred") {
                    self.inferred_seconds += value;
                }
            }
            "gpuscope_sync_blocked_seconds_total" => self.blocked_seconds += value,
            "gpuscope_hidden_wait_seconds_total" => *self.hidden_waits.entry(label("kind")).or_default() += value,
            "gpuscope_wait_site_seconds_total" => match series.label("site") {
                Some(line) if !line.is_empty() => self.wait_at(&label("wait"), line.to_owned(), value),
                _ => {}
            },
            "gpuscope_open_call_seconds" => {
                let longest = self.open_seconds.entry(label("function")).or_default();
                *longest = longest.max(value);
            }
            "gpuscope_launches_total" => self.launches += value,
            "gpuscope_copy_bytes_total" => {
                self.copied_bytes += value;
                if series.label("host_memory") == Some("pageable") {
                    self.pageable_bytes += value;
                }
            }
            "gpuscope_api_errors_total" if !NOT_READY.contains(&label("error").as_str()) => {
                *self.errors.entry((label("error"), label("function"))).or_default() += value;
            }
            "gpuscope_memory_unreturned_bytes_total" => self.unreturned_bytes += value,
            _ => {}
        }
    }
}

/// What exporters, one for each node, say of a job.
#[must_use]
pub(crate) fn figures(nodes: &[Metrics], wanted: &Wanted) -> Figures {
    let mut figures = Figures {
        nodes: nodes.len(),
        ..Figures::default()
    };
    for (number, node) in nodes.iter().enumerate() {
        figures.not_understood += node.not_understood;
        node.series.iter().for_each(|series| figures.add_of_node(series));
        let mut known = false;
        for series in node.series.iter().filter(|series| wanted.takes(series)) {
            known = true;
            figures.add(number, series);
        }
        figures.nodes_with_job += usize::from(known);
    }
    figures
}
