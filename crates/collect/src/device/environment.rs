//! What of a process's surroundings decides which devices it sees.
//!
//! `/proc/PID/environ` is the environment with which the program was started. What it changes itself, as Python
//! programs do with `os.environ` before CUDA starts, is not in it.

use crate::foreign;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// More than the kernel lets a program be started with.
const LARGEST: u64 = 8 << 20;
/// Fields of `/proc/PID/stat` between the name and where the program's code begins.
const FIELDS_BEFORE_CODE: usize = 23;
/// Fields between that one and the place of the environment.
const FIELDS_BETWEEN: usize = 23;

/// The surroundings of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `CUDA_VISIBLE_DEVICES` at its start; `None`: not set.
    pub visible_devices: Option<String>,
    /// `CUDA_DEVICE_ORDER` at its start; `None`: not set.
    pub device_order: Option<String>,
    /// The numbers of the `/dev/nvidiaNUMBER` that it has: a container is given some of them. Empty: not known.
    pub minors: BTreeSet<u32>,
}

impl Environment {
    /// Reads that of process `pid`.
    ///
    /// # Errors
    /// When the process is gone or belongs to another user; `WouldBlock` while it begins or ends.
    pub fn of(pid: u32) -> io::Result<Environment> {
        let path = PathBuf::from(format!("/proc/{pid}/environ"));
        let bytes = foreign::read_of_process(pid, &path, LARGEST as usize)?;
        let length = length_in(&std::fs::read(format!("/proc/{pid}/stat"))?);
        if length.map(|length| length.min(LARGEST)) != Some(bytes.len() as u64) {
            return Err(io::Error::new(
                io::ErrorKind::WouldBlock,
                "the process has only begun, or is ending",
            ));
        }
        let minors = minors(pid, Path::new(&format!("/proc/{pid}/root/dev")));
        Ok(Environment {
            minors,
            ..parse(&bytes)
        })
    }
}

/// How long the environment is; `None`: inside `exec` there is none for a moment, nor after the end.
///
/// `/proc/PID/environ` just stops there, be it in the middle. `exec` lays the environment out as an empty one, and
/// says where it ends once it has walked through it; where the code is, it says only after that.
#[must_use]
pub fn length_in(stat: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(stat);
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let code: u64 = fields.nth(FIELDS_BEFORE_CODE)?.parse().ok()?;
    let start: u64 = fields.nth(FIELDS_BETWEEN)?.parse().ok()?;
    let end: u64 = fields.next()?.parse().ok()?;
    end.checked_sub(start).filter(|_| code != 0 && end != 0)
}

/// What the text of `environ` says.
#[must_use]
pub fn parse(environ: &[u8]) -> Environment {
    // As getenv does: the first of several.
    let value = |name: &str| {
        let mut entries = environ.split(|byte| *byte == 0);
        let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(String::from_utf8_lossy(value).into_owned())
    };
    Environment {
        visible_devices: value("CUDA_VISIBLE_DEVICES"),
        device_order: value("CUDA_DEVICE_ORDER"),
        minors: BTreeSet::new(),
    }
}

pub(super) fn minors(pid: u32, folder: &Path) -> BTreeSet<u32> {
    let minor = |name: &[u8]| std::str::from_utf8(name.strip_prefix(b"nvidia")?).ok()?.parse().ok();
    let names = foreign::names_in(pid, folder).unwrap_or_default();
    names.iter().filter_map(|name| minor(name)).collect()
}
