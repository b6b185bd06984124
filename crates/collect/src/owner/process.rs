//! What `/proc/PID` says of a process.

use super::batch;
use super::cgroup::{self, Place};
use super::label::{Label, Wanted};
use super::program;
use super::value::{clean, clean_path};
use crate::foreign;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What most files of `/proc` have no more than.
const USUAL_BYTES: usize = 1 << 10;
const STAT_BYTES: u64 = 4 << 10;
const STATUS_BYTES: u64 = 8 << 10;
pub(super) const CGROUP_BYTES: u64 = 64 << 10;
/// More than can be left of it.
const CMDLINE_BYTES: u64 = 4 << 10;
/// Variables beyond this are not found.
const ENVIRON_BYTES: u64 = 1 << 20;
/// Fields of `/proc/PID/stat` between the name and the time of the start.
const FIELDS_BEFORE_START: usize = 19;

/// A process at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Portrait {
    /// When it began, in clock ticks since the machine did: with the pid, this names it.
    pub start_ticks: u64,
    pub place: Place,
    /// The wanted labels of its program that it has.
    program: Vec<(Label, String)>,
}

impl Portrait {
    /// Reads it; `None`: there is no such process (any more), or one that has ended and tells nothing of its program.
    pub(crate) fn read(proc: &Path, pid: u32, wanted: &Wanted) -> Option<Portrait> {
        let folder = proc.join(pid.to_string());
        let stat = Stat::read(&folder).filter(|stat| !stat.ended)?;
        let place = read(&folder.join("cgroup"), CGROUP_BYTES).unwrap_or_default();
        let portrait = Portrait {
            start_ticks: stat.start_ticks,
            place: cgroup::parse(&place),
            program: labels(&folder, &stat.comm, wanted),
        };
        // else a part of it may be of the next process with this pid
        let later = Stat::read(&folder)?;
        (later.start_ticks == stat.start_ticks && !later.ended).then_some(portrait)
    }

    /// The value of a label of the program or of the place; empty: it has none.
    pub(crate) fn value(&self, label: &Label) -> &str {
        let place = &self.place;
        let of_place = match label {
            Label::ContainerId => &place.container_id,
            Label::PodUid => &place.pod_uid,
            Label::Unit => &place.unit,
            Label::SlurmJob => &place.slurm_job,
            Label::SlurmStep => &place.slurm_step,
            Label::Job if place.job.is_some() => &place.job,
            _ => return self.program_value(label),
        };
        of_place.as_deref().unwrap_or_default()
    }

    /// The same place with another program of which nothing is known.
    pub(crate) fn without_program(&self) -> Portrait {
        Portrait {
            program: Vec::new(),
            ..self.clone()
        }
    }

    /// The same at another place.
    pub(crate) fn at(&self, place: Place) -> Portrait {
        Portrait { place, ..self.clone() }
    }

    /// The same with another name.
    pub(crate) fn named(&self, comm: String) -> Portrait {
        let mut named = self.clone();
        named.program.retain(|(label, _)| *label != Label::Comm);
        named.program.push((Label::Comm, comm));
        named
    }

