//! Whom the work of a process is counted for: its program, container, pod, unit and job, as labels.
//!
//! ```text
//!  /proc/PID/{stat,status,cgroup,exe,cmdline,environ} ─► process ─┐
//!                        cgroup: container, pod, unit, job ◄──────┤
//!  files of container runtimes, kubelet ─► container ─────────────┴─► directory ─► register ─► Arc<Owner>
//! ```
//!
//! Owns the reading of `/proc` and of the files of container runtimes for that. Knows no metric.

mod accounts;
mod batch;
pub mod cgroup;
mod choice;
pub mod container;
pub mod directory;
#[cfg(feature = "serve")]
pub mod kubelet;
pub(crate) mod label;
mod process;
mod program;
mod register;
#[cfg(test)]
pub(crate) mod tree;
mod value;
mod whereabouts;

pub use batch::job as batch_job;
pub use choice::Choice;
pub use directory::Directory;
#[cfg(feature = "serve")]
pub use kubelet::Kubelet;
pub use label::{Label, Wanted};
pub use process::{Stat, began, start_ticks};
#[cfg(feature = "serve")]
pub(crate) use process::{first_variable, read};
#[cfg(feature = "serve")]
pub(crate) use value::clean;
pub use whereabouts::Whereabouts;

/// Labels that processes share. A process keeps those that it was first seen with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// Names and values, none empty, in the order of the configuration.
    pub labels: Vec<(String, String)>,
}

impl Owner {
    /// The value of a label; `None`: it has none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whom processes are counted for when there are too many owners.
    #[must_use]
    pub fn other() -> Owner {
        Owner {
            labels: vec![("comm".to_owned(), "other".to_owned())],
        }
    }
}
