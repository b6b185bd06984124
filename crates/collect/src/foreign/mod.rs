//! Files and memory that others control.
//!
//! ```text
//!  whoever asks ─► reader ─ worker: channel, deadline ─► hands, a process of its own: finds, opens, reads
//!                    └─ stuck: what does not answer
//! ```
//!
//! Owns how such a file is reached: by no link that its owner could plant, and never opened before it is known to be a
//! regular file, since opening alone can have an effect (a FIFO lets its writer go on, a tape rewinds). And that nobody
//! waits for ever: a read of a file system that hangs, or of memory that maps such a file, cannot be ended, not even by
//! the end of the process that reads. So another process does it, which is given up when it takes too long. Even closing
//! such a file may take for ever: this process has only descriptors that can do nothing (`O_PATH`).

pub(crate) mod confine;
mod file;
pub(crate) mod handle;
mod hands;
mod layers;
mod order;
mod patience;
mod reader;
mod stuck;
mod usage;
pub mod worker;

pub use file::ForeignFile;
pub use hands::HANDS;
pub(crate) use order::Mapped;
pub(crate) use patience::longest_hold;
pub(crate) use stuck::is_no_answer;
pub use stuck::stuck;
pub use usage::usage;

use order::Order;
use std::io;
use std::path::Path;
use stuck::Subject;

/// Fills `into` with what process `pid` has at `address`.
///
/// # Errors
/// Not all of it can be read, or it does not answer.
pub(crate) fn read_memory(pid: u32, address: u64, into: &mut [u8]) -> io::Result<()> {
    let size = into.len();
    let order = Order::Memory { pid, address, size };
    reader::ask(&Subject::Process(pid), &order, None, Some(into)).map(drop)
}

/// At most `limit` bytes of a file of `/proc` that is about process `pid`.
///
/// # Errors
/// The process is gone or may not be looked at, or it does not answer.
pub(crate) fn read_of_process(pid: u32, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let path = path.to_owned();
    reader::ask_text(&Subject::Process(pid), &Order::Text { path, limit })
}

/// The names in a folder that process `pid` has a hand in.
///
/// # Errors
/// There is none, or it does not answer.
pub(crate) fn names_in(pid: u32, path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let path = path.to_owned();
    let names = reader::ask_text(&Subject::Process(pid), &Order::Names { path })?;
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(<[u8]>::to_vec).collect())
}
