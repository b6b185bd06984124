//! What an engine has yielded in one run, as bytes of the wire, and the writing down of it.
//!
//! Owns the file, one JSON object, in which records and notices lie in the order in which they came. Who plays it is [`super::replay`]'s business.

use super::{Arrival, Arrivals, Counters, Done, Engine, Feed, Hook, Hooks, Point, Stream, Table, Take};
use crate::stack::wire::SiteCounters;
use crate::text::quantity::hexadecimal;
use crate::wire::{Notice, Plain, RowCounter, bytes_of};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::RawFd;
use std::path::Path;
use std::rc::Rc;

/// Something that came, in its place among all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Came {
    /// A look for all that comes afterwards, up to the next one.
    Look,
    Record(Stream, Hex),
    Notice(Hex),
}

/// Bytes, written as two digits each.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hex(pub Vec<u8>);

impl From<Hex> for String {
    fn from(bytes: Hex) -> String {
        hexadecimal(&bytes.0)
    }
}

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Hex, String> {
        let digits = text.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = digits.map(byte).collect();
        bytes
            .map(Hex)
            .ok_or_else(|| "no bytes are written like that".to_owned())
    }
}

/// What an engine has yielded in one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tape {
    pub way: String,
    /// Library and function of each row.
    pub rows: Vec<(String, String)>,
    pub came: Vec<Came>,
    /// The last value that was seen of each key, also of those that are gone.
    pub tables: Vec<(Table, Hex, Hex)>,
    /// [`RowCounter`] by row.
    pub row_counters: Vec<Hex>,
    pub counters: Counters,
    /// [`SiteCounters`].
    pub site_counters: Hex,
    /// Places that processes share, by their numbers.
    pub flow_slots: u32,
}

impl Tape {
    /// Reads one.
    ///
    /// # Errors
    /// It is none.
    pub fn read(bytes: &[u8]) -> Result<Tape> {
        serde_json::from_slice(bytes).context("failed to read the tape")
    }

    /// Writes it.
    ///
    /// # Errors
    /// `to` cannot be written.
    pub fn write(&self, to: impl Write) -> Result<()> {
        serde_json::to_writer(to, self).context("failed to write the tape")
    }
}

fn hex<T: Plain>(value: &T) -> Hex {
    Hex(bytes_of(value).to_vec())
}

#[derive(Default)]
struct Seen {
    came: RefCell<Vec<Came>>,
    tables: RefCell<BTreeMap<(Table, Hex), Hex>>,
}

impl Seen {
    fn keep(&self, table: Table, key: &[u8], value: &[u8]) {
        let key = (table, Hex(key.to_vec()));
        self.tables.borrow_mut().insert(key, Hex(value.to_vec()));
    }
}

/// An engine whose words are written down as it says them.
pub struct Taped {
    engine: Box<dyn Engine>,
    seen: Rc<Seen>,
}

impl Taped {
    /// Of all that `engine` says from now on.
    #[must_use]
    pub fn new(engine: Box<dyn Engine>) -> Taped {
        Taped {
            engine,
            seen: Rc::default(),
        }
    }

    /// What was said up to now. `rows`: library and function of each.
    ///
    /// # Errors
    /// The counters of a row cannot be read.
    pub fn tape(&self, rows: Vec<(String, String)>) -> Result<Tape> {
        let counters = self.engine.row_counters(rows.len())?;
        let tables = self.seen.tables.borrow();
        let tables = tables
            .iter()
            .map(|((table, key), value)| (*table, key.clone(), value.clone()));
        Ok(Tape {
            way: self.engine.way().to_owned(),
            came: self.seen.came.borrow().clone(),
            tables: tables.collect(),
            row_counters: counters.iter().map(hex).collect(),
            counters: self.engine.counters(),
            site_counters: hex(&self.engine.site_counters()),
            flow_slots: self.engine.slots(Table::Flows),
            rows,
        })
    }
}

impl Engine for Taped {
    fn inner(&self) -> &dyn Any {
        self.engine.inner()
    }

    fn taped(&self) -> Option<&Taped> {
        Some(self)
    }

