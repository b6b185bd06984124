//! The log of work: what really ran, one JSON object a line, in the file that `GPUSIM_WORK` names
//! (`%p` stands for the process id).
//!
//! Each line is one `write` to a file opened for appending, made before the call returns: lines
//! of several threads and processes do not mix, and none is lost when a process is killed.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use gpusim_common::clock::now_ns;
use gpusim_common::ledger::quoted;

use crate::call;
use crate::stream::Stream;
use crate::timeline::Span;

/// The open file, or one of the two below.
static FILE: AtomicI32 = AtomicI32::new(UNKNOWN);
const UNKNOWN: i32 = -1;
const UNWANTED: i32 = -2;

/// One operation, as far as the log names it.
pub struct Entry<'a> {
    pub op: &'static str,
    pub name: Option<&'a str>,
    pub bytes: u64,
    pub direction: Option<&'static str>,
    pub host: Option<&'static str>,
    /// What memory a copy goes to and comes from.
    pub ends: Option<(&'static str, &'static str)>,
    /// Whether the call waits for (some of) it.
    pub blocking: bool,
    /// The runnable graph it is a node of.
    pub graph: Option<usize>,
}

/// What a call waited for.
pub enum Waited {
    Stream(u64),
    Event(usize),
    Context(usize),
}

#[inline]
pub fn is_wanted() -> bool {
    match FILE.load(Relaxed) {
        UNWANTED => false,
        UNKNOWN => open(),
        _ => true,
    }
}

/// A forked child writes to the file of its own name.
pub fn forked() {
    if FILE.load(Relaxed) != UNWANTED {
        FILE.store(UNKNOWN, Relaxed);
    }
}

#[cold]
fn open() -> bool {
    let path = std::env::var("GPUSIM_WORK").unwrap_or_default();
    if path.is_empty() {
        FILE.store(UNWANTED, Relaxed);
        return false;
    }
    let path = path.replace("%p", &std::process::id().to_string());
    let opened = OpenOptions::new().create(true).append(true).open(&path);
    match opened {
        Ok(file) => FILE.store(file.into_raw_fd(), Relaxed),
        Err(error) => {
            eprintln!("gpusim: cannot write the log of work {path}: {error}");
            FILE.store(UNWANTED, Relaxed);
        }
    }
    FILE.load(Relaxed) >= 0
}

/// Notes an operation that runs in `stream`.
pub fn ran(entry: &Entry, stream: &Stream, span: Span) {
    if !is_wanted() {
        return;
    }
    let text = |value: Option<&str>| value.map_or("null".to_owned(), quoted);
    let mut line = begin();
    let _ = write!(
        line,
        r#""op":"{}","name":{},"bytes":{},"direction":{},"host":{},"to":{},"from":{},"blocking":{},"context":{},"stream":{},"start_ns":{},"end_ns":{},"submitted_ns":{},"graph":{}"#,
        entry.op,
        text(entry.name),
        entry.bytes,
        text(entry.direction),
        text(entry.host),
        text(entry.ends.map(|ends| ends.0)),
        text(entry.ends.map(|ends| ends.1)),
        entry.blocking,
        stream.context.handle(),
        stream.number,
        span.start_ns,
        span.end_ns,
        call::current().entered_ns,
        entry.graph.map_or("null".to_owned(), |graph| graph.to_string()),
    );
    end(line);
}

/// Notes that the call at hand has waited, and is about to return.
pub fn waited(waited: Waited) {
    if !is_wanted() {
        return;
    }
    let (kind, handle) = match waited {
        Waited::Stream(stream) => ("stream", stream),
        Waited::Event(event) => ("event", event as u64),
        Waited::Context(context) => ("context", context as u64),
    };
    let mut line = begin();
    let _ = write!(
        line,
        r#""sync":"{}","{kind}":{handle},"entered_ns":{},"returned_ns":{}"#,
        call::current().api,
        call::current().entered_ns,
        now_ns(),
    );
    end(line);
}

/// Notes what a program was told about the time between two events.
pub fn elapsed(ms: f32, events: (usize, usize), span: Span) {
    if !is_wanted() {
        return;
    }
    let mut line = begin();
    let _ = write!(
        line,
        r#""elapsed_ms":{ms},"events":[{},{}],"start_ns":{},"end_ns":{}"#,
        events.0, events.1, span.start_ns, span.end_ns
    );
    end(line);
}

/// Who does it.
fn begin() -> String {
    // SAFETY: takes nothing and cannot fail.
    let thread = unsafe { libc::gettid() };
    let mut line = String::with_capacity(384);
    let _ = write!(
        line,
        r#"{{"pid":{},"tid":{thread},"api":"{}","#,
        std::process::id(),
        call::current().api
    );
    line
}

fn end(mut line: String) {
    line.push_str("}\n");
    // SAFETY: the text, for as long as it is; a full disk is nothing this could mend.
    unsafe { libc::write(FILE.load(Relaxed), line.as_ptr().cast(), line.len()) };
}
