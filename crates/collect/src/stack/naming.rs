//! Names addresses of one file, in a process of its own that has no rights: what a file says of itself may be made to
//! harm who reads it.
//!
//! Owns that process's side: what it is told, what it asks for, what it answers. It opens nothing; bytes of files come
//! from who asks. What lies in which part of a file is [`crate::elf`]'s business.

use super::debug_info::{DebugInfo, TooLarge};
use super::demangle::demangle;
use super::names::{nameless, short};
use crate::elf::{DebugFile, ElfFile, ReadAt};
use crate::foreign::confine;
use crate::foreign::worker::{Channel, Role};
use crate::frame::{Frame, Language};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The process that names.
pub const NAMER: Role = Role {
    name: "gpuscope-namer",
    speaks: false,
    serve,
};

/// What is to be named. The offsets lie in the shared memory, eight bytes each.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub module: String,
    /// Where the file was, as a process named it.
    pub path: Vec<u8>,
    pub bytes: u64,
    pub offsets: usize,
    /// Whether source lines and inlined functions are wanted, too.
    pub lines: bool,
}

/// What the process says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// It needs bytes of a file: they are to lie in the shared memory.
    Read { file: Which, offset: u64, size: usize },
    /// It needs the file at this path to be found. Answered by its size.
    Find { path: Vec<u8> },
    /// The answer lies in the shared memory.
    Done { size: usize },
}

/// One of the files of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Which {
    Own,
    /// The one that was found last.
    Apart,
}

/// What it is told then: the bytes that there are, or `None`: there are none.
pub(super) type Told = Option<u64>;

/// The frames at each offset, innermost first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Named {
    pub frames: Vec<Vec<Place>>,
    /// Bytes of debug information that were too many.
    pub too_large: Option<u64>,
}

/// A frame, without what is the same for all of its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub function: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub inlined: bool,
}

impl Place {
    fn of(frame: Frame) -> Place {
        Place {
            function: frame.function,
            file: frame.file,
            line: frame.line,
            inlined: frame.inlined,
        }
    }

    /// As it is shown.
    pub(super) fn frame(self, module: &str, offset: u64) -> Frame {
        Frame {
            function: self.function,
            module: Some(module.to_owned()),
            offset: Some(offset),
            file: self.file,
            line: self.line,
            language: Language::Native,
            inlined: self.inlined,
        }
    }
}

type Asked = Arc<Mutex<Channel>>;

fn serve(channel: Channel) {
    confine::confine();
    let asked = Arc::new(Mutex::new(channel));
    while let Some(task) = next(&asked) {
        let named = name(&asked, &task).unwrap_or_default();
        let Ok(answer) = serde_json::to_vec(&named) else { return };
        let channel = asked.lock().unwrap_or_else(PoisonError::into_inner);
        let size = channel.copy_in(&answer);
        // half an answer is none
        let size = if size == answer.len() { size } else { 0 };
        if channel.send(&Said::Done { size }, None).is_err() {
            return;
        }
    }
}

fn next(asked: &Asked) -> Option<(Task, Vec<u64>)> {
    let channel = asked.lock().unwrap_or_else(PoisonError::into_inner);
    let (task, _) = channel.receive::<Task>(None).ok()?;
    let mut bytes = vec![0; task.offsets * 8];
    channel.copy_out(&mut bytes);
    let offsets = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
    Some((task, offsets.collect()))
}

fn name(asked: &Asked, (task, offsets): &(Task, Vec<u64>)) -> Option<Named> {
    let own = Box::new(Bytes {
        asked: Arc::clone(asked),
        file: Which::Own,
    });
    let elf = ElfFile::read_from(own, task.bytes).ok()?;
    let names = elf.function_names(offsets);
    let bare = |(offset, name): (&u64, Option<String>)| Frame {
        function: name.map_or_else(|| format!("{offset:#x}"), |name| short(&demangle(&name))),
        ..nameless(Some(&task.module), *offset)
    };
    let bare: Vec<Frame> = offsets.iter().zip(names).map(bare).collect();
    let path = Path::new(OsStr::from_bytes(&task.path));
    let find = |path: &Path| find(asked, path);
    let debug = match task.lines {
        true => DebugInfo::open(&elf, path, &find),
        false => Ok(None),
    };
    let too_large = debug.as_ref().err().map(|TooLarge { bytes }| *bytes);
    let debug = debug.ok().flatten();
    let told = |offset, bare: &Frame| debug.as_ref()?.frames(elf.address_of(offset)?, bare);
    let frames = bare.into_iter().zip(offsets);
    let frames = frames.map(|(bare, offset)| told(*offset, &bare).unwrap_or_else(|| vec![bare]));
    Some(Named {
        frames: frames
            .map(|frames| frames.into_iter().map(Place::of).collect())
            .collect(),
        too_large,
    })
}

/// Has a file with debug information found by who asks.
fn find(asked: &Asked, path: &Path) -> Option<DebugFile> {
    let said = Said::Find {
        path: path.as_os_str().as_bytes().to_vec(),
    };
    let bytes = ask(asked, &said, None).ok()?;
    let apart = Box::new(Bytes {
        asked: Arc::clone(asked),
        file: Which::Apart,
    });
    DebugFile::read_from(apart, bytes).ok()
}

/// Bytes of a file that who asks reads for us.
#[derive(Debug)]
struct Bytes {
    asked: Asked,
    file: Which,
}

impl ReadAt for Bytes {
    fn read_exact_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        const AT_ONCE: usize = 1 << 20;
        for (at, piece) in (0..).zip(into.chunks_mut(AT_ONCE)) {
            let said = Said::Read {
                file: self.file,
                offset: offset.saturating_add(at * AT_ONCE as u64),
                size: piece.len(),
            };
            ask(&self.asked, &said, Some(piece))?;
        }
        Ok(())
    }
}

fn ask(asked: &Asked, said: &Said, into: Option<&mut [u8]>) -> io::Result<u64> {
    let channel = asked.lock().unwrap_or_else(PoisonError::into_inner);
    channel.send(said, None)?;
    let (told, _) = channel.receive::<Told>(None)?;
    let bytes = told.ok_or(io::ErrorKind::NotFound)?;
    if let Some(into) = into {
        channel.copy_out(into);
    }
    Ok(bytes)
}
