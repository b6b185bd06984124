//! The only user of libbpf: where to attach, and the data that comes back.
//!
//! Owns every kernel object. Does not know what an event means.

pub mod address_space;
mod aggregates;
mod at_address;
pub mod attach;
mod batch;
pub(crate) mod calibrate;
mod control;
pub(crate) mod driver;
pub(crate) mod environment;
pub(crate) mod files;
pub(crate) mod gate;
pub(crate) mod hold;
mod identity;
pub mod kernel;
pub(crate) mod kernel_log;
pub(crate) mod late_read;
pub(crate) mod launch;
pub mod lease;
mod limits;
pub(crate) mod links;
pub(crate) mod load;
pub mod machine;
pub(crate) mod open_calls;
pub(crate) mod place;
mod poll;
pub(crate) mod privilege;
pub(crate) mod returns;
pub mod ring;
pub(crate) mod samples;
pub(crate) mod session;
pub(crate) mod sites;
#[rustfmt::skip]
mod skeleton;
#[cfg(test)]
mod stack_tests;
pub mod static_probe;
mod tier;
pub(crate) mod totals;
pub(crate) mod trampoline;
pub(crate) mod xid;

pub use limits::survive_file_size;
pub use load::{KernelUse, Setup, Sites};
pub use session::{KernelPoint, Point, Session};
pub use tier::Tier;

/// Attached probes; dropping them detaches.
pub type Links = Vec<libbpf_rs::Link>;

/// Waits until `fd` is readable or `timeout` is over.
pub fn wait_for(fd: std::os::fd::RawFd, timeout: std::time::Duration) {
    poll::wait_readable([fd], i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX));
}

/// Sends libbpf's own messages to stderr when `verbose`, to nowhere otherwise: our errors say what they mean.
pub fn route_messages(verbose: bool) {
    let print: fn(libbpf_rs::PrintLevel, String) = |_, message| crate::output::say(message.trim_end());
    libbpf_rs::set_print(verbose.then_some((libbpf_rs::PrintLevel::Debug, print)));
}