    fn way(&self) -> &'static str {
        self.engine.way()
    }

    fn makes_single_events(&self) -> bool {
        self.engine.makes_single_events()
    }

    fn rows(&self) -> usize {
        self.engine.rows()
    }

    fn open(&self, stream: Stream, mut take: Take) -> Result<Box<dyn Feed>> {
        let seen = Rc::clone(&self.seen);
        let heard = move |bytes: &[u8]| {
            seen.came.borrow_mut().push(Came::Record(stream, Hex(bytes.to_vec())));
            take(bytes);
        };
        self.engine.open(stream, Box::new(heard))
    }

    fn arrivals(&self) -> Result<Box<dyn Arrivals>> {
        Ok(Box::new(TapedArrivals {
            arrivals: self.engine.arrivals()?,
            seen: Rc::clone(&self.seen),
        }))
    }

    fn attach(&self, path: &Path, points: &[Point]) -> Result<Hooks> {
        self.engine.attach(path, points)
    }

    fn unhooked(&self) -> Vec<(u32, String)> {
        self.engine.unhooked()
    }

    fn environment(&self, preloaded: Option<OsString>, user: Option<u32>) -> Result<Vec<(OsString, OsString)>> {
        self.engine.environment(preloaded, user)
    }

    fn thread(&self, tid: u32) -> Option<Vec<u8>> {
        self.engine.thread(tid)
    }

    fn carriers(&self) -> Vec<u32> {
        self.engine.carriers()
    }

    fn strangers(&self) -> Vec<String> {
        self.engine.strangers()
    }

    fn awaited(&self) -> Vec<u32> {
        self.engine.awaited()
    }

    fn let_go(&self, tgid: u32) {
        self.engine.let_go(tgid);
    }

    fn is_inside(&self) -> Option<Done> {
        self.engine.is_inside()
    }

    fn attach_linker(&self, path: &Path, offset: u64) -> Result<Hooks> {
        self.engine.attach_linker(path, offset)
    }

    fn attach_lifecycle(&self) -> Result<Hooks> {
        self.engine.attach_lifecycle()
    }

    fn attach_samples(&self) -> Result<Hooks> {
        self.engine.attach_samples()
    }

    fn attach_clock(&self, tid: u32) -> Result<Box<dyn Hook>> {
        self.engine.attach_clock(tid)
    }

    fn last_stack(&self, tid: u32) -> Option<super::Seen> {
        self.engine.last_stack(tid)
    }

    fn unsampled(&self) -> Vec<String> {
        self.engine.unsampled()
    }

    fn store(&self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.engine.store(table, key, value)
    }

    fn look_up(&self, table: Table, key: &[u8]) -> Option<Vec<u8>> {
        let value = self.engine.look_up(table, key)?;
        self.seen.keep(table, key, &value);
        Some(value)
    }

    fn read(&self, table: Table, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        self.engine.read(table, &mut |key, value| {
            self.seen.keep(table, key, value);
            each(key, value);
        })
    }

    fn delete(&self, table: Table, key: &[u8]) -> Result<()> {
        self.engine.delete(table, key)
    }

    fn slots(&self, table: Table) -> u32 {
        self.engine.slots(table)
    }

    fn counter(&self, row: u32) -> Result<RowCounter> {
        self.engine.counter(row)
    }

    fn first_counters(&self, rows: u32) -> Result<Vec<RowCounter>> {
        self.engine.first_counters(rows)
    }

    fn counters(&self) -> Counters {
        self.engine.counters()
    }

    fn site_counters(&self) -> SiteCounters {
        self.engine.site_counters()
    }

    fn count_calls(&self, on: bool) {
        self.engine.count_calls(on);
    }

    fn alive(&self, now: u64) {
        self.seen.came.borrow_mut().push(Came::Look);
        self.engine.alive(now);
    }

    fn free_kernel_totals(&self, count: u64) {
        self.engine.free_kernel_totals(count);
    }

    fn forget_files(&self) {
        self.engine.forget_files();
    }
}

struct TapedArrivals {
    arrivals: Box<dyn Arrivals>,
    seen: Rc<Seen>,
}

impl Arrivals for TapedArrivals {
    fn bell(&self) -> RawFd {
        self.arrivals.bell()
    }

    fn silence(&self) {
        self.arrivals.silence();
    }

    fn ring(&self) {
        self.arrivals.ring();
    }

    fn next_arrival(&self) -> Option<Arrival> {
        let arrival = self.arrivals.next_arrival()?;
        let notice = bytes_of::<Notice>(&arrival.notice).to_vec();
        self.seen.came.borrow_mut().push(Came::Notice(Hex(notice)));
        Some(arrival)
    }

    fn foresee(&self, see: &mut dyn FnMut(&Notice)) {
        self.arrivals.foresee(see);
    }

    fn during(&self, arrival: Arrival, work: &mut dyn FnMut()) -> Option<u64> {
        self.arrivals.during(arrival, work)
    }

    fn pass(&self, arrival: &Arrival) -> Option<u64> {
        self.arrivals.pass(arrival)
    }

    fn take_malformed(&self) -> u64 {
        self.arrivals.take_malformed()
    }

    fn overdue(&self) -> u64 {
        self.arrivals.overdue()
    }
}
