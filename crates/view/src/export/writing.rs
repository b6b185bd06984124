//! Rows into an encoder, its bytes into a writer.

use crate::record::{Encoder, Ending, Kind, Meta, Record, Taker};
use std::io::{self, Write};

/// Bytes that go out at once.
const PIECE: usize = 1 << 18;

/// What was written in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub bytes: u64,
    /// What the encoder has to say of it.
    pub note: Option<String>,
}

/// Takes rows. The first failure is remembered, and ends the writing.
pub struct Writing<F, W: Write> {
    encoder: F,
    to: W,
    buffer: Vec<u8>,
    written: u64,
    failure: Option<io::Error>,
}

impl<F: Encoder, W: Write> Writing<F, W> {
    /// Nothing is written yet.
    pub fn new(encoder: F, to: W) -> Writing<F, W> {
        Writing {
            encoder,
            to,
            buffer: Vec::with_capacity(2 * PIECE),
            written: 0,
            failure: None,
        }
    }

    /// Writes what belongs behind the last row.
    ///
    /// # Errors
    /// The first failure of the writer or of the encoder.
    pub fn end(mut self, ending: &Ending<'_>) -> io::Result<Written> {
        self.encoder.finish(ending, &mut self.buffer);
        self.pass_on();
        match (self.failure, self.encoder.failure()) {
            (Some(error), _) => Err(error),
            (None, Some(why)) => Err(io::Error::other(why)),
            (None, None) => self.to.flush().map(|()| Written {
                bytes: self.written,
                note: self.encoder.note(),
            }),
        }
    }

    fn pass_on(&mut self) {
        if self.failure.is_none() {
            self.written += self.buffer.len() as u64;
            self.failure = self.to.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }
}

impl<F: Encoder, W: Write> Taker for Writing<F, W> {
    fn start(&mut self, meta: &Meta) {
        self.encoder.start(meta, &mut self.buffer);
    }

    fn take(&mut self, event: &Record<'_>) {
        if self.failure.is_some() {
            return;
        }
        match event.kind {
            Kind::Open => self.encoder.take_unreturned(event, &mut self.buffer),
            _ => self.encoder.take(event, &mut self.buffer),
        }
        if self.buffer.len() >= PIECE {
            self.pass_on();
        }
    }
}
