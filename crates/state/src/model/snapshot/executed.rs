//! What devices have executed, as a summary says it.

use super::ns;
use serde::Deserialize;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Executed {
    pub devices: Vec<Device>,
    pub coverage: Vec<Coverage>,
}

/// Of a process, as it counts them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Device {
    pub pid: u32,
    pub device: u32,
    pub kernels: u64,
    pub in_graphs: u64,
    #[serde(rename = "kernel_us", deserialize_with = "ns")]
    pub kernel_ns: u64,
    #[serde(rename = "busy_us", deserialize_with = "ns")]
    pub busy_ns: u64,
    #[serde(rename = "idle_us", deserialize_with = "ns")]
    pub idle_ns: u64,
    pub idle_gaps: u64,
    #[serde(rename = "longest_idle_us", deserialize_with = "ns")]
    pub longest_idle_ns: u64,
    /// As `model::work::Certainty` names it.
    pub certainty: String,
    pub by_kernel: Vec<Kernel>,
}

/// Of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Kernel {
    #[serde(rename = "kernel")]
    pub name: Option<String>,
    pub runs: u64,
    #[serde(rename = "total_us", deserialize_with = "ns")]
    pub total_ns: u64,
    #[serde(rename = "max_us", deserialize_with = "ns")]
    pub max_ns: u64,
}

/// Of a process that has started CUDA.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Coverage {
    pub pid: u32,
    pub comm: String,
    /// Why nothing was seen of it; `None`: it was.
    pub why: Option<String>,
}
