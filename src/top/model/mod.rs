//! What is shown: plain data, made from samples. Pure.
//!
//! Owns which sample says what of a device or a process. What lies over time is [`history`]'s, what is chosen of it the
//! [state](super::state)'s business.

mod build;
mod busy;
mod calls;
mod closeup;
mod count;
mod device;
#[cfg(test)]
pub(crate) mod example;
mod findings;
pub(crate) mod history;
mod process;
#[cfg(test)]
mod tests;

pub(crate) use build::{Known, devices_of, frame, owners, pid_of};
pub(crate) use calls::Calls;
pub(crate) use closeup::{Allocations, Closeup, Function, InProgress, Single};
pub(crate) use count::Count;
pub(crate) use count::rate;
pub(crate) use device::{Device, Part};
pub(crate) use findings::{Findings, Idle, WaitSite};
pub(crate) use process::{Certainty, Failure, Kernel, OpenCall, Process, Wait, WaitPlace};

use serde::Serialize;

/// Everything at one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Frame {
    /// Probes are not attached yet: this is what is known without.
    #[serde(skip)]
    pub attaching: bool,
    /// Calls of some processes are not seen, whoever they are.
    #[serde(skip)]
    pub partial: bool,
    /// Seconds since 1970.
    pub at: f64,
    /// Since gpuscope began to look.
    pub elapsed_seconds: f64,
    /// What rates are over; `None`: this is the first look.
    pub over_seconds: Option<f64>,
    pub devices: Vec<Device>,
    pub processes: Vec<Process>,
    /// What is not seen, and what went wrong: sentences, worst first.
    pub notes: Vec<String>,
    /// What gpuscope itself takes.
    pub cost: Option<String>,
    /// Of one process, what samples do not say.
    pub closeup: Option<Closeup>,
    /// Of one process what is wrong, where it is looked for.
    pub findings: Option<Findings>,
    /// Of one process its calls as they come, where they are wanted.
    #[serde(skip)]
    pub calls: Option<Calls>,
}

impl Frame {
    pub(crate) fn process(&self, pid: u32) -> Option<&Process> {
        self.processes.iter().find(|process| process.pid == pid)
    }
}
