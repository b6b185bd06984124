//! Whether a file system answers by itself, also one that is made of layers.
//!
//! An overlay hands each read, and each close, on to the file below. Where that lies on a file system of another process
//! or machine (FUSE, NFS), both may take for ever, whatever the overlay's own number says. Owns the reading of
//! `mountinfo`. What cannot be told does not count as local. To be asked in the process that may hang alone.

use super::handle::{self, Handle};
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Options of an overlay that name folders.
const LAYERS: [&[u8]; 4] = [b"lowerdir", b"upperdir", b"lowerdir+", b"datadir+"];

/// Whether reads of a file that was found, and its close, are answered by this machine's kernel alone. `pid`: whose
/// mounts it may be among.
pub(crate) fn are_local(found: &Handle, pid: Option<u32>) -> bool {
    match found.file_system() {
        Ok(libc::OVERLAYFS_SUPER_MAGIC) => {
            layers_of(found, pid).is_some_and(|layers| layers.iter().all(|layer| is_local_folder(layer, pid)))
        }
        Ok(kind) => handle::is_local(kind),
        Err(_) => false,
    }
}

/// The folders that the overlay of a file is made of; `None`: that cannot be told.
fn layers_of(found: &Handle, pid: Option<u32>) -> Option<Vec<PathBuf>> {
    let descriptor = found.as_fd().as_raw_fd();
    let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).ok()?;
    let mount = about.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    let whose = pid.map(|pid| pid.to_string()).into_iter().chain(["self".to_owned()]);
    let mut tables = whose.filter_map(|whose| std::fs::read(format!("/proc/{whose}/mountinfo")).ok());
    tables.find_map(|table| layers_in(&table, mount.as_bytes()))
}

/// The same by what `/proc/PID/mountinfo` says of a mount. None of them relative: nobody knows to what.
fn layers_in(table: &[u8], mount: &[u8]) -> Option<Vec<PathBuf>> {
    let lines = table.split(|byte| *byte == b'\n');
    let of_mount = |line: &&[u8]| line.split(|byte| *byte == b' ').next() == Some(mount);
    let options = lines
        .filter(of_mount)
        .find_map(|line| line.rsplit(|byte| *byte == b' ').next())?;
    let mut layers = Vec::new();
    for option in parted(&unescaped(options), b',') {
        let Some(at) = option.iter().position(|byte| *byte == b'=') else {
            continue;
        };
        if LAYERS.contains(&&option[..at]) {
            layers.extend(parted(&option[at + 1..], b':'));
        }
    }
    let layers: Vec<PathBuf> = layers
        .into_iter()
        .filter(|layer| !layer.is_empty())
        .map(|layer| PathBuf::from(OsString::from_vec(without_backslashes(&layer))))
        .collect();
    (!layers.is_empty() && layers.iter().all(|layer| layer.is_absolute())).then_some(layers)
}

/// Octal numbers as `mountinfo` writes them for blanks, ends of lines and backslashes.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let digits = text.get(at + 1..at + 4).filter(|_| text[at] == b'\\');
        let number = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        plain.push(number.unwrap_or(text[at]));
        at += if number.is_some() { 4 } else { 1 };
    }
    plain
}

/// Parts between separators that no backslash stands before.
fn parted(text: &[u8], separator: u8) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        let last = parts.len() - 1;
        match *byte {
            b'\\' => {
                parts[last].push(b'\\');
                parts[last].extend(bytes.next());
            }
            byte if byte == separator => parts.push(Vec::new()),
            byte => parts[last].push(byte),
        }
    }
    parts
}

fn without_backslashes(text: &[u8]) -> Vec<u8> {
    let mut bytes = text.iter();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        plain.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
    }
    plain
}

/// Whose mounts the runtime's were that made the overlay: ours, the machine's first process's, or the program's. There may
/// be a folder of that name for several of them; it has to be local for all.
fn is_local_folder(folder: &Path, pid: Option<u32>) -> bool {
    let below = |root: String| {
        let mut path = OsString::from(root);
        path.push(folder);
        PathBuf::from(path)
    };
    let whose = ["1".to_owned()].into_iter().chain(pid.map(|pid| pid.to_string()));
    let paths = whose
        .map(|whose| below(format!("/proc/{whose}/root")))
        .chain([folder.to_owned()]);
    let kinds: Vec<i64> = paths.filter_map(|path| file_system_at(&path)).collect();
    // an overlay of overlays is not looked through
    let is_plain = |kind: &i64| handle::is_local(*kind) && *kind != libc::OVERLAYFS_SUPER_MAGIC;
    !kinds.is_empty() && kinds.iter().all(is_plain)
}

fn file_system_at(path: &Path) -> Option<i64> {
    let path = CString::new(OsStr::as_bytes(path.as_os_str())).ok()?;
    // SAFETY: the path ends with NUL; the call only fills the structure that it is given
    unsafe {
        let mut stat = std::mem::zeroed::<libc::statfs>();
        (libc::statfs(path.as_ptr(), &raw mut stat) == 0).then_some(stat.f_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 0:21 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,lowerdir=/none
94 22 0:45 / /merged rw - overlay overlay rw,lowerdir=/a:/with\\040blank:/with\\134:colon::/data,upperdir=/up,workdir=/work
95 22 0:46 / /other rw - overlay overlay rw,lowerdir=lower,upperdir=/up,workdir=/work
96 22 0:47 / /new rw - overlay none rw,lowerdir+=/one,lowerdir+=/two
";

    fn layers(mount: &str) -> Option<Vec<String>> {
        let layers = layers_in(TABLE.as_bytes(), mount.as_bytes())?;
        Some(
            layers
                .iter()
                .map(|layer| layer.to_string_lossy().into_owned())
                .collect(),
        )
    }

    #[test]
    fn layers_are_those_of_the_files_own_mount() {
        let named = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            layers("94"),
            named(&["/a", "/with blank", "/with:colon", "/data", "/up"])
        );
        assert_eq!(layers("96"), named(&["/one", "/two"]));
    }

    #[test]
    fn what_cannot_be_found_is_not_told() {
        assert_eq!(layers("95"), None, "relative to what?");
        assert_eq!(layers("9"), None, "no such mount");
    }

    #[test]
    fn a_folder_that_nobody_has_is_not_local() {
        assert!(!is_local_folder(Path::new("/no such folder"), None));
        assert!(!is_local_folder(Path::new("/proc"), None), "the kernel makes it up");
    }
}
