//! The texts of one scrape: each is made once, however many clients ask for it.

use super::Render;
use super::negotiate::Format;
use crate::serve::Scrape;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Bytes;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// See the module.
pub struct Texts {
    render: Box<Render>,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    /// Of the scrape; 0: of none.
    number: u64,
    texts: Vec<(Format, bool, Bytes)>,
}

impl Texts {
    pub fn new(render: Box<Render>) -> Texts {
        Texts {
            render,
            last: Mutex::default(),
        }
    }

    /// The text of `scrape`, compressed or not.
    pub fn of(&self, scrape: &Scrape, format: Format, gzip: bool) -> Bytes {
        // held while a text is made: who asks for the same waits for it
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.number != scrape.number {
            *last = Last {
                number: scrape.number,
                texts: Vec::new(),
            };
        }
        if let Some(text) = last.find(format, gzip) {
            return text;
        }
        let plain = last.find(format, false);
        let plain = plain.unwrap_or_else(|| last.keep(format, false, (self.render)(scrape, format).into()));
        if gzip {
            last.keep(format, true, compressed(&plain))
        } else {
            plain
        }
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
}

/// Fast rather than small: it is done for each scrape.
fn compressed(text: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 8), Compression::fast());
    // a vector takes everything
    let written = encoder.write_all(text).and_then(|()| encoder.finish());
    written.unwrap_or_default().into()
}
