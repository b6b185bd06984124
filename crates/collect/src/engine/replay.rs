//! The engine that plays a tape: everything above it runs without root, without a kernel that takes programs, and the
//! same each time.
//!
//! Owns the order in which things come again, and the numbers of rows, which a catalogue that has changed since gives
//! anew. Nothing is hooked, and processes of the tape are gone.

use super::tape::{Came, Hex, Tape};
use super::{Arrival, Arrivals, Counters, Engine, Feed, Hooks, Point, Stream, Table, Take, value_of};
use crate::stack::wire::SiteCounters;
use crate::wire::{self, Notice, RowCounter};
use anyhow::{Context, Result, bail};
use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::mem::offset_of;
use std::os::fd::RawFd;
use std::path::Path;
use std::rc::Rc;

/// Where records of calls have their row.
const ROW_OF_CALL: usize = 40;
/// Where records of memory and of work, and keys of tables, have theirs.
const ROW_OF_KEY: usize = 4;

/// Values by table and key.
type Entries = BTreeMap<(Table, Vec<u8>), Vec<u8>>;
/// Records that have come and were not taken out yet.
type Pending = Rc<RefCell<BTreeMap<Stream, Vec<Vec<u8>>>>>;

/// A tape that is being played. What it plays it hands out once.
pub struct Replay {
    left: RefCell<VecDeque<Came>>,
    notices: Rc<RefCell<VecDeque<Notice>>>,
    pending: Pending,
    tables: RefCell<Entries>,
    row_counters: Vec<RowCounter>,
    counters: Counters,
    site_counters: SiteCounters,
    rows: usize,
    flow_slots: u32,
}

impl Replay {
    /// Of `tape`, whose rows `number` knows by library and function.
    ///
    /// # Errors
    /// It does not know one that is used, or the tape is damaged.
    pub fn new(tape: Tape, number: &dyn Fn(&str, &str) -> Option<u32>) -> Result<Replay> {
        let rows: Vec<Option<u32>> = tape.rows.iter().map(|(library, name)| number(library, name)).collect();
        let renumbered = |bytes: Hex, at: usize| renumbered(bytes.0, at, &rows, &tape.rows);
        let mut left = VecDeque::new();
        for came in tape.came {
            left.push_back(match came {
                Came::Look => Came::Look,
                Came::Record(stream, bytes) => {
                    let bytes = match row_of(stream, &bytes.0) {
                        Some(at) => renumbered(bytes, at)?,
                        None => bytes.0,
                    };
                    Came::Record(stream, Hex(bytes))
                }
                Came::Notice(bytes) => Came::Notice(Hex(notice_renumbered(bytes.0, &rows, &tape.rows)?)),
            });
        }
        let mut tables = Entries::new();
        for (table, key, value) in tape.tables {
            let key = match has_row(table) {
                true => renumbered(key, ROW_OF_KEY)?,
                false => key.0,
            };
            tables.insert((table, key), value.0);
        }
        let highest = rows.iter().flatten().max().map_or(0, |row| *row as usize + 1);
        let mut row_counters = vec![RowCounter::default(); highest];
        for (row, counter) in rows.iter().zip(&tape.row_counters) {
            if let Some(row) = row {
                row_counters[*row as usize] =
                    value_of(&counter.0).context("failed to play the tape: a counter is cut")?;
            }
        }
        Ok(Replay {
            left: RefCell::new(left),
            notices: Rc::default(),
            pending: Rc::default(),
            tables: RefCell::new(tables),
            rows: highest + 1,
            flow_slots: tape.flow_slots,
            row_counters,
            counters: tape.counters,
            site_counters: value_of(&tape.site_counters.0).unwrap_or_default(),
        })
    }

    /// Has come what came by the next look.
    fn play(&self) {
        let mut left = self.left.borrow_mut();
        while let Some(came) = left.pop_front() {
            match came {
                Came::Look => break,
                Came::Record(stream, bytes) => self.pending.borrow_mut().entry(stream).or_default().push(bytes.0),
                Came::Notice(bytes) => self.notices.borrow_mut().extend(Notice::parse(&bytes.0)),
            }
        }
    }
}

/// Where a record has the number of its row; `None`: it has none.
fn row_of(stream: Stream, record: &[u8]) -> Option<usize> {
    match stream {
        Stream::Calls | Stream::Driver => Some(ROW_OF_CALL),
        Stream::Memory | Stream::Work => {
            let kind = record.first_chunk().map(|kind| u32::from_ne_bytes(*kind))?;
            (kind == wire::MEMORY_CALL || kind == wire::WORK_CALL).then_some(ROW_OF_KEY)
        }
        Stream::Xids | Stream::Samples | Stream::Ranges => None,
    }
}

fn has_row(table: Table) -> bool {
    matches!(
        table,
        Table::Totals | Table::Failures | Table::Aggregates | Table::DriverShares
    )
}

