//! Whether a program will load the agent: what its file says, which is looked at before it is started.
//!
//! Owns the file alone. Where a command's program lies, and what it starts in its place, is for whoever starts it.

use crate::elf::{ElfError, ElfFile};
use crate::foreign::ForeignFile;
use crate::processor::HERE;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The dynamic linker whose environment names the agent.
const LINKER: &str = HERE.linker;
/// Of a script, what the kernel reads of its first line.
const FIRST_LINE: usize = 256;
const CAPABILITIES: &std::ffi::CStr = c"security.capability";

/// What a file is to whoever wants it to load the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Nothing speaks against it, as far as its file says.
    Loads,
    /// It does not; why.
    Refuses(String),
    /// Its functions cannot be hooked from inside, those of the libraries that it loads can.
    Go,
    /// What runs in its place, and the words before the script's own name.
    Script(Vec<OsString>),
}

/// As whom it will run.
#[derive(Debug, Clone, Copy)]
pub struct RunsAs {
    pub uid: u32,
    pub gid: u32,
}

/// Looks at the program at `path`, without ever waiting for its file.
#[must_use]
pub fn look(path: &Path, by: RunsAs) -> Program {
    // whoever starts it says what is wrong with it
    let Ok(file) = ForeignFile::find(path) else {
        return Program::Loads;
    };
    if let Some(words) = script(&beginning(&file)) {
        return Program::Script(words);
    }
    match changes_rights(&file, by) {
        true => Program::Refuses("is setuid or setgid, or has file capabilities".to_owned()),
        false => linked(&ElfFile::of_foreign(&file)),
    }
}

fn linked(elf: &Result<ElfFile, ElfError>) -> Program {
    let elf = match elf {
        Ok(elf) => elf,
        Err(ElfError::Not64Bit) => return Program::Refuses("is a program of 32 bits".to_owned()),
        Err(_) => return Program::Loads,
    };
    let name = |path: &str| Path::new(path).file_name().map(OsStr::to_owned);
    match elf.interpreter() {
        // the linker itself, which is told what to start
        None if elf.soname() == Some(LINKER) => Program::Loads,
        None => Program::Refuses("is linked statically".to_owned()),
        Some(path) if name(path).as_deref() != Some(OsStr::new(LINKER)) => {
            Program::Refuses(format!("is linked against another C library than glibc's, by {path}"))
        }
        Some(_) if elf.is_go() => Program::Go,
        Some(_) => Program::Loads,
    }
}

fn beginning(file: &ForeignFile) -> Vec<u8> {
    let size = file.facts().bytes.min(FIRST_LINE as u64);
    let mut bytes = vec![0; size as usize];
    match file.read_exact_at(0, &mut bytes) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

/// The interpreter that a script names, and its one argument, as the kernel reads them.
fn script(beginning: &[u8]) -> Option<Vec<OsString>> {
    let line = beginning.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = line.trim_ascii();
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t'));
    let (program, argument) = line.split_at(end.unwrap_or(line.len()));
    let words = [program, argument.trim_ascii()].into_iter();
    let words = words.filter(|word| !word.is_empty());
    Some(words.map(|word| OsString::from_vec(word.to_vec())).collect())
}

/// Whether it runs with other rights than its caller's, so that the dynamic linker heeds no path of the environment. Files of
/// others' file systems are not asked: these may never answer.
fn changes_rights(file: &ForeignFile, by: RunsAs) -> bool {
    let path = file.path();
    if !file.facts().is_local {
        return false;
    }
    let others = std::fs::metadata(&path).is_ok_and(|facts| {
        let sets = |bit: u32| facts.mode() & bit == bit;
        (sets(libc::S_ISUID) && facts.uid() != by.uid) || (sets(libc::S_ISGID | libc::S_IXGRP) && facts.gid() != by.gid)
    });
    others || (by.uid != 0 && has_capabilities(&path))
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: two names that end, and no room for an answer but its length
    unsafe { libc::getxattr(path.as_ptr(), CAPABILITIES.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn ourselves() -> RunsAs {
        // SAFETY: they ask the kernel, and cannot fail
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        RunsAs { uid, gid }
    }

    #[test]
    fn this_program_loads_it_and_its_linker_does() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(look(&own, ourselves()), Program::Loads);
        let linker = ElfFile::open(&own).unwrap().interpreter().unwrap().to_owned();
        assert_eq!(look(Path::new(&linker), ourselves()), Program::Loads);
    }

    #[test]
    fn a_program_of_somebody_else_that_sets_its_user_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        std::fs::set_permissions(&copy, Permissions::from_mode(0o4755)).unwrap();
        let own = ourselves();
        let other = RunsAs {
            uid: own.uid + 1,
            ..own
        };
        assert_eq!(look(&copy, own), Program::Loads, "it stays who it is");
        assert!(matches!(look(&copy, other), Program::Refuses(why) if why.contains("setuid")));
    }

    #[test]
    fn scripts_name_what_runs_in_their_place() {
        let words = |text: &[u8]| {
            let words = script(text)?.into_iter();
            Some(words.map(|word| word.into_string().unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(words(b"#!/bin/sh\necho"), Some(vec!["/bin/sh".to_owned()]));
        let two = vec!["/usr/bin/env".to_owned(), "-S python3 -u".to_owned()];
        assert_eq!(words(b"#! /usr/bin/env  -S python3 -u \nx"), Some(two));
        assert_eq!((words(b"#!"), words(b"\x7fELF")), (Some(Vec::new()), None));
    }

    #[test]
    fn what_is_no_regular_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let name = CString::new(fifo.as_os_str().as_bytes()).unwrap();
        // SAFETY: a name that ends
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o700) }, 0);
        for path in [fifo.as_path(), Path::new("/dev/null"), Path::new("/no such file")] {
            assert_eq!(look(path, ourselves()), Program::Loads, "{}", path.display());
        }
    }
}
