//! What a stream has said so far that is needed to begin again in the middle of it.

use crate::trace::frame::{Frame, Holds};
use crate::trace::reader;
use crate::trace::schema::{self, Piece};
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::SchemaRef;
use std::collections::BTreeMap;
use std::io;

/// The columns, and the texts that rows refer to now.
#[derive(Default)]
pub(super) struct Stream {
    schema: Option<SchemaRef>,
    texts: Texts,
    /// Those that have changed since the last batch.
    changed: Texts,
}

/// Messages with the texts of a column, by the number of its dictionary.
pub(super) type Texts = BTreeMap<i64, Vec<u8>>;

/// A batch of rows and the texts that are new in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    pub changed: Texts,
    pub batch: Vec<u8>,
    pub rows: u64,
}

impl Group {
    /// As it stands in the stream.
    pub(super) fn bytes(&self) -> Vec<u8> {
        joined(&self.changed, &self.batch)
    }
}

/// Texts and a batch that refers to them.
pub(super) fn joined(texts: &Texts, batch: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = texts.values().flatten().copied().collect();
    bytes.extend_from_slice(batch);
    bytes
}

impl Stream {
    /// Takes in a message; the batch that it completes.
    ///
    /// # Errors
    /// It is none that the recorder writes.
    pub(super) fn take(&mut self, frame: Frame) -> io::Result<Option<Group>> {
        match frame.holds {
            Holds::Schema => self.schema = Some(reader::described(&frame).map_err(io::Error::other)?),
            Holds::Texts(number) => {
                self.changed.insert(number, frame.bytes);
            }
            Holds::Rows(rows) => {
                let changed = std::mem::take(&mut self.changed);
                self.texts
                    .extend(changed.iter().map(|(number, texts)| (*number, texts.clone())));
                return Ok(Some(Group {
                    changed,
                    batch: frame.bytes,
                    rows: rows.unsigned_abs(),
                }));
            }
        }
        Ok(None)
    }

    /// What a file with `piece` of the trace begins with, which has all that happened from `from` on, CLOCK_MONOTONIC ns;
    /// `None`: from its start.
    ///
    /// # Errors
    /// The stream has not begun.
    pub(super) fn header(&self, piece: Piece, from: Option<u64>) -> io::Result<Vec<u8>> {
        let schema = self.schema.as_ref().ok_or_else(|| io::Error::other("no columns yet"))?;
        let schema = schema::of_piece(schema, piece, from);
        let writer = StreamWriter::try_new_with_options(Vec::new(), &schema, IpcWriteOptions::default());
        let mut writer = writer.map_err(io::Error::other)?;
        Ok(std::mem::take(writer.get_mut()))
    }

    /// The texts that rows refer to now.
    pub(super) fn texts(&self) -> &Texts {
        &self.texts
    }
}
