//! Writes a recording: an Arrow IPC stream, zstd, a batch each second at the latest.

use super::columns::Columns;
use super::schema;
use super::share::Share;
use super::trigger::{Cause, Trigger};
use crate::clock::{Clock, monotonic_ns};
use crate::record::{Encoder, Ending, Kind, Meta, Record, Taker};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of the largest batch.
const BATCH_ROWS: usize = 1 << 16;

/// How batches are written.
pub(super) fn compressed() -> Result<IpcWriteOptions, ArrowError> {
    IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD))
}

/// Turns rows into the bytes of a recording.
pub struct Recorder {
    schema: SchemaRef,
    writer: StreamWriter<Vec<u8>>,
    columns: Columns,
    clock: Clock,
    trigger: Trigger,
    missed: Missed,
    share: Share,
}

/// Calls that came when there was no room any more: by function how many, from when and until when.
type Missed = BTreeMap<String, (u64, i64, i64)>;

impl Recorder {
    /// Of a trace that `meta` describes.
    ///
    /// # Errors
    /// None is known.
    pub fn new(meta: &Meta) -> Result<Recorder, ArrowError> {
        let schema: SchemaRef = Arc::new(schema::schema(meta));
        let options = compressed()?;
        Ok(Recorder {
            writer: StreamWriter::try_new_with_options(Vec::new(), &schema, options)?,
            schema,
            columns: Columns::default(),
            clock: meta.clock,
            trigger: Trigger::default(),
            missed: Missed::new(),
            share: Share::default(),
        })
    }

    /// Tells `trigger` of calls that fail and of faults. When it says that there is no room, calls become no rows, and the
    /// end says how many.
    #[must_use]
    pub fn with_trigger(self, trigger: Trigger) -> Recorder {
        Recorder { trigger, ..self }
    }

    /// Adds a row.
    pub fn push(&mut self, event: &Record<'_>, out: &mut Vec<u8>) {
        self.columns.push(event);
        self.flush_full(out);
    }

    fn flush_full(&mut self, out: &mut Vec<u8>) {
        if self.columns.rows() >= BATCH_ROWS {
            self.flush(out);
        }
    }

    /// Writes the rows so far as a batch.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if self.columns.rows() > 0 {
            let batch = self.columns.finish(&self.schema);
            // into memory and with columns of this schema
            let written = batch.and_then(|batch| self.writer.write(&batch));
            debug_assert!(written.is_ok(), "{written:?}");
        }
        self.hand_over(out);
    }

    fn hand_over(&mut self, out: &mut Vec<u8>) {
        self.share.wrote(self.writer.get_ref().len());
        out.append(self.writer.get_mut());
    }

    fn miss(&mut self, name: &str, at: i64) {
        match self.missed.get_mut(name) {
            Some((count, _, last)) => (*count, *last) = (*count + 1, at),
            None => drop(self.missed.insert(name.to_owned(), (1, at, at))),
        }
    }

    /// Ends the stream.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.flush(out);
        let ended = self.writer.finish();
        debug_assert!(ended.is_ok(), "{ended:?}");
        self.hand_over(out);
    }
}

impl Encoder for Recorder {
    fn start(&mut self, _meta: &Meta, out: &mut Vec<u8>) {
        self.flush(out);
    }

    fn take(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        match record.kind {
            // it has its row when it returns, or at the end
            Kind::Open => return,
            Kind::Call | Kind::Kernel | Kind::Gpu if self.trigger.is_full() => {
                return self.miss(record.name, record.at);
            }
            Kind::Range | Kind::Mark if self.trigger.is_full() => return self.miss("NVTX ranges", record.at),
            Kind::Count | Kind::Sample | Kind::Idle | Kind::DeviceIdle | Kind::Overhead | Kind::Snapshot
                if self.trigger.is_full() =>
            {
                return;
            }
            Kind::Snapshot => self.share.charge(record.args.map_or(0, str::len)),
            Kind::Call | Kind::Kernel if record.failed => self.trigger.raise(Cause::Error),
            Kind::Xid => self.trigger.raise(Cause::Xid),
            _ => {}
        }
        self.push(record, out);
    }

    fn tick(&mut self, out: &mut Vec<u8>) {
        self.flush(out);
    }

    fn take_unreturned(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        if self.trigger.is_full() {
            return self.miss(record.name, record.at);
        }
        self.push(record, out);
    }

    fn has_room_for_totals(&self) -> bool {
        !self.trigger.is_full() && self.share.has_room()
    }

    fn finish(&mut self, ending: &Ending<'_>, out: &mut Vec<u8>) {
        for (function, (count, from, to)) in std::mem::take(&mut self.missed) {
            self.columns.push(&Record::lost(&function, count, from, to));
        }
        let now = self.clock.since(monotonic_ns());
        self.columns.push(&Record {
            args: ending.summary,
            ..Record::new(Kind::Summary, now, 0)
        });
        self.end(out);
    }
}

/// Rows into the bytes of a recording that is kept in memory.
pub struct Memory {
    recorder: Option<Recorder>,
    pub bytes: Vec<u8>,
}

impl Memory {
    /// An empty one.
    #[must_use]
    pub fn new() -> Memory {
        Memory {
            recorder: None,
            bytes: Vec::new(),
        }
    }

    /// Ends it.
    pub fn end(&mut self) {
        if let Some(recorder) = self.recorder.as_mut() {
            recorder.end(&mut self.bytes);
        }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl Taker for Memory {
    fn start(&mut self, meta: &Meta) {
        self.recorder = Recorder::new(meta).ok();
    }

    fn take(&mut self, event: &Record<'_>) {
        if let Some(recorder) = self.recorder.as_mut() {
            recorder.push(event, &mut self.bytes);
        }
    }
}
