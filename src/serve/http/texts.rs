//! The texts of one scrape: each is made once, however many clients ask for it, and all that are still being taken are
//! bounded together.
//!
//! A text lives as long as somebody takes it. Where those of older scrapes fill the room, who asks gets the last text
//! again; once that is too old, who still takes the oldest has to leave.

use super::Render;
use super::limits::{PATIENCE, TEXT_BYTES};
use super::negotiate::Format;
use super::seats::Seats;
use crate::serve::Scrape;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Bytes;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How often those who were sent away are waited for.
const TURNS: usize = 4;

/// The texts of one scrape.
pub struct Texts {
    render: Box<Render>,
    last: Mutex<Last>,
    /// Bytes of all texts that somebody holds.
    alive: Arc<AtomicUsize>,
    /// Of the longest text so far.
    longest: AtomicUsize,
}

#[derive(Default)]
struct Last {
    /// Of the scrape; 0: of none.
    number: u64,
    at: Option<Instant>,
    texts: Vec<(Format, bool, Bytes)>,
}

/// A text that is counted until its last holder drops it.
struct Counted<T: Text> {
    text: T,
    alive: Arc<AtomicUsize>,
}

/// What a text is kept in.
trait Text: Send + 'static {
    fn bytes(&self) -> &[u8];
    /// That it takes.
    fn size(&self) -> usize;
}

impl Text for Arc<String> {
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn size(&self) -> usize {
        self.capacity()
    }
}

impl Text for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn size(&self) -> usize {
        self.capacity()
    }
}

impl<T: Text> AsRef<[u8]> for Counted<T> {
    fn as_ref(&self) -> &[u8] {
        self.text.bytes()
    }
}

impl<T: Text> Drop for Counted<T> {
    fn drop(&mut self) {
        self.alive.fetch_sub(self.text.size(), Ordering::Relaxed);
    }
}

impl Texts {
    pub(crate) fn new(render: Box<Render>) -> Texts {
        Texts {
            render,
            last: Mutex::default(),
            alive: Arc::default(),
            longest: AtomicUsize::new(0),
        }
    }

    /// The text of `scrape`, compressed or not, or under a crowd one that is a little older; and the number of its scrape.
    pub async fn of(&self, scrape: &Scrape, format: Format, gzip: bool, seats: &Seats) -> (u64, Bytes) {
        if !self.is_last(scrape) && !self.has_room() {
            if let Some(older) = self.recent(format, gzip) {
                return older;
            }
            self.last().forget();
            self.make_room(seats).await;
        }
        (scrape.number, self.made(scrape, format, gzip))
    }

    fn made(&self, scrape: &Scrape, format: Format, gzip: bool) -> Bytes {
        // held while a text is made: who asks for the same waits for it
        let mut last = self.last();
        if last.number != scrape.number {
            last.forget();
            (last.number, last.at) = (scrape.number, Some(scrape.at));
        }
        if let Some(text) = last.find(format, gzip) {
            return text;
        }
        let plain = last.find(format, false);
        let plain = plain.unwrap_or_else(|| last.keep(format, false, self.counted((self.render)(scrape, format))));
        if gzip {
            last.keep(format, true, self.counted(compressed(&plain)))
        } else {
            plain
        }
    }

    fn counted(&self, text: impl Text) -> Bytes {
        self.longest.fetch_max(text.size(), Ordering::Relaxed);
        self.alive.fetch_add(text.size(), Ordering::Relaxed);
        Bytes::from_owner(Counted {
            text,
            alive: Arc::clone(&self.alive),
        })
    }

    /// The last text, if it is no older than who asks would wait.
    fn recent(&self, format: Format, gzip: bool) -> Option<(u64, Bytes)> {
        let last = self.last();
        last.at.filter(|at| at.elapsed() < PATIENCE)?;
        Some((last.number, last.find(format, gzip)?))
    }

    fn is_last(&self, scrape: &Scrape) -> bool {
        self.last().number == scrape.number
    }

    /// For another text: as long as the longest, compressed beside it, and as much again while it is written.
    fn has_room(&self) -> bool {
        let more = 2 * self.longest.load(Ordering::Relaxed);
        self.alive.load(Ordering::Relaxed) + more <= TEXT_BYTES
    }

    /// Sends away who takes the oldest texts, until there is room or nobody takes any.
    async fn make_room(&self, seats: &Seats) {
        while !self.has_room() && seats.dismiss_oldest() {
            let before = self.alive.load(Ordering::Relaxed);
            for _ in 0..TURNS {
                // their tasks end, and drop what they hold
                tokio::task::yield_now().await;
                if self.alive.load(Ordering::Relaxed) < before {
                    break;
                }
            }
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Last {
    fn find(&self, format: Format, gzip: bool) -> Option<Bytes> {
        let mut texts = self.texts.iter();
        let found = texts.find(|(of, packed, _)| (*of, *packed) == (format, gzip));
        found.map(|(_, _, text)| text.clone())
    }

    fn keep(&mut self, format: Format, gzip: bool, text: Bytes) -> Bytes {
        self.texts.push((format, gzip, text.clone()));
        text
    }

    /// Those who take its texts hold them still.
    fn forget(&mut self) {
        *self = Last::default();
    }
}

/// Fast rather than small: it is done for each scrape.
fn compressed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 8), Compression::fast());
    // a vector takes everything
    let written = encoder.write_all(text).and_then(|()| encoder.finish());
    let mut packed = written.unwrap_or_default();
    packed.shrink_to_fit();
    packed
}
