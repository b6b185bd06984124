//! What processes exist and which files they map as code.
//!
//! Owns the reading of `/proc`. A file is opened through the process that maps it, so that mount namespaces,
//! deleted and replaced files are right, and by no link that somebody could plant.

mod ancestry;

pub use ancestry::{descendants, parent_of};

use crate::foreign::{self, ForeignFile, Mapped};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// A file that a process maps as code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// As the process names it, without `(deleted)`.
    pub path: PathBuf,
    pub device: String,
    pub inode: u64,
    pub deleted: bool,
    /// Address range, as in the name of its `map_files` entry.
    pub range: String,
    /// Where in the file it begins.
    pub offset: u64,
}

impl Mapping {
    /// Of the library that tests know, in the file with that number.
    #[cfg(test)]
    pub(crate) fn example(inode: u64) -> Mapping {
        Mapping {
            path: PathBuf::from("/opt/libcudart.so.13"),
            device: "fe:00".to_owned(),
            inode,
            deleted: false,
            range: String::new(),
            offset: 0,
        }
    }

    /// Whether its file's name begins so; in memory it has a name as well.
    #[must_use]
    pub fn is_named(&self, begin: &str) -> bool {
        let name = self.path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.trim_start_matches("memfd:").starts_with(begin))
    }

    /// Its first address, and the one behind it.
    #[must_use]
    pub fn addresses(&self) -> Option<(u64, u64)> {
        let (start, end) = self.range.split_once('-')?;
        let address = |digits: &str| u64::from_str_radix(digits, 16).ok();
        address(start).zip(address(end))
    }

    /// The mapped file itself.
    ///
    /// # Errors
    /// The process is gone, or may not be looked at; its path names another file by now; it does not answer.
    pub fn open(&self, pid: u32) -> io::Result<ForeignFile> {
        ForeignFile::mapped(Mapped {
            pid,
            range: self.range.clone(),
            device: self.device.clone(),
            inode: self.inode,
            deleted: self.deleted,
            path: self.path.as_os_str().as_bytes().to_vec(),
        })
    }
}

/// The distinct files that process `pid` maps as code, in address order.
///
/// # Errors
/// The process is gone, or may not be looked at (CAP_SYS_PTRACE).
pub fn mappings(pid: u32) -> io::Result<Vec<Mapping>> {
    Ok(parse_maps(&maps(pid)?))
}

/// The text of `/proc/PID/maps`.
///
/// # Errors
/// The process is gone, or may not be looked at (CAP_SYS_PTRACE), or does not answer.
pub(crate) fn maps(pid: u32) -> io::Result<Vec<u8>> {
    let path = PathBuf::from(format!("/proc/{pid}/maps"));
    foreign::read_of_process(pid, &path, foreign::worker::SHARED_BYTES)
}

/// The distinct files that the text of a `maps` file names as code, in its order.
pub fn parse_maps(text: &[u8]) -> Vec<Mapping> {
    let mut seen = HashSet::new();
    let lines = text.split(|&byte| byte == b'\n');
    lines
        .filter_map(parse_line)
        .filter(|map| seen.insert((map.device.clone(), map.inode)))
        .collect()
}

/// One line of `/proc/PID/maps`, if it is a file mapped as code.
fn parse_line(line: &[u8]) -> Option<Mapping> {
    let mut rest = line;
    let range = next_field(&mut rest)?;
    let permissions = next_field(&mut rest)?;
    let offset = next_field(&mut rest)?;
    let device = next_field(&mut rest)?;
    let inode: u64 = text(next_field(&mut rest)?)?.parse().ok()?;
    let name = rest.trim_ascii_start();
    if permissions.get(2) != Some(&b'x') || inode == 0 || !name.starts_with(b"/") {
        return None;
    }
    let (name, deleted) = name
        .strip_suffix(b" (deleted)")
        .map_or((name, false), |name| (name, true));
    Some(Mapping {
        path: PathBuf::from(std::ffi::OsStr::from_bytes(&unescape(name))),
        device: text(device)?.to_owned(),
        inode,
        deleted,
        range: map_files_name(text(range)?)?,
        offset: u64::from_str_radix(text(offset)?, 16).ok()?,
    })
}

