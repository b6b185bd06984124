//! An engine that never says anything.

use super::{Arrival, Arrivals, Counters, Engine, Feed, Hooks, Point, Stream, Table, Take};
use crate::stack::wire::SiteCounters;
use crate::wire::RowCounter;
use anyhow::Result;
use std::any::Any;
use std::os::fd::RawFd;
use std::path::Path;

/// See the module.
pub struct Silent {
    /// That it is asked about.
    pub rows: usize,
}

struct Nothing;

impl Feed for Nothing {
    fn bell(&self) -> RawFd {
        -1
    }

    fn drain(&self) {}
}

impl Arrivals for Nothing {
    fn bell(&self) -> RawFd {
        -1
    }

    fn silence(&self) {}

    fn ring(&self) {}

    fn next_arrival(&self) -> Option<Arrival> {
        None
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

impl Engine for Silent {
    fn inner(&self) -> &dyn Any {
        self
    }

    fn way(&self) -> &'static str {
        "silent"
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn open(&self, _stream: Stream, _take: Take) -> Result<Box<dyn Feed>> {
        Ok(Box::new(Nothing))
    }

    fn arrivals(&self) -> Result<Box<dyn Arrivals>> {
        Ok(Box::new(Nothing))
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

    fn store(&self, _table: Table, _key: &[u8], _value: &[u8]) -> Result<()> {
        Ok(())
    }

    fn look_up(&self, _table: Table, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn read(&self, _table: Table, _each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        Ok(())
    }

    fn delete(&self, _table: Table, _key: &[u8]) -> Result<()> {
        Ok(())
    }

    fn slots(&self, _table: Table) -> u32 {
        1
    }

    fn counter(&self, _row: u32) -> Result<RowCounter> {
        Ok(RowCounter::default())
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn site_counters(&self) -> SiteCounters {
        SiteCounters::default()
    }

    fn count_calls(&self, _on: bool) {}

    fn alive(&self, _now: u64) {}

    fn free_kernel_totals(&self, _count: u64) {}

    fn forget_files(&self) {}
}
