//! Files that a command makes of a recording, made by a process that reads none: who reads what anybody may have written
//! can open nothing then, and give nothing a name.
//!
//! Owns both sides: what is asked for, and what is made. It makes the file that it was begun with, or files below that
//! folder, whatever it is asked for; when who asks is gone, what was not kept goes away again.

use super::rights;
use super::whole_file::{WholeFile, is_special, no_room};
use crate::foreign::worker::{Channel, Role, Worker};
use crate::output::{Output, file};
use crate::refusal;
use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The process that makes files.
pub const WRITER: Role = Role {
    name: "gpuscope-writer",
    speaks: false,
    serve,
};

#[derive(Serialize, Deserialize)]
enum Order {
    /// Files are to be this one, or lie below this folder. Comes first, and once.
    Begin {
        at: Vec<u8>,
        folder: bool,
    },
    Make {
        path: Vec<u8>,
    },
    /// All is written: gives every file its name.
    Keep,
    Drop,
}

/// Why it was not done.
type Answer = Option<String>;

/// Who makes files for a command.
pub(crate) struct Writer {
    worker: Worker,
}

impl Writer {
    /// To be begun before rights are given up. `folder`: files are made below `at`, else `at` alone.
    ///
    /// # Errors
    /// There is no room for a process.
    pub(crate) fn begin(at: &Path, folder: bool) -> Result<Writer> {
        let worker = Worker::start(WRITER).context(refusal::NO_PROCESS)?;
        let writer = Writer { worker };
        let at = at.as_os_str().as_bytes().to_vec();
        writer.ask(&Order::Begin { at, folder })?;
        Ok(writer)
    }

    /// A file that will be called `path` once all are kept.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn make(&self, path: &Path) -> Result<File> {
        let path = path.as_os_str().as_bytes().to_vec();
        let file = self.ask(&Order::Make { path })?;
        file.context("failed to make a file: there is none")
    }

    /// Gives all files their names.
    ///
    /// # Errors
    /// One cannot be renamed.
    pub(crate) fn keep(&self) -> Result<()> {
        self.ask(&Order::Keep).map(drop)
    }

    fn ask(&self, order: &Order) -> Result<Option<File>> {
        const GONE: &str = "failed to ask the process that makes files";
        let channel = self.worker.channel();
        channel.send(order, None).context(GONE)?;
        let (why, descriptor) = channel.receive::<Answer>(None).context(GONE)?;
        match why {
            Some(why) => Err(anyhow!(why)),
            None => Ok(descriptor.map(File::from)),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // nothing is left of what was not kept when we are gone
        let _ = self.ask(&Order::Drop);
    }
}

/// Where a file is to be, and who makes it. A pipe or a device is open already.
pub(crate) struct Destination {
    path: PathBuf,
    to: To,
}

enum To {
    Open(File),
    Writer(Writer),
}

impl Destination {
    /// To be begun before rights are given up. Makes no file yet.
    ///
    /// # Errors
    /// There is no room for a process; a pipe or a device cannot be opened.
    pub(crate) fn begin(path: &Path) -> Result<Destination> {
        let to = match is_special(path) {
            true => To::Open(file::create(path)?),
            false => To::Writer(Writer::begin(path, false)?),
        };
        let path = path.to_owned();
        Ok(Destination { path, to })
    }

    /// As the user calls it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file, with all of a page in it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write_page(self, page: &str) -> Result<()> {
        let path = self.path.clone();
        let mut file = self.make()?;
        file.write_all(page.as_bytes())
            .map_err(|error| no_room(&error, &path))?;
        file.keep()
    }

    /// Begins the file.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn make(self) -> Result<Begun> {
        match self.to {
            To::Open(file) => Ok(Begun { file, writer: None }),
            To::Writer(writer) => Ok(Begun {
                file: writer.make(&self.path)?,
                writer: Some(writer),
            }),
        }
    }
}

/// Where a page goes that is written all at once: a file that is made for it, or standard output.
pub(crate) struct Page(Option<Destination>);

