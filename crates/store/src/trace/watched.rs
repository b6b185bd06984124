//! Tells how far the reading of a file has come.

use super::reader::End;
use super::recording::Recording;
use crate::record::{Meta, Record, Taker};
use std::fs::File;
use std::io::Seek;

/// Rows between two looks at how far reading has come.
const LOOK_ROWS: u64 = 1 << 16;

impl Recording {
    /// [`Recording::read`] of a recording that is `all` bytes long; `watch` is told how many bytes of how many are read, now and
    /// then.
    pub fn read_watched(self, all: u64, taker: &mut dyn Taker, watch: &mut dyn FnMut(u64, u64)) -> End {
        let mut watched = Watched {
            taker,
            watch,
            rows: 0,
            place: self.place(),
            all,
        };
        self.read(&mut watched)
    }
}

/// Hands rows on.
struct Watched<'a> {
    taker: &'a mut dyn Taker,
    watch: &'a mut dyn FnMut(u64, u64),
    rows: u64,
    place: Option<File>,
    all: u64,
}

impl Taker for Watched<'_> {
    fn start(&mut self, meta: &Meta) {
        self.taker.start(meta);
    }

    fn take(&mut self, event: &Record<'_>) {
        self.rows += 1;
        if self.rows.is_multiple_of(LOOK_ROWS) {
            let place = self.place.as_mut().and_then(|file| file.stream_position().ok());
            (self.watch)(place.unwrap_or(0), self.all);
        }
        self.taker.take(event);
    }

    fn totals(&mut self, at: i64, totals: &str) {
        self.taker.totals(at, totals);
    }
}
