//! What a program asks of NVIDIA's kernel driver and what it answers, decoded. Pure: no I/O, no kernel.
//!
//! ```text
//!  /proc/driver/nvidia/version ─► branch ─► Dialect (which tables fit)          catalog/nvidia/*.txt ─► tables
//!                                                │                                                       │
//!  device + request word ─► request ─► Request ──┼─► reads: which words of the argument the kernel side  │
//!                              ▲                 │          copies at enter and at exit                  │
//!       nr 211 wraps another ──┘                 ▼                                                       │
//!  copied words, result ───────────────────► decode ─► Ioctl { name, args, size, status, act, notes } ◄──┘
//!                                                                                │
//!  tables ─► rows: a row of the catalogue for each call;  rows, reads ─► plan: what the kernel side is told;
//!  record: what it tells of a system call that has returned
//!
//!  /dev/kmsg ─► kmsg ─► xid ─► Xid ◄─ nvidia_dev_xid                              └─► model::driver: who holds what
//! ```
//!
//! The driver changes numbers and layouts between branches. What no table of the branch explains is shown as numbers,
//! with a note that says why; nothing is guessed. Behaviour hangs on the role that the tables give a call
//! ([`layout::Role`]) or a class ([`tables::ClassKind`]), never on a name.

pub(crate) mod act;
pub(crate) mod branch;
pub mod decode;
pub mod kmsg;
pub(crate) mod layout;
mod notes;
pub mod plan;
pub mod reads;
pub(crate) mod record;
pub mod request;
pub(crate) mod rows;
pub mod tables;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod value;
pub mod xid;

pub use act::Act;
pub use branch::{Branch, Dialect, DriverVersion};
pub use decode::{Ioctl, Seen, decode};
pub use record::{Record, Step};
pub use request::{Device, Request};
pub use rows::DriverRows;
pub use value::{NvStatus, Value};
