//! What one process gave devices to do, and what waited for it.

use super::ns;
use serde::Deserialize;
use serde_json::Value;

/// What one process gave devices to do.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Work {
    pub pid: u32,
    pub comm: String,
    pub copies: Vec<Copies>,
    /// Most time first.
    pub waits: Vec<Wait>,
    /// The same.
    pub hidden: Vec<Hidden>,
    pub gpu: Gpu,
    pub graphs: Graphs,
}

/// Copies of one direction, host memory and manner.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Copies {
    pub direction: Option<String>,
    pub host: Option<String>,
    pub blocking: bool,
    pub count: u64,
    pub bytes: u64,
    #[serde(rename = "call_us", deserialize_with = "ns")]
    pub call_ns: u64,
    pub bytes_per_second: Option<f64>,
    /// `at_least`.
    pub bound: Option<String>,
}

/// Waits in one function for one stream from one place.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Wait {
    pub function: String,
    pub count: u64,
    #[serde(rename = "total_us", deserialize_with = "ns")]
    pub total_ns: u64,
    #[serde(rename = "max_us", deserialize_with = "ns")]
    pub max_ns: u64,
    /// Frames as objects, innermost first; empty: not taken.
    pub stack: Vec<Value>,
}

/// Waits of one kind from one place that nobody asked for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Hidden {
    /// `free`, `item` …
    pub kind: String,
    pub count: u64,
    #[serde(rename = "total_us", deserialize_with = "ns")]
    pub total_ns: u64,
    /// `measured`: all of that was waiting; else it is at most that.
    pub certainty: String,
    /// Frames as objects, innermost first; empty: not taken.
    pub stack: Vec<Value>,
}

/// When devices may have worked.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// From the first work to the last thing that is known; 0: there was none.
    #[serde(rename = "window_us", deserialize_with = "ns")]
    pub window_ns: u64,
    #[serde(rename = "idle_at_least_us", deserialize_with = "ns")]
    pub idle_ns: u64,
    #[serde(rename = "idle_likely_us", deserialize_with = "ns")]
    pub idle_likely_ns: u64,
    #[serde(rename = "longest_idle_us", deserialize_with = "ns")]
    pub longest_ns: u64,
    #[serde(rename = "idle_gaps")]
    pub gaps: u64,
    /// `bound`, or `inferred`: not everything that gives work was seen.
    pub certainty: String,
    pub notes: Vec<String>,
}

/// Graphs that ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(default)]
pub struct Graphs {
    pub launches: u64,
    /// Of these, of graphs whose making was seen: only what they ran is known.
    pub known_launches: u64,
    pub kernels: u64,
    pub copies: u64,
    pub memsets: u64,
    /// Launches that were recorded into graphs instead of being run.
    pub captured: u64,
}

impl Graphs {
    /// Both together.
    #[must_use]
    pub fn and(self, other: &Graphs) -> Graphs {
        Graphs {
            launches: self.launches.saturating_add(other.launches),
            known_launches: self.known_launches.saturating_add(other.known_launches),
            kernels: self.kernels.saturating_add(other.kernels),
            copies: self.copies.saturating_add(other.copies),
            memsets: self.memsets.saturating_add(other.memsets),
            captured: self.captured.saturating_add(other.captured),
        }
    }
}
