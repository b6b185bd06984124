//! Reads a recording: as far as it is whole, whatever cut it off, and whatever somebody has written into it.

use super::check;
use super::columns::Rows;
use super::frame::{self, Frame, Holds, Next};
use super::named::{Named, buffered};
use super::schema::{self, Covers, Piece};
use crate::record::{Kind, Meta, Record, Taker};
use anyhow::{Result, anyhow, bail};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::root_as_message;
use arrow_schema::SchemaRef;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

/// A recording that is being read.
pub struct Reader<R: Read> {
    from: R,
    schema: SchemaRef,
    meta: Meta,
    texts: HashMap<i64, ArrayRef>,
    /// Files that follow.
    more: std::vec::IntoIter<Named>,
    begin: fn(&Path, File) -> Result<R>,
    piece: Piece,
    covers: Covers,
}

/// Batches that are unpacked before they are wanted.
const AHEAD: usize = 2;
/// Longer than the column of a batch is.
const LONG: usize = 16 << 20;

/// What was read.
enum Step {
    Rows(RecordBatch),
    /// Only what later rows need.
    Nothing,
    End,
    /// There is nothing behind it, not even an end.
    Missing,
}

/// How the reading of a recording went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct End {
    /// That were handed over.
    pub rows: u64,
    /// Those, and those of totals.
    pub all_rows: u64,
    /// The exact totals of the run, as docs/output.md has them; `None`: the recording was cut off before its end.
    pub summary: Option<String>,
    /// Of a part of a recording, which has no totals: those of the whole.
    pub of_whole: Option<String>,
    /// Where there is no summary, the last totals before it was cut off, if there are any.
    pub snapshot: Option<Latest>,
    /// Why nothing could be read behind the last row, if that is not the end.
    pub cut: Option<String>,
}

impl End {
    /// Refuses a recording at `path` of which nothing is left.
    ///
    /// # Errors
    /// It is one: neither rows nor totals could be read, and why.
    pub fn refuse_nothing(&self, path: &Path) -> Result<()> {
        match &self.cut {
            Some(why) if self.all_rows == 0 && self.summary.is_none() => {
                bail!("nothing in {} can be read: {why}", path.display())
            }
            _ => Ok(()),
        }
    }
}

/// Exact totals up to a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latest {
    /// That moment, ns since the start of the trace.
    pub at: i64,
    /// As those of a summary.
    pub totals: String,
    /// Rows behind it that were handed over; `None`: it does not stand among them.
    pub rows_after: Option<u64>,
    /// What was read begins with the trace, as totals always do; else they are of more than its rows.
    pub whole: bool,
}

impl Latest {
    /// Its row.
    #[must_use]
    pub fn record(&self) -> Record<'_> {
        Record {
            args: Some(&self.totals),
            ..Record::new(Kind::Snapshot, self.at, 0)
        }
    }
}

impl Reader<BufReader<File>> {
    /// Goes on with these files. `whole`: this one is the first of all that were made.
    pub(super) fn followed_by(mut self, more: Vec<Named>, whole: bool) -> Reader<BufReader<File>> {
        if whole && !more.is_empty() {
            (self.piece, self.covers) = (Piece::Whole, Covers::All);
        }
        self.more = more.into_iter();
        self.begin = buffered;
        self
    }

    /// The file once more, whose place is always where reading is; of several files the first.
    pub(super) fn place(&self) -> Option<File> {
        self.from.get_ref().try_clone().ok()
    }
}

impl<R: Read> Reader<R> {
    /// Reads what describes the trace.
    ///
    /// # Errors
    /// It is no recording, or one of a newer version.
    pub fn new(mut from: R) -> Result<Reader<R>> {
        let schema = first(&mut from)
            .and_then(|frame| described(&frame))
            .map_err(|why| anyhow!("it is no recording: {why}\nhint: gpuscope record writes one"))?;
        let meta = schema::meta(&schema).map_err(|why| anyhow!(why))?;
        check::schema(&schema).map_err(|why| anyhow!(why))?;
        Ok(Reader {
            from,
            piece: schema::piece(&schema),
            covers: schema::covers(&schema),
            schema,
            meta,
            texts: HashMap::new(),
            more: Vec::new().into_iter(),
            begin: |path, _| bail!("failed to read {}", path.display()),
        })
    }

