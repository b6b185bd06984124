//! The book of memory: what a process holds, has allocated and has given back, by family and
//! device, in a file that is right at every moment, also the one of a SIGKILL.
//!
//! The file is an array of native 64-bit words:
//!
//! | words | meaning |
//! |---|---|
//! | 0 | `GPUSIMBK` |
//! | 1 | version of the layout |
//! | 2 | process id |
//! | 3 | `CLOCK_MONOTONIC` nanoseconds when this image began its book |
//! | 4 | 1 while the last line written to the text file says all this |
//! | 5 | calls that change who holds memory, entered and not left |
//! | 6–8 | frees that failed; of them those of freed and of unknown memory |
//! | 9 | sequence: odd while the rows named in the journal are being written |
//! | 10 | entries in the journal |
//! | 11… | two journal entries: number of a row, then what it is to hold |
//! | then | the rows: for each family, one per device from −1 on |
//!
//! Whoever finds the sequence odd and the writer gone copies the journal over the rows.

mod read;
mod write;

pub use read::{Snapshot, lines};
pub use write::Book;

/// What memory is counted as. The last two are no families of their own: what pools hold back
/// from the device, and the allocation nodes of graphs, whose memory is counted in `Graph` while
/// a launch has made it live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Family {
    Device,
    Managed,
    Async,
    Physical,
    Array,
    Mipmapped,
    Graph,
    Pinned,
    Registered,
    Reserved,
    Mapped,
    Ipc,
    External,
    Imported,
    Pool,
    GraphNode,
}

pub const FAMILY_NAMES: [&str; 16] = [
    "device",
    "managed",
    "async",
    "physical",
    "array",
    "mipmapped",
    "graph",
    "pinned",
    "registered",
    "reserved",
    "mapped",
    "ipc",
    "external",
    "imported",
    "pool",
    "graph-node",
];

/// How memory went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum How {
    Freed,
    ContextDestroyed,
    ContextReset,
    PoolDestroyed,
    GraphDestroyed,
}

pub const HOW_NAMES: [&str; 5] = [
    "freed",
    "context destroyed",
    "context reset",
    "pool destroyed",
    "graph destroyed",
];

/// Why a free failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    Double,
    Unknown,
    Other,
}

impl Family {
    /// The sum it belongs to, if it is memory of its own.
    fn total(self) -> Option<usize> {
        match self as usize {
            0..=6 => Some(DEVICE_TOTAL),
            7 | 8 => Some(HOST_TOTAL),
            _ => None,
        }
    }
}

const MAGIC: u64 = u64::from_le_bytes(*b"GPUSIMBK");
const VERSION: u64 = 1;
/// Device −1 and the devices that a machine can have.
const SLOTS: usize = 17;
const DEVICE_TOTAL: usize = FAMILY_NAMES.len();
const HOST_TOTAL: usize = DEVICE_TOTAL + 1;
const ROWS: usize = (HOST_TOTAL + 1) * SLOTS;

const WORD_PID: usize = 2;
const WORD_IMAGE: usize = 3;
const WORD_CLOSED: usize = 4;
const WORD_INSIDE: usize = 5;
const WORD_FAILED: usize = 6;
const WORD_DOUBLE: usize = 7;
const WORD_UNKNOWN: usize = 8;
const WORD_SEQUENCE: usize = 9;
const WORD_JOURNAL: usize = 10;
const WORD_ENTRIES: usize = 11;
const WORD_ROWS: usize = WORD_ENTRIES + 2 * (1 + ROW);
const WORDS: usize = WORD_ROWS + ROWS * ROW;

const OUTSTANDING: usize = 0;
const HELD: usize = 1;
const PEAK: usize = 2;
const ALLOCATIONS: usize = 3;
const ALLOCATED: usize = 4;
const FREES: usize = 5;
const FREED: usize = 6;
const FAILED: usize = 7;
/// A count and bytes for each way to go.
const ENDED: usize = 8;
const ROW: usize = ENDED + 2 * HOW_NAMES.len();

fn slot(device: i32) -> usize {
    usize::try_from(device + 1).unwrap_or(0).min(SLOTS - 1)
}

#[cfg(test)]
mod tests {
    use super::{Book, Family, How, Snapshot};

    #[test]
    fn a_book_says_what_was_done() {
        let book = Book::in_memory();
        book.allocated(Family::Device, 0, 100);
        book.allocated(Family::Device, 0, 50);
        book.allocated(Family::Pinned, 0, 7);
        book.ended(Family::Device, 0, 100, How::ContextDestroyed);
        let line = Snapshot::of(&book).json();
        for part in [
            r#""family":"device","device":0,"outstanding":1,"held_bytes":50,"peak_bytes":150"#,
            r#"{"how":"context destroyed","count":1,"bytes":100}"#,
            r#""host":{"outstanding":1,"held_bytes":7"#,
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }

    #[test]
    fn what_a_killed_writer_left_half_written_is_completed() {
        let book = Book::in_memory();
        book.allocated(Family::Async, 1, 10);
        book.leave_half_written(Family::Async, 1, 5);
        let line = Snapshot::of(&book).json();
        assert!(line.contains(r#""outstanding":2,"held_bytes":15"#), "{line}");
    }
}