fn next_field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = rest.iter().position(|&byte| byte != b' ')?;
    let end = rest[start..]
        .iter()
        .position(|&byte| byte == b' ')
        .map_or(rest.len(), |length| start + length);
    let field = &rest[start..end];
    *rest = &rest[end..];
    Some(field)
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The kernel writes a newline in a path as `\012`.
pub(crate) fn unescape(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, tail)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix(b"\\012") {
            out.push(b'\n');
            rest = tail;
        } else {
            out.push(first);
            rest = tail;
        }
    }
    out
}

/// `map_files` names drop the leading zeros that `maps` has.
pub(crate) fn map_files_name(range: &str) -> Option<String> {
    let (start, end) = range.split_once('-')?;
    let trim = |address: &str| u64::from_str_radix(address, 16).ok();
    Some(format!("{:x}-{:x}", trim(start)?, trim(end)?))
}

/// Whether there is no process of that number.
pub fn is_gone(pid: u32) -> bool {
    !Path::new("/proc").join(pid.to_string()).exists()
}

/// Whether a process is no more, or waits to be forgotten by its parent. One whose first thread has ended before the others runs.
pub fn has_ended(pid: u32) -> bool {
    let stat = short(&format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    match state {
        Some('Z') => !has_other_threads(pid),
        state => matches!(state, None | Some('X')),
    }
}

/// Whether a process whose first thread has ended has others that run.
pub(crate) fn has_other_threads(pid: u32) -> bool {
    threads(pid).len() > 1
}

/// How a child of ours has ended; `None`: it has not. It stays to be waited for.
///
/// # Errors
/// It is no child of ours, or was waited for.
pub fn ended(child: u32) -> io::Result<Option<ExitStatus>> {
    // SAFETY: all zero is one, and the call fills it
    let (refused, found) = unsafe {
        let mut found: libc::siginfo_t = std::mem::zeroed();
        let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        (libc::waitid(libc::P_PID, child, &raw mut found, how), found)
    };
    if refused != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: what the call fills in of a child, or zero
    let (pid, status) = unsafe { (found.si_pid(), found.si_status()) };
    let raw = match found.si_code {
        libc::CLD_EXITED => (status & 0xff) << 8,
        libc::CLD_DUMPED => status | 0x80,
        _ => status,
    };
    Ok((pid != 0).then(|| ExitStatus::from_raw(raw)))
}

/// All processes of this host (or container).
pub fn processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The threads of a process; none when it is gone.
#[must_use]
pub fn threads(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Whether a process runs a 32-bit program. False where that cannot be told: it is gone, or belongs to another user.
#[must_use]
pub fn is_32_bit(pid: u32) -> bool {
    let exe = PathBuf::from(format!("/proc/{pid}/exe"));
    foreign::read_of_process(pid, &exe, ELF32.len()).is_ok_and(|head| head == *ELF32)
}

/// The name of a thread; `None` when it is gone.
pub fn comm(tgid: u32, tid: u32) -> Option<String> {
    let name = short(&format!("/proc/{tgid}/task/{tid}/comm"))?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

/// More than a name or the state of a process takes.
const SHORT_BYTES: usize = 1 << 10;

/// A file of `/proc` of so few bytes that one read has all of it: it is asked often.
fn short(path: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![0; SHORT_BYTES];
    let length = File::open(path).ok()?.read(&mut bytes).ok()?;
    bytes.truncate(length);
    Some(bytes)
}

/// How a 32-bit ELF file begins: `EI_MAG0` to `EI_CLASS`.
const ELF32: &[u8; 5] = b"\x7fELF\x01";

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<Mapping> {
        parse_line(text.as_bytes())
    }

    #[test]
    fn a_path_may_contain_spaces_and_newlines() {
        let map = line(r"7f00-7f10 r-xp 00001000 fe:00 42                         /opt/my libs/a\012b.so").unwrap();
        assert_eq!(map.path, Path::new("/opt/my libs/a\nb.so"));
        assert_eq!((map.inode, map.deleted, map.range.as_str()), (42, false, "7f00-7f10"));
    }

    #[test]
    fn a_deleted_file_is_marked() {
        let map = line("00400000-00401000 r-xp 00001000 fe:00 7 /tmp/x (deleted)").unwrap();
        assert!(map.deleted);
        assert_eq!(
            (map.path.as_path(), map.range.as_str()),
            (Path::new("/tmp/x"), "400000-401000")
        );
    }

    #[test]
    fn data_and_anonymous_mappings_are_left_out() {
        assert_eq!(line("7f00-7f10 rw-p 00001000 fe:00 42 /opt/a.so"), None);
        assert_eq!(line("7f00-7f10 r-xp 00000000 00:00 0 [vdso]"), None);
        assert_eq!(line(""), None);
    }

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_read_or_left_out(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(parse_maps(&text).iter().all(|map| map.inode != 0));
        }

        #[test]
        fn any_path_is_read_back(start in any::<u64>(), inode in 1..u64::MAX, name in "[^\n\\\\]{0,40}[^\n\\\\ )]") {
            let end = start.saturating_add(4096);
            let text = format!("{start:08x}-{end:08x} r-xp 00000000 fe:00 {inode} /{name}\n");
            let maps = parse_maps(text.as_bytes());
            prop_assert_eq!(maps.len(), 1);
            let expected = Mapping {
                path: PathBuf::from(format!("/{name}")),
                device: "fe:00".to_owned(),
                inode,
                deleted: false,
                range: format!("{start:x}-{end:x}"),
                offset: 0,
            };
            prop_assert_eq!(&maps[0], &expected);
            prop_assert_eq!(maps[0].addresses(), Some((start, end)));
        }
    }

    /// How a shell that does so has ended, twice; and what the standard library says.
    fn ended_thrice(script: &str) -> [ExitStatus; 3] {
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .spawn()
            .expect("it starts");
        let once = loop {
            if let Some(status) = ended(child.id()).expect("a child of ours") {
                break status;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        };
        let again = ended(child.id())
            .expect("a child of ours")
            .expect("it can be asked again");
        [once, again, child.wait().expect("it can be waited for")]
    }

    #[test]
    fn a_child_that_has_ended_can_be_asked_how_until_it_is_waited_for() {
        for script in ["exit 0", "exit 255", "kill -TERM $$", "kill -KILL $$"] {
            let [once, again, waited] = ended_thrice(script);
            assert_eq!((once, again), (waited, waited), "{script}");
        }
    }

    #[test]
    fn a_child_that_runs_has_not_ended() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("it starts");
        assert_eq!(ended(child.id()).expect("a child of ours"), None);
        child.kill().expect("it runs");
        child.wait().expect("it can be waited for");
        assert!(ended(child.id()).is_err(), "it is no child of ours any more");
    }

    #[test]
    fn a_process_runs_as_long_as_one_of_its_threads_does() {
        let number = libc::SYS_exit;
        let program = format!(
            "import ctypes, threading, time\n\
             threading.Thread(target=time.sleep, args=(1000,)).start()\n\
             ctypes.CDLL(None).syscall({number}, 0)"
        );
        let mut child = std::process::Command::new("python3")
            .args(["-c", &program])
            .spawn()
            .unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        let begun = std::time::Instant::now();
        while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
            assert!(begun.elapsed().as_secs() < 60, "its first thread goes on");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(!has_ended(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(has_ended(child.id()));
    }
}