    /// What is known of the trace.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// From when on it has all that happened.
    #[must_use]
    pub fn covers(&self) -> Covers {
        self.covers
    }

    /// Hands all rows to `taker`, snapshots as totals, and the summary to nobody.
    pub fn read(mut self, taker: &mut dyn Taker) -> End {
        taker.start(&self.meta);
        let piece = self.piece;
        take(std::iter::from_fn(|| Some(self.next())), piece, taker)
    }

    /// The same, with the next batches unpacked by a thread while `taker` has its rows, if there is room for one.
    pub fn read_ahead(self, taker: &mut dyn Taker) -> End
    where
        R: Send,
    {
        std::thread::scope(|scope| {
            let ((give, given), (lend, lent)) = (sync_channel(AHEAD), sync_channel::<Reader<R>>(1));
            let unpack = move || lent.recv().map_or((), |reader| reader.unpack(&give));
            if std::thread::Builder::new().spawn_scoped(scope, unpack).is_err() {
                return self.read(taker);
            }
            taker.start(&self.meta);
            let piece = self.piece;
            // it waits for the reader
            let _ = lend.send(self);
            take(given.into_iter(), piece, taker)
        })
    }

    /// Gives all steps to another thread.
    fn unpack(mut self, give: &SyncSender<Result<Step, String>>) {
        loop {
            let next = self.next();
            let more = matches!(next, Ok(Step::Rows(_) | Step::Nothing));
            // nobody takes it any more: a row could not be read
            if give.send(next).is_err() || !more {
                break;
            }
        }
    }

    /// Reads a message.
    fn next(&mut self) -> Result<Step, String> {
        match frame::next(&mut self.from).map_err(|error| format!("it cannot be read any further: {error}"))? {
            Next::Message(frame) => self.message(frame),
            Next::End if self.more.len() > 0 => self.turn_over().map(|()| Step::Nothing),
            Next::End => Ok(Step::End),
            Next::Missing => Ok(Step::Missing),
            Next::Part => Err("it ends within a batch: it was cut off".to_owned()),
            Next::Foreign(why) => Err(format!("it is damaged: {why}")),
        }
    }

    /// Goes on with the next file.
    fn turn_over(&mut self) -> Result<(), String> {
        let Some((path, file)) = self.more.next() else {
            return Ok(());
        };
        let next = (self.begin)(&path, file).and_then(Reader::new);
        let next = next.map_err(|error| crate::refusal::message(&error))?;
        if next.meta != self.meta {
            return Err(format!("{} is of another recording", path.display()));
        }
        self.from = next.from;
        self.schema = next.schema;
        self.texts.clear();
        Ok(())
    }

    fn message(&mut self, frame: Frame) -> Result<Step, String> {
        let bytes = Buffer::from_vec(frame.bytes);
        let head = bytes.slice_with_length(frame.head.start, frame.head.len());
        let body = bytes.slice_with_length(frame.body.start, frame.body.len());
        match frame.holds {
            Holds::Schema => Err("it begins once more".to_owned()),
            Holds::Texts(_) => self.take_texts(&head, &body).map(|()| Step::Nothing),
            Holds::Rows(_) => self.batch(&head, &body).map(Step::Rows),
        }
        .map_err(damaged)
    }

    fn take_texts(&mut self, head: &[u8], body: &Buffer) -> Result<(), String> {
        let message = root_as_message(head).map_err(|error| error.to_string())?;
        let texts = message.header_as_dictionary_batch().ok_or("it has no texts")?;
        check::texts(texts.data().ok_or("it has no texts")?, body)?;
        read_dictionary(body, texts, &self.schema, &mut self.texts, &message.version()).map_err(plain)
    }

