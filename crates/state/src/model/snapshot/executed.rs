//! What devices have executed, as a summary says it.

use super::{ns, optional_ns};
use crate::model::activity::{BROKEN_OFF, Why, missing_words, part_words, untold_words, windows_words};
use crate::model::work::Certainty;
use serde::{Deserialize, Serialize};

/// What devices have executed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Executed {
    pub devices: Vec<Device>,
    pub coverage: Vec<Coverage>,
    /// What CUPTI took for itself, by process, most time first.
    pub overheads: Vec<Overhead>,
    /// Why nothing could be asked for.
    pub refused: Option<String>,
    pub matched: Matched,
    /// Most time first; `None`: call sites had no names yet.
    pub by_site: Option<Vec<Site>>,
    /// Time that belongs to no site.
    #[serde(rename(deserialize = "unattributed_us"), deserialize_with = "optional_ns")]
    pub unattributed_ns: Option<u64>,
}

/// What devices did because of calls from one line of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Site {
    #[serde(rename = "where")]
    pub place: String,
    /// Its name, a direction of copies, or `memset`.
    pub kernel: String,
    pub runs: u64,
    #[serde(rename(deserialize = "total_us"), deserialize_with = "ns")]
    pub total_ns: u64,
}

/// Activities whose call was looked for, and those of them for which it was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Matched {
    pub activities: u64,
    pub ordered: u64,
}

/// Of a process, as it counts them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Device {
    pub pid: u32,
    pub device: u32,
    pub kernels: u64,
    pub in_graphs: u64,
    #[serde(rename(deserialize = "kernel_us"), deserialize_with = "ns")]
    pub kernel_ns: u64,
    pub memsets: u64,
    #[serde(rename(deserialize = "memset_us"), deserialize_with = "ns")]
    pub memset_ns: u64,
    /// Launches of graphs that were told of as a whole.
    pub graphs: u64,
    #[serde(rename(deserialize = "graph_us"), deserialize_with = "ns")]
    pub graph_ns: u64,
    pub copies: Vec<Copies>,
    #[serde(rename(deserialize = "busy_us"), deserialize_with = "ns")]
    pub busy_ns: u64,
    #[serde(rename(deserialize = "idle_us"), deserialize_with = "ns")]
    pub idle_ns: u64,
    pub idle_gaps: u64,
    /// Between the first activity and the last, it was not recorded whether anything ran.
    #[serde(rename(deserialize = "unmeasured_us"), deserialize_with = "ns")]
    pub unmeasured_ns: u64,
    #[serde(rename(deserialize = "longest_idle_us"), deserialize_with = "ns")]
    pub longest_idle_ns: u64,
    /// Why it was idle, most time first; empty: that was not looked for.
    pub idle_causes: Vec<IdleCause>,
    /// The same of the part between start-up and end; `None`: that is nearly all, or not known.
    pub steady: Option<Steady>,
    /// As `model::work::Certainty` names it.
    pub certainty: String,
    pub by_kernel: Vec<Kernel>,
}

impl Device {
    /// Whether every activity came, so that its times are no bounds.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.certainty == Certainty::Measured.name()
    }

    /// From the first activity to the end of the last, as far as that was recorded.
    #[must_use]
    pub fn window_ns(&self) -> u64 {
        self.busy_ns.saturating_add(self.idle_ns)
    }
}

/// Time that CUPTI or the driver took for itself in a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Overhead {
    pub pid: u32,
    /// As `model::activity::OverheadKind` names it.
    pub kind: String,
    pub count: u64,
    #[serde(rename(deserialize = "total_us"), deserialize_with = "ns")]
    pub total_ns: u64,
    #[serde(rename(deserialize = "max_us"), deserialize_with = "ns")]
    pub max_ns: u64,
}

/// Idle time between start-up and end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Steady {
    /// CLOCK_MONOTONIC ns.
    pub from_ns: u64,
    pub until_ns: u64,
    #[serde(rename(deserialize = "idle_us"), deserialize_with = "ns")]
    pub idle_ns: u64,
    pub idle_causes: Vec<IdleCause>,
}

impl Steady {
    /// How long it is.
    #[must_use]
    pub fn of_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.from_ns)
    }
}

/// Idle time of one cause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct IdleCause {
    /// As `model::activity::Why` names it.
    pub cause: String,
    #[serde(rename(deserialize = "idle_us"), deserialize_with = "ns")]
    pub idle_ns: u64,
    pub gaps: u64,
    #[serde(rename(deserialize = "longest_us"), deserialize_with = "ns")]
    pub longest_ns: u64,
    /// Where most of it came from, in words.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// At least so many per cent of it, or about as many by an estimate; `None`: that is not known.
    pub where_percent: Option<u64>,
    pub where_estimated: bool,
}

