//! The only user of libbpf: which processes map what, where to attach, and the data that comes back.
//!
//! Owns every kernel object and every `/proc` look at a traced process. Does not know what an event means.

pub mod address_space;
pub mod attach;
pub mod calibrate;
mod control;
pub mod discover;
pub mod gate;
pub mod hold;
mod identity;
pub mod launch;
pub mod lease;
mod limits;
pub mod links;
pub mod load;
pub mod machine;
mod poll;
pub mod privilege;
pub mod ring;
pub mod session;
pub mod sites;
#[rustfmt::skip]
mod skeleton;
#[cfg(test)]
mod stack_tests;
pub mod static_probe;
mod tier;
pub mod totals;

pub use load::{Setup, Sites};
pub use session::{Point, Session};
pub use tier::Tier;

/// Attached probes; dropping them detaches.
pub type Links = Vec<libbpf_rs::Link>;

/// Sends libbpf's own messages to stderr when `verbose`, to nowhere otherwise: our errors say what they mean.
pub fn route_messages(verbose: bool) {
    let print: fn(libbpf_rs::PrintLevel, String) = |_, message| crate::output::say(message.trim_end());
    libbpf_rs::set_print(verbose.then_some((libbpf_rs::PrintLevel::Debug, print)));
}