    fn batch(&self, head: &[u8], body: &Buffer) -> Result<RecordBatch, String> {
        let message = root_as_message(head).map_err(|error| error.to_string())?;
        let rows = message.header_as_record_batch().ok_or("it has no rows")?;
        check::rows(rows, &self.schema, body)?;
        let schema = Arc::clone(&self.schema);
        RecordBatchDecoder::try_new(body, rows, schema, &self.texts, &message.version())
            .and_then(RecordBatchDecoder::read_record_batch)
            .map_err(plain)
    }
}

/// Has the memory of a batch serve the next one: else it goes back to the kernel, which takes a third of the time of
/// reading. Once glibc's allocator was given back a piece as long as that, it keeps what is shorter
/// (`M_MMAP_THRESHOLD` in mallopt(3)); others keep it anyway. Nothing touches the piece, so it takes no memory.
fn keep_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LONG)));
}

fn first(from: &mut impl Read) -> Result<Frame, String> {
    match frame::next(from).map_err(|error| error.to_string())? {
        Next::Message(frame) if frame.holds == Holds::Schema => Ok(frame),
        Next::Missing => Err("it is empty".to_owned()),
        Next::Part => Err("it ends before its first row".to_owned()),
        _ => Err("it is no Arrow stream".to_owned()),
    }
}

/// The columns that a message describes.
pub(super) fn described(frame: &Frame) -> Result<SchemaRef, String> {
    let message = root_as_message(&frame.bytes[frame.head.clone()]).map_err(|error| error.to_string())?;
    let schema = message.header_as_schema().ok_or("it has no columns")?;
    arrow_ipc::convert::try_fb_to_schema(schema)
        .map(Arc::new)
        .map_err(plain)
}

fn plain(error: arrow_schema::ArrowError) -> String {
    error.to_string()
}

fn damaged(why: String) -> String {
    format!("it is damaged: {why}")
}

/// Hands over all rows of `steps`, up to the last.
fn take(steps: impl Iterator<Item = Result<Step, String>>, piece: Piece, taker: &mut dyn Taker) -> End {
    keep_memory();
    let mut end = End::default();
    for step in steps {
        let taken = step.and_then(|step| match step {
            Step::Rows(batch) => rows(&batch, taker, &mut end).map(|()| true).map_err(damaged),
            Step::Nothing => Ok(true),
            last => conclude(&last, piece, &mut end).map(|()| false),
        });
        match taken {
            Ok(true) => {}
            Ok(false) => break,
            Err(why) => {
                end.cut = Some(why);
                break;
            }
        }
    }
    end.snapshot = end.snapshot.filter(|_| end.summary.is_none()).map(|latest| Latest {
        whole: piece == Piece::Whole,
        ..latest
    });
    end
}

/// Whether that is where it should end.
fn conclude(last: &Step, piece: Piece, end: &mut End) -> Result<(), String> {
    if piece != Piece::Whole {
        // they are of more than these rows
        end.summary = None;
        return Err(piece.why_no_summary().to_owned());
    }
    match (&end.summary, last) {
        (Some(_), _) => Ok(()),
        (None, Step::Missing) => Err("its end is missing: it was cut off, or is still being written".to_owned()),
        (None, _) => Err(piece.why_no_summary().to_owned()),
    }
}

fn rows(batch: &RecordBatch, taker: &mut dyn Taker, end: &mut End) -> Result<(), String> {
    let columns = Rows::of(batch)?;
    for row in 0..batch.num_rows() {
        let event = columns.record(row)?;
        end.all_rows += 1;
        match event.kind {
            Kind::Summary => end.summary = event.args.map(str::to_owned),
            Kind::Snapshot => {
                event.args.iter().for_each(|totals| taker.totals(event.at, totals));
                end.snapshot = event.args.map(|totals| latest(event.at, totals));
            }
            _ => {
                end.rows += 1;
                end.snapshot.iter_mut().for_each(count_row);
                taker.take(&event);
            }
        }
    }
    Ok(())
}

fn latest(at: i64, totals: &str) -> Latest {
    Latest {
        at,
        totals: totals.to_owned(),
        rows_after: Some(0),
        whole: true,
    }
}

fn count_row(latest: &mut Latest) {
    latest.rows_after = latest.rows_after.map(|rows| rows + 1);
}