impl IdleCause {
    /// Whether it says why.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.cause != Why::Other.name()
    }

    /// The cause for people.
    #[must_use]
    pub fn words(&self) -> String {
        match Why::from_name(&self.cause) {
            Some(why) => format!("{} ({})", why.words(), why.name()),
            None => self.cause.clone(),
        }
    }
}

/// Of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Copies {
    pub direction: Option<String>,
    pub count: u64,
    pub bytes: u64,
    #[serde(rename(deserialize = "total_us"), deserialize_with = "ns")]
    pub total_ns: u64,
}

/// Of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Kernel {
    #[serde(rename(deserialize = "kernel"))]
    pub name: Option<String>,
    pub runs: u64,
    #[serde(rename(deserialize = "total_us"), deserialize_with = "ns")]
    pub total_ns: u64,
    #[serde(rename(deserialize = "max_us"), deserialize_with = "ns")]
    pub max_ns: u64,
    /// Theoretical; `None`: the device's limits are not known, or how the kernel fits.
    pub occupancy_percent: Option<f64>,
    /// As `model::activity::LimitedBy` names it.
    pub limited_by: Option<String>,
}

/// Of a process that has started CUDA.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Coverage {
    pub pid: u32,
    pub comm: String,
    /// Why nothing was seen of it; `None`: it was.
    pub why: Option<String>,
    /// Records for which there was no room, that CUPTI dropped, without times that make sense, and without any sense.
    pub lost: u64,
    pub dropped: u64,
    pub invalid: u64,
    pub malformed: u64,
    /// The process ended without handing over its last records.
    pub broken_off: bool,
    /// Activities that began before the call whose turn it was.
    pub early: u64,
    /// `None`: they were recorded all the time.
    pub windows: Option<Windows>,
    /// From when on copies were not told of, while all else was, `CLOCK_MONOTONIC` ns.
    pub no_copies_ns: Option<u64>,
    /// When CUPTI was let go while the program went on, `CLOCK_MONOTONIC` ns.
    pub given_ns: Option<u64>,
    /// Path of another CUPTI that it has mapped; `None`: it has none.
    #[serde(rename = "other_cupti")]
    pub other: Option<String>,
}

impl Coverage {
    /// Records that are known to be missing.
    #[must_use]
    pub fn missing(&self) -> u64 {
        let all = [self.lost, self.dropped, self.invalid, self.malformed];
        all.into_iter().fold(u64::from(self.broken_off), u64::saturating_add)
    }

    /// Why less is known from some moment on, or nothing; empty: CUPTI told of all as long as the process was looked at.
    pub fn untold_words(&self) -> impl Iterator<Item = &'static str> + use<> {
        untold_words(self.no_copies_ns, self.given_ns)
    }

    /// Which these are; empty: none is.
    #[must_use]
    pub fn missing_words(&self) -> Vec<String> {
        let mut words = missing_words(self.lost, self.dropped, self.invalid, self.malformed);
        words.extend(self.broken_off.then(|| BROKEN_OFF.to_owned()));
        words
    }
}

/// Activities were recorded for a part of each period, or until CUPTI was let go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Windows {
    #[serde(rename(deserialize = "length_us"), deserialize_with = "ns")]
    pub length_ns: u64,
    #[serde(rename(deserialize = "period_us"), deserialize_with = "ns")]
    pub period_ns: u64,
    /// Why they were no longer, while the program went on.
    pub ending: Option<String>,
    pub number: u64,
    pub unopened: u64,
    /// From the begin of the first one on.
    #[serde(rename(deserialize = "of_us"), deserialize_with = "ns")]
    pub of_ns: u64,
}

impl Windows {
    /// `12 windows of 1.00 s, one each 60.0 s`.
    #[must_use]
    pub fn words(&self) -> String {
        windows_words(self.number, self.length_ns, self.period_ns)
    }
}

impl Executed {
    /// The same of the process whose devices were seen for longest; `None`: all were recorded all the time.
    #[must_use]
    pub fn part_words(&self) -> Option<String> {
        let parts = self.devices.iter();
        let parts = parts.filter_map(|device| Some((device.window_ns(), self.windows_of(device.pid)?.of_ns)));
        let (part, of) = parts.max()?;
        Some(part_words(part, of))
    }

    /// How a process was recorded, where that was in windows alone.
    #[must_use]
    pub fn windows_of(&self, pid: u32) -> Option<&Windows> {
        let mut own = self.coverage.iter().filter(|coverage| coverage.pid == pid);
        own.find_map(|coverage| coverage.windows.as_ref())
    }

    /// Whether some processes were.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.coverage.iter().any(|coverage| coverage.windows.is_some())
    }

    /// Whether copies of some process were not told of.
    #[must_use]
    pub fn lacks_copies(&self) -> bool {
        self.coverage.iter().any(|coverage| coverage.no_copies_ns.is_some())
    }
}
