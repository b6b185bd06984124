//! Writes a recording: an Arrow IPC stream, zstd, a batch each second at the latest.

use super::alarm::{Alarm, Cause};
use super::columns::Columns;
use super::entry::Entries;
use super::event::{Event, Kind, Meta, Taker};
use super::schema;
use crate::model::beside::{Happening, Measure};
use crate::model::summary::Summary;
use crate::model::xid::Report;
use crate::sink::{Entry, Sink};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of the largest batch.
const BATCH_ROWS: usize = 1 << 16;

/// Turns rows into the bytes of a recording.
pub struct Recorder {
    schema: SchemaRef,
    writer: StreamWriter<Vec<u8>>,
    columns: Columns,
    entries: Entries,
    alarm: Alarm,
    missed: Missed,
}

/// Calls that came when there was no room any more: by function how many, from when and until when, CLOCK_MONOTONIC ns.
type Missed = BTreeMap<String, (u64, u64, u64)>;

impl Recorder {
    /// Of a trace that `meta` describes.
    ///
    /// # Errors
    /// None is known.
    pub fn new(meta: &Meta) -> Result<Recorder, ArrowError> {
        let schema: SchemaRef = Arc::new(schema::schema(meta));
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD))?;
        Ok(Recorder {
            writer: StreamWriter::try_new_with_options(Vec::new(), &schema, options)?,
            schema,
            columns: Columns::default(),
            entries: Entries::new(meta.clock),
            alarm: Alarm::default(),
            missed: Missed::new(),
        })
    }

    /// Has `alarm` told of calls that fail and of faults. When it says that there is no room, calls become no rows, and the
    /// end says how many.
    #[must_use]
    pub fn with_alarm(self, alarm: Alarm) -> Recorder {
        Recorder { alarm, ..self }
    }

    /// Adds a row.
    pub fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
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
        out.append(self.writer.get_mut());
    }

    fn miss(&mut self, entry: &Entry<'_>) {
        let at = entry.call.header.entered;
        match self.missed.get_mut(entry.name()) {
            Some((count, _, last)) => (*count, *last) = (*count + 1, at),
            None => drop(self.missed.insert(entry.name().to_owned(), (1, at, at))),
        }
    }

    /// Ends the stream.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.flush(out);
        let ended = self.writer.finish();
        debug_assert!(ended.is_ok(), "{ended:?}");
        out.append(self.writer.get_mut());
    }
}

impl Sink for Recorder {
    fn start(&mut self, out: &mut Vec<u8>) {
        self.flush(out);
    }

    fn call(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        if self.alarm.is_full() {
            return self.miss(entry);
        }
        let event = self.entries.call(entry, true);
        if event.failed {
            self.alarm.raise(Cause::Error);
        }
        self.columns.push(&event);
        self.flush_full(out);
    }

    fn process(&mut self, pid: u32, at: u64, comm: &str, what: Happening, _out: &mut Vec<u8>) {
        self.columns.push(&self.entries.process(pid, at, comm, what));
    }

    fn xid(&mut self, report: &Report, _out: &mut Vec<u8>) {
        self.alarm.raise(Cause::Xid);
        self.columns.push(&self.entries.xid(report));
    }

    fn lost(&mut self, function: &str, count: u64, from: u64, to: u64, _out: &mut Vec<u8>) {
        self.columns.push(&self.entries.lost(function, count, from, to));
    }

    fn measures(&self) -> bool {
        true
    }

    fn measure(&mut self, measure: &Measure, _out: &mut Vec<u8>) {
        if !self.alarm.is_full() {
            self.columns.push(&self.entries.measure(measure));
        }
    }

    fn tick(&mut self, out: &mut Vec<u8>) {
        self.flush(out);
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        for (function, (count, from, to)) in std::mem::take(&mut self.missed) {
            self.columns.push(&self.entries.lost(&function, count, from, to));
        }
        let args = crate::sink::summary::to_json_line(summary).to_string();
        let now = self.entries.since(crate::clock::monotonic_ns());
        self.columns.push(&Event {
            args: Some(&args),
            ..Event::new(Kind::Summary, now, 0)
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

    fn take(&mut self, event: &Event<'_>) {
        if let Some(recorder) = self.recorder.as_mut() {
            recorder.push(event, &mut self.bytes);
        }
    }
}
