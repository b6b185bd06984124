//! The only user of libbpf: where to attach, and the data that comes back.
//!
//! Owns every kernel object. Does not know what an event means.

pub mod address_space;
mod at_address;
pub mod attach;
mod batch;
pub mod calibrate;
mod control;
pub mod driver;
mod engine;
pub mod environment;
mod found;
mod gate;
pub mod hold;
mod identity;
pub mod kernel;
mod kernel_hooks;
pub mod kernel_log;
pub mod late_read;
pub mod launch;
pub mod ldcache;
pub mod lease;
mod limits;
pub(crate) mod links;
pub(crate) mod load;
pub mod machine;
mod memory_limit;
pub mod open_calls;
pub mod place;
pub mod privilege;
pub mod remover;
pub mod returns;
mod ring;
pub mod rows;
pub(crate) mod samples;
pub(crate) mod session;
mod setup;
#[rustfmt::skip]
mod skeleton;
#[cfg(test)]
mod stack_tests;
pub mod static_probe;
mod tier;
pub(crate) mod told;
pub(crate) mod trampoline;
pub mod xid;

pub use limits::survive_file_size;
pub use session::Session;
pub use setup::{EnginePlace, KernelUse, Setup, Sites};
pub use tier::Tier;

/// Waits until `fd` is readable or `timeout` is over.
pub fn wait_for(fd: std::os::fd::RawFd, timeout: std::time::Duration) {
    crate::engine::poll::wait_readable([fd], i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX));
}

/// Sends libbpf's own messages to stderr when `verbose`, to nowhere otherwise: our errors say what they mean.
pub fn route_messages(verbose: bool) {
    let print: fn(libbpf_rs::PrintLevel, String) = |_, message| crate::output::say(message.trim_end());
    libbpf_rs::set_print(verbose.then_some((libbpf_rs::PrintLevel::Debug, print)));
}
