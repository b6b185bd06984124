//! The ways of attaching that kernels offer.

use std::fmt;

/// The ways in which kernels let a program run at function entry and return, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// One program and one link for entry and return (Linux 6.13).
    Session,
    /// One link for all entries, one for all returns (Linux 6.6).
    Multi,
    /// One perf event per function and direction (Linux 5.15); slow to detach.
    PerfLink,
}

impl Tier {
    pub const ALL: [Tier; 3] = [Tier::Session, Tier::Multi, Tier::PerfLink];

    /// The name used in output and by `GPUSCOPE_TIER`.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Session => "uprobe.session",
            Tier::Multi => "uprobe.multi",
            Tier::PerfLink => "perf-link",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
