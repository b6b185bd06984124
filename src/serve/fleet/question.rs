//! What is asked, as PromQL.

use crate::serve::metric::Metric;
use crate::serve::metrics::{device, own, work};
use std::time::Duration;

/// Sets of labels that are asked for, the largest first.
pub(crate) const MOST_SETS: usize = 5000;
/// Moments at which gauges are looked at.
const MOMENTS: u64 = 336;
/// No gauge is looked at more often: nobody scrapes more seldom than this without gaps.
const SHORTEST_STEP_SECONDS: u64 = 300;
/// What `--keep` alone tells is in no number here.
const NOT_OF_BLACK_BOX: &str = "reason!=\"call_ring\"";
/// Who something is counted for, of all labels there are; what is not there is empty.
const WHO: &str = "user, batch_job, slurm_job, namespace, pod, program, comm";

/// Of which time, and whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub since: Duration,
    /// Seconds since 1970.
    pub until_seconds: u64,
    pub user: Option<String>,
}

impl Span {
    /// Whole seconds; a second at least.
    #[must_use]
    pub(crate) fn seconds(&self) -> u64 {
        self.since.as_secs().max(1)
    }

    /// How far apart gauges are looked at.
    #[must_use]
    pub(crate) fn step_seconds(&self) -> u64 {
        let even = self.seconds().div_ceil(MOMENTS).max(SHORTEST_STEP_SECONDS);
        even.min(self.seconds())
    }

    /// How often gauges are looked at.
    #[must_use]
    pub(crate) fn moments(&self) -> u64 {
        self.seconds() / self.step_seconds()
    }

    /// What a counter grew by. Over its edges the store extrapolates.
    fn grown(&self, metric: &Metric, also: &str) -> String {
        let user = self.user.as_deref().filter(|_| metric.by_owner);
        let user = user.map(|user| format!("user=\"{}\"", quoted(user)));
        let also = Some(also.to_owned()).filter(|also| !also.is_empty());
        let selected: Vec<String> = user.into_iter().chain(also).collect();
        format!(
            "increase({}{{{}}}[{}s])",
            metric.name,
            selected.join(","),
            self.seconds()
        )
    }

    /// `function` over what a gauge was at all moments.
    fn looked_at(&self, function: &str, of: &str) -> String {
        // a second less: where the end is such a moment, so is the beginning
        let range = self.seconds().saturating_sub(1).max(1);
        format!("{function}(({of})[{range}s:{}s])", self.step_seconds())
    }

    fn largest(&self, by: &str, metric: &Metric, also: &str) -> String {
        format!("topk({MOST_SETS}, sum by ({by}) ({}) > 0)", self.grown(metric, also))
    }
}

/// In double quotes of PromQL.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Each is one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Question {
    /// Which nodes there were, and at how many of the moments.
    Nodes,
    Versions,
    Drivers,
    /// GPUs, added up over all moments, by node.
    Gpus,
    /// Those on which some process holds memory, added up likewise.
    Bound,
    /// Their utilisation, added up likewise.
    Busy,
    /// Idle time by reason, of all.
    Reasons,
    /// By whom, of the largest.
    Waste,
    /// Time of processes from their first work to the last: idle, and the rest.
    Idle,
    NotIdle,
    HiddenWaits,
    PageableBytes,
    LostRecords,
    Gaps,
}

impl Question {
    pub const ALL: &'static [Question] = &[
        Question::Nodes,
        Question::Versions,
        Question::Drivers,
        Question::Gpus,
        Question::Bound,
        Question::Busy,
        Question::Reasons,
        Question::Waste,
        Question::Idle,
        Question::NotIdle,
        Question::HiddenWaits,
        Question::PageableBytes,
        Question::LostRecords,
        Question::Gaps,
    ];

    /// For a person who is told that it failed.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Question::Nodes => "which nodes there are",
            Question::Versions => "versions of gpuscope",
            Question::Drivers => "versions of the driver",
            Question::Gpus => "how many GPUs there were",
            Question::Bound => "which GPUs programs were on",
            Question::Busy => "how busy GPUs were",
            Question::Reasons => "why GPUs were idle",
            Question::Waste => "who left GPUs idle",
            Question::Idle | Question::NotIdle => "for how long programs used GPUs",
            Question::HiddenWaits => "hidden waits",
            Question::PageableBytes => "pageable copies",
            Question::LostRecords => "lost records",
            Question::Gaps => "gaps of coverage",
        }
    }

    /// As PromQL.
    #[must_use]
    pub fn expression(self, span: &Span) -> String {
        let by_node = |function: &str, of: &Metric| format!("{function} by (instance) ({})", of.name);
        match self {
            Question::Nodes => span.looked_at("count_over_time", &by_node("count", &own::BUILD_INFO)),
            Question::Versions => format!("count by (version, commit) ({})", own::BUILD_INFO.name),
            Question::Drivers => format!("count by (driver) ({})", device::GPU_INFO.name),
            Question::Gpus => span.looked_at("sum_over_time", &by_node("count", &device::GPU_INFO)),
            Question::Bound => {
                let held = device::GPU_PROCESS_MEMORY_BYTES.name;
                span.looked_at(
                    "sum_over_time",
                    &format!("count by (instance) (count by (instance, uuid) ({held}))"),
                )
            }
            Question::Busy => span.looked_at("sum_over_time", &by_node("sum", &device::GPU_UTILIZATION_RATIO)),
            Question::Reasons => format!(
                "sum by (reason, certainty) ({})",
                span.grown(&work::WASTE_GPU_SECONDS, "")
            ),
            Question::Waste => span.largest(&format!("{WHO}, reason, certainty"), &work::WASTE_GPU_SECONDS, ""),
            Question::Idle => span.largest(WHO, &work::GPU_IDLE_AT_LEAST_SECONDS, ""),
            Question::NotIdle => span.largest(WHO, &work::GPU_BUSY_AT_MOST_SECONDS, ""),
            Question::HiddenWaits => span.largest(WHO, &work::HIDDEN_WAIT_SECONDS, ""),
            Question::PageableBytes => span.largest(WHO, &work::COPY_BYTES, "host_memory=\"pageable\""),
            Question::LostRecords => format!(
                "sum by (instance) ({}) > 0",
                span.grown(&own::LOST_RECORDS, NOT_OF_BLACK_BOX)
            ),
            Question::Gaps => format!("sum by (instance) ({}) > 0", own::COVERAGE_GAPS.name),
        }
    }
}

/// `7 d`, `30 min`, `90 s`: as whole as it is.
pub(super) fn time_words(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3600), ("min", 60)];
    let whole = units
        .into_iter()
        .find(|(_, size)| seconds.is_multiple_of(*size) && seconds > 0);
    whole.map_or_else(
        || format!("{seconds} s"),
        |(name, size)| format!("{} {name}", seconds / size),
    )
}