fn renumbered(mut bytes: Vec<u8>, at: usize, rows: &[Option<u32>], names: &[(String, String)]) -> Result<Vec<u8>> {
    let word = bytes
        .get_mut(at..at + 4)
        .context("failed to play the tape: a record is cut")?;
    let old = word.iter().rev().fold(0, |row, byte| row << 8 | usize::from(*byte));
    match rows.get(old) {
        Some(Some(row)) => word.copy_from_slice(&row.to_ne_bytes()),
        Some(None) => {
            let (library, name) = &names[old];
            bail!("failed to play the tape: nobody knows {name} of {library} any more\nhint: record a new one");
        }
        None => bail!("failed to play the tape: it has no row {old}"),
    }
    Ok(bytes)
}

/// The calls that a notice names.
fn notice_renumbered(mut bytes: Vec<u8>, rows: &[Option<u32>], names: &[(String, String)]) -> Result<Vec<u8>> {
    let notice = Notice::parse(&bytes).context("failed to play the tape: a notice is damaged")?;
    let open = notice.open.iter().enumerate().filter(|(_, open)| open.entered != 0);
    for (index, _) in open {
        let at = offset_of!(Notice, open) + index * size_of::<wire::OpenCall>() + offset_of!(wire::OpenCall, row);
        bytes = renumbered(bytes, at, rows, names)?;
    }
    Ok(bytes)
}

struct Played {
    stream: Stream,
    pending: Pending,
    take: RefCell<Take>,
}

impl Feed for Played {
    fn bell(&self) -> RawFd {
        -1
    }

    fn drain(&self) {
        let records = self.pending.borrow_mut().remove(&self.stream).unwrap_or_default();
        let mut take = self.take.borrow_mut();
        records.iter().for_each(|record| take(record));
    }
}

struct PlayedArrivals(Rc<RefCell<VecDeque<Notice>>>);

impl Arrivals for PlayedArrivals {
    fn bell(&self) -> RawFd {
        -1
    }

    fn silence(&self) {}

    fn ring(&self) {}

    fn next_arrival(&self) -> Option<Arrival> {
        self.0.borrow_mut().pop_front().map(Arrival::from)
    }

    fn foresee(&self, see: &mut dyn FnMut(&Notice)) {
        self.0.borrow().iter().for_each(see);
    }

    fn during(&self, _arrival: Arrival, work: &mut dyn FnMut()) -> Option<u64> {
        work();
        None
    }

    fn pass(&self, _arrival: &Arrival) -> Option<u64> {
        None
    }

    fn take_malformed(&self) -> u64 {
        0
    }

    fn overdue(&self) -> u64 {
        0
    }
}

impl Engine for Replay {
    fn inner(&self) -> &dyn Any {
        self
    }

    fn way(&self) -> &'static str {
        "replay"
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn open(&self, stream: Stream, take: Take) -> Result<Box<dyn Feed>> {
        Ok(Box::new(Played {
            stream,
            pending: Rc::clone(&self.pending),
            take: RefCell::new(take),
        }))
    }

    fn arrivals(&self) -> Result<Box<dyn Arrivals>> {
        Ok(Box::new(PlayedArrivals(Rc::clone(&self.notices))))
    }

    fn attach(&self, _path: &Path, _points: &[Point]) -> Result<Hooks> {
        Ok(Vec::new())
    }

    fn attach_linker(&self, _path: &Path, _offset: u64) -> Result<Hooks> {
        Ok(Vec::new())
    }

    fn attach_lifecycle(&self) -> Result<Hooks> {
        Ok(Vec::new())
    }

    fn store(&self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.tables.borrow_mut().insert((table, key.to_vec()), value.to_vec());
        Ok(())
    }

    fn look_up(&self, table: Table, key: &[u8]) -> Option<Vec<u8>> {
        self.tables.borrow().get(&(table, key.to_vec())).cloned()
    }

    fn read(&self, table: Table, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let tables = self.tables.borrow();
        let of_table = tables.iter().filter(|((of, _), _)| *of == table);
        of_table.for_each(|((_, key), value)| each(key, value));
        Ok(())
    }

    fn delete(&self, table: Table, key: &[u8]) -> Result<()> {
        self.tables.borrow_mut().remove(&(table, key.to_vec()));
        Ok(())
    }

    fn slots(&self, _table: Table) -> u32 {
        self.flow_slots
    }

    fn counter(&self, row: u32) -> Result<RowCounter> {
        Ok(self.row_counters.get(row as usize).copied().unwrap_or_default())
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn site_counters(&self) -> SiteCounters {
        self.site_counters
    }

    /// What was counted has been counted while it was recorded.
    fn count_calls(&self, _on: bool) {}

    fn alive(&self, _now: u64) {
        self.play();
    }

    fn free_kernel_totals(&self, _count: u64) {}

    fn forget_files(&self) {}
}
