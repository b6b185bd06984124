//! Has addresses named by a process without rights, for a limited time.
//!
//! Owns that process, and its files while it works: it opens none itself. When it dies of a file, or takes too long,
//! another is asked for the functions' names alone; when that fails, too, addresses stay addresses.

use super::debug_info::may_belong;
use super::naming::{NAMER, Named, Said, Task, Told, Which};
use crate::foreign::ForeignFile;
use crate::foreign::worker::{Channel, Worker};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// For one file.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that it may ask for at once.
const AT_ONCE: usize = 1 << 20;

/// What is named.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub file: &'a ForeignFile,
    pub module: &'a str,
    /// Where the file was.
    pub path: &'a Path,
    pub offsets: &'a [u64],
    /// Whether source lines and inlined functions are wanted, too.
    pub lines: bool,
}

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// The frames at each offset.
///
/// # Errors
/// Who names has died, or has taken too long.
pub(super) fn ask(question: Question<'_>) -> io::Result<Named> {
    let worker = match WORKER.take() {
        Some(worker) => worker,
        None => Worker::start(NAMER)?,
    };
    let named = converse(worker.channel(), question);
    if named.is_ok() {
        WORKER.set(Some(worker));
    }
    named
}

fn converse(channel: &Channel, question: Question<'_>) -> io::Result<Named> {
    let end = Instant::now() + PATIENCE;
    let bytes: Vec<u8> = question
        .offsets
        .iter()
        .flat_map(|offset| offset.to_le_bytes())
        .collect();
    channel.copy_in(&bytes);
    let task = Task {
        module: question.module.to_owned(),
        path: question.path.as_os_str().as_bytes().to_vec(),
        bytes: question.file.facts().bytes,
        offsets: question.offsets.len(),
        lines: question.lines,
    };
    channel.send(&task, None)?;
    let mut apart = None;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match channel.receive::<Said>(Some(left))?.0 {
            Said::Done { size } => return answer(channel, size, question.offsets.len()),
            said => channel.send(&serve(channel, question, &mut apart, said), None)?,
        }
    }
}

/// Does what the namer needs.
fn serve(channel: &Channel, question: Question<'_>, apart: &mut Option<ForeignFile>, said: Said) -> Told {
    let (own, was_at) = (question.file, question.path);
    match said {
        Said::Find { path } => {
            let path = Path::new(OsStr::from_bytes(&path));
            // who has no rights must not come by a file through us that is none of its business
            *apart = may_belong(path, was_at).then(|| ForeignFile::find(path).ok()).flatten();
            apart.as_ref().map(|file| file.facts().bytes)
        }
        Said::Read { file, offset, size } => {
            let file = match file {
                Which::Own => Some(own),
                Which::Apart => apart.as_ref(),
            };
            let mut bytes = vec![0; size.min(AT_ONCE)];
            file?.read_exact_at(offset, &mut bytes).ok()?;
            Some(channel.copy_in(&bytes) as u64)
        }
        Said::Done { .. } => None,
    }
}

fn answer(channel: &Channel, size: usize, offsets: usize) -> io::Result<Named> {
    let mut bytes = vec![0; size.min(crate::foreign::worker::SHARED_BYTES)];
    channel.copy_out(&mut bytes);
    let mut named: Named = serde_json::from_slice(&bytes)?;
    named.frames.resize_with(offsets, Vec::new);
    Ok(named)
}