    fn program_value(&self, label: &Label) -> &str {
        let found = self.program.iter().find(|(known, _)| known == label);
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// When the process began, in clock ticks since the machine did; `None`: there is none.
pub fn start_ticks(proc: &Path, pid: u32) -> Option<u64> {
    Stat::read(&proc.join(pid.to_string())).map(|stat| stat.start_ticks)
}

fn labels(folder: &Path, comm: &[u8], wanted: &Wanted) -> Vec<(Label, String)> {
    let environ = match wanted.reads_environment() {
        true => environ(folder),
        false => Vec::new(),
    };
    let value = |label: &Label| match label {
        Label::Comm => clean(comm),
        Label::Exe => exe(folder),
        Label::Cmdline => cmdline(folder),
        Label::Env(name) => variable(&environ, name),
        Label::User => real_user(&read(&folder.join("status"), STATUS_BYTES).unwrap_or_default()),
        Label::Program => program::of_cmdline(&read_memory_of(folder, "cmdline", CMDLINE_BYTES)),
        Label::Job => batch::job(|name| variable(&environ, name)),
        Label::Rank => batch::rank(|name| variable(&environ, name)),
        _ => String::new(),
    };
    let of_program = wanted.labels().iter().filter(|label| label.is_of_program());
    of_program.map(|label| (label.clone(), value(label))).collect()
}

fn exe(folder: &Path) -> String {
    let path = std::fs::read_link(folder.join("exe")).unwrap_or_default();
    let bytes = path.as_os_str().as_bytes();
    // an upgrade of the program under a running process makes it no other program
    clean_path(bytes.strip_suffix(b" (deleted)").unwrap_or(bytes))
}

fn cmdline(folder: &Path) -> String {
    let bytes = read_memory_of(folder, "cmdline", CMDLINE_BYTES);
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let spaced: Vec<u8> = bytes[..used]
        .iter()
        .map(|byte| if *byte == 0 { b' ' } else { *byte })
        .collect();
    clean(&spaced)
}

/// The number of the user whose process it is, whatever rights it has now; empty: the text does not say.
fn real_user(status: &[u8]) -> String {
    let mut lines = status.split(|byte| *byte == b'\n');
    let ids = lines.find_map(|line| line.strip_prefix(b"Uid:"));
    let ids = ids.and_then(|ids| std::str::from_utf8(ids).ok());
    let real = ids.and_then(|ids| ids.split_ascii_whitespace().next()?.parse::<u32>().ok());
    real.map_or_else(String::new, |uid| uid.to_string())
}

fn environ(folder: &Path) -> Vec<u8> {
    read_memory_of(folder, "environ", ENVIRON_BYTES)
}

fn variable(environ: &[u8], name: &str) -> String {
    // as getenv does: the first of several
    let mut entries = environ.split(|byte| *byte == 0);
    let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    clean(value.unwrap_or_default())
}

/// The first of these variables that the environment of a process has and that is not empty; empty: it has none.
#[cfg(feature = "serve")]
pub(crate) fn first_variable(proc: &Path, pid: u32, names: &[&str]) -> String {
    let environ = environ(&proc.join(pid.to_string()));
    let values = names.iter().map(|name| variable(&environ, name));
    values.into_iter().find(|value| !value.is_empty()).unwrap_or_default()
}

/// When a process began that runs still, in clock ticks since the machine did; with its number that tells it from all others. `None`: it
/// has ended.
#[must_use]
pub fn began(pid: u32) -> Option<u64> {
    let stat = Stat::read(&Path::new("/proc").join(pid.to_string()))?;
    stat.runs(pid).then_some(stat.start_ticks)
}

/// What `/proc/PID/stat` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The name of its first thread.
    pub comm: Vec<u8>,
    /// Its parent has not asked for its status yet, or its first thread has ended before the others.
    pub ended: bool,
    /// When it began, in clock ticks since the machine did.
    pub start_ticks: u64,
}

impl Stat {
    /// Of a process, whose folder in `/proc` this is. `None`: it is gone.
    #[must_use]
    pub fn read(folder: &Path) -> Option<Stat> {
        Stat::parse(&read(&folder.join("stat"), STAT_BYTES).ok()?)
    }

    /// Whether process `pid`, whose it is, runs still: its first thread may have ended before the others.
    #[must_use]
    pub fn runs(&self, pid: u32) -> bool {
        !self.ended || crate::discover::has_other_threads(pid)
    }

    /// Reads the text; the name may itself hold parentheses, spaces and newlines. `None`: it is not of a process.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Stat> {
        let first = text.iter().position(|byte| *byte == b'(')?;
        let last = text.iter().rposition(|byte| *byte == b')')?;
        let comm = text.get(first + 1..last)?.to_vec();
        let fields = std::str::from_utf8(&text[last + 1..]).ok()?;
        let start_ticks = fields.split_ascii_whitespace().nth(FIELDS_BEFORE_START)?.parse().ok()?;
        let ended = fields.trim_start().starts_with(['Z', 'X', 'x']);
        Some(Stat {
            comm,
            ended,
            start_ticks,
        })
    }
}

/// A file of `/proc` that lies in the process's own memory, which may be of a file that does not answer.
fn read_memory_of(folder: &Path, name: &str, limit: u64) -> Vec<u8> {
    let path = folder.join(name);
    let pid = folder.file_name().and_then(|pid| pid.to_str()?.parse().ok());
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let bytes = pid.and_then(|pid| foreign::read_of_process(pid, &path, limit).ok());
    bytes.unwrap_or_default()
}

/// At most `limit` bytes of a file.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // most are shorter: two reads then, the second of nothing
    let mut bytes = Vec::with_capacity(USUAL_BYTES.min(limit as usize));
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