impl Page {
    /// To be begun before rights are given up. `-`: standard output.
    ///
    /// # Errors
    /// As of [`Destination::begin`].
    pub(crate) fn begin(path: &Path) -> Result<Page> {
        let is_file = path != Path::new("-");
        is_file.then(|| Destination::begin(path)).transpose().map(Page)
    }

    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(self, text: &str) -> Result<()> {
        if let Some(file) = self.0 {
            return file.write_page(text);
        }
        let mut output = Output::stdout();
        output.write(text.as_bytes());
        output.check()
    }
}

/// A file that is there as a whole once it is kept, and goes away again otherwise.
pub(crate) struct Begun {
    file: File,
    writer: Option<Writer>,
}

impl Begun {
    /// All is written: gives the file its name.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub(crate) fn keep(self) -> Result<()> {
        self.writer.map_or(Ok(()), |writer| writer.keep())
    }
}

impl Write for Begun {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// What is being made.
#[derive(Default)]
struct Made {
    at: PathBuf,
    folder: bool,
    files: Vec<WholeFile>,
}

fn serve(channel: Channel) {
    rights::for_files();
    let mut made: Option<Made> = None;
    while let Ok((order, _)) = channel.receive::<Order>(None) {
        let done = obey(&mut made, order);
        let descriptor = done.as_ref().ok().copied().flatten();
        let file = descriptor.and_then(|place| Some(made.as_ref()?.files.get(place)?.file().as_fd()));
        let why: Answer = done.as_ref().err().map(refusal::message);
        if channel.send(&why, file).is_err() {
            break;
        }
    }
}

/// The place of a file that was made.
fn obey(made: &mut Option<Made>, order: Order) -> Result<Option<usize>> {
    match (order, made) {
        (Order::Begin { at, folder }, none @ None) => {
            let at = PathBuf::from(OsStr::from_bytes(&at));
            *none = Some(Made {
                at,
                folder,
                ..Made::default()
            });
        }
        (Order::Make { path }, Some(made)) => return made.make(Path::new(OsStr::from_bytes(&path))).map(Some),
        (Order::Keep, Some(made)) => std::mem::take(&mut made.files)
            .into_iter()
            .try_for_each(WholeFile::keep)?,
        (Order::Drop, Some(made)) => made.files.clear(),
        _ => bail!("this is no time for that"),
    }
    Ok(None)
}

impl Made {
    fn make(&mut self, path: &Path) -> Result<usize> {
        if !self.may_be(path) {
            bail!("{} is not what was to be made", path.display());
        }
        if self.folder {
            file::create_folder(path.parent().unwrap_or(&self.at))?;
        }
        self.files.push(WholeFile::create(path)?);
        Ok(self.files.len() - 1)
    }

    /// Who reads a recording may have been taken over by it.
    fn may_be(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(&self.at) else {
            return false;
        };
        let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        plain && below.as_os_str().is_empty() != self.folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_kept_has_its_name_and_what_is_not_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let (kept, lost) = (folder.path().join("kept"), folder.path().join("lost"));
        let writer = Writer::begin(&kept, false).expect("a process");
        writer.make(&kept).expect("a file").write_all(b"all").expect("room");
        writer.keep().expect("a name");
        let other = Writer::begin(&lost, false).expect("a process");
        other.make(&lost).expect("a file").write_all(b"half").expect("room");
        assert_eq!(names(folder.path()), ["kept", "lost.partial"]);
        drop(other);
        assert_eq!(names(folder.path()), ["kept"]);
        assert_eq!(std::fs::read(&kept).expect("a file"), b"all");
    }

    #[test]
    fn nothing_is_made_but_what_it_was_begun_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, below) = (folder.path().join("file"), folder.path().join("below"));
        let writer = Writer::begin(&file, false).expect("a process");
        for other in [folder.path().join("other"), file.join("x"), below.clone()] {
            let why = writer.make(&other).expect_err("it is another");
            assert!(why.to_string().ends_with("is not what was to be made"), "{why}");
        }
        let writer = Writer::begin(&below, true).expect("a process");
        for other in [file, below.clone(), below.join("../file"), PathBuf::from("below/x")] {
            assert!(writer.make(&other).is_err(), "{}", other.display());
        }
        writer.make(&below.join("day/x")).expect("a file");
        writer.keep().expect("a name");
        assert_eq!(names(&below.join("day")), ["x"]);
    }
}
