//! What was found wrong. Plain data, complete: outputs need nothing else. How it is found is [`crate::findings`]' business.

use super::outside::Placed;
use super::work::Certainty;
use crate::catalog::Class;
use std::collections::BTreeMap;

/// One diagnosis with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The word of the rule: `alloc-churn`.
    pub rule: &'static str,
    /// What happens, in a few words that need no rule to be known; the place in the program comes behind it.
    pub title: String,
    /// One sentence with its numbers: what happens.
    pub what: String,
    /// Wall time that it costs, ns.
    pub cost_ns: u64,
    /// It ends the program or makes its results wrong, however little time it costs: such findings come first.
    pub grave: bool,
    pub certainty: Certainty,
    /// Events that show it.
    pub count: u64,
    /// The worst of them, worst first.
    pub moments: Vec<Moment>,
    /// Where most of them were called from: JSON array of frames, innermost first; `None`: not known.
    pub site: Option<String>,
    /// Where the host was meanwhile, most time first: of samples. Empty: they are not of use, or there are none.
    pub places: Vec<Placed>,
    /// One thing to do.
    pub cure: String,
    /// The thresholds that were passed, in words.
    pub thresholds: String,
    /// What it says may be too little, as calls that it rests on have no rows.
    pub weakened: Option<String>,
}

impl Finding {
    /// Cost as a share of the steady part of `run`, at most 1.
    #[must_use]
    pub fn share(&self, run: &Run) -> f64 {
        (self.cost_ns as f64 / run.steady_ns.max(1) as f64).min(1.0)
    }
}

/// All findings of a run, what is grave first, then by cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    pub run: Run,
    pub findings: Vec<Finding>,
}

/// Whether a run was looked at for what is wrong.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Diagnosis {
    /// And what was found.
    Reported(Report),
    /// It was not; why.
    NotLookedFor(String),
    /// Nobody asked.
    #[default]
    Unasked,
}

/// When something happened; the row with this time, process and thread is in the trace, but where the host was outside
/// CUDA: there the call before it returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// ns since the start of the trace.
    pub at: i64,
    pub ns: u64,
    pub pid: u32,
    pub tid: u32,
    pub name: String,
}

/// Everything that rules judge by, besides rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// From the first to the last row of a call.
    pub wall_ns: u64,
    /// Of it the steady part: without what comes before the first launch, start-up and end.
    pub steady_ns: u64,
    /// Before the steady part, from the first row of a call on.
    pub start_ns: u64,
    /// How busy its devices were in the steady part, where NVML tells.
    pub busy: Vec<Busy>,
    /// In the steady part the host was outside CUDA for so long, with work given to a device that was not behind when it
    /// was asked, or was not asked.
    pub outside_ns: u64,
    /// In the steady part the devices of the only process that launches had nothing to do for so long, at least; `None`: they did not
    /// tell, or not all, or there are several.
    pub idle_ns: Option<u64>,
    /// Calls without rows, by function.
    pub lost: BTreeMap<String, u64>,
    /// Not everything that gives devices work was seen: idle time is inferred.
    pub blind: bool,
    /// Of what devices told that they did some is missing: measured idle time is that at most.
    pub records_missing: bool,
    /// Devices were recorded in windows: which part of the time, in words.
    pub measured_part: Option<String>,
    /// What probes cost the program, about, all its threads together.
    pub tracing_ns: u64,
    /// Calls that had not returned when their thread ended, or the trace, by function.
    pub unreturned: BTreeMap<String, u64>,
    /// The class of functions in `lost`, as far as it is known.
    pub lost_classes: BTreeMap<String, Class>,
}

/// How busy a device was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// As NVML counts them.
    pub device: u32,
    /// Of the time, in mean.
    pub percent: u64,
    pub samples: u64,
}
