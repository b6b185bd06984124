//! A file that was found and looked at, but not opened: a descriptor that can do nothing (`O_PATH`).

use std::ffi::CString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A regular file that was not opened yet.
#[derive(Debug)]
pub struct Handle(File);

impl Handle {
    /// The file at `path`. Symbolic links are followed.
    ///
    /// # Errors
    /// There is none, or it is no regular file.
    pub(crate) fn find(path: &Path) -> io::Result<Handle> {
        let found = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
            .open(path)?;
        Handle::regular(found)
    }

    /// The file that `path` names for who has `root` for his root directory, where no part of it is a link.
    ///
    /// # Errors
    /// There is none, it is no regular file, or a link is refused.
    pub(crate) fn find_in(root: &Path, path: &Path) -> io::Result<Handle> {
        let root = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC)
            .open(root)?;
        Handle::regular(open_below(root.as_fd(), path)?)
    }

    fn regular(found: File) -> io::Result<Handle> {
        let metadata = found.metadata()?;
        if metadata.is_file() {
            return Ok(Handle(found));
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, kind(&metadata)))
    }

    /// What is known of the file.
    ///
    /// # Errors
    /// Its file system does not tell.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    /// The type of its file system, as in `linux/magic.h`.
    ///
    /// # Errors
    /// The file system does not tell.
    pub(crate) fn file_system(&self) -> io::Result<i64> {
        file_system(&self.0)
    }

    /// Opens it for reading.
    ///
    /// # Errors
    /// We may not read it.
    pub fn open(&self) -> io::Result<File> {
        open(self.0.as_fd())
    }
}

/// One that was found before.
impl From<OwnedFd> for Handle {
    fn from(found: OwnedFd) -> Handle {
        Handle(File::from(found))
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Opens a file that was found for reading.
///
/// # Errors
/// We may not read it.
pub(crate) fn open(found: BorrowedFd<'_>) -> io::Result<File> {
    std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY)
        .open(descriptor_path(found))
}

/// The path of an open file that stays right whatever happens to its name.
pub(crate) fn descriptor_path(descriptor: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
}

/// File systems that no other machine or process has a hand in, as `statfs` numbers them: bcachefs, Btrfs, EROFS, ext2
/// to ext4, F2FS, overlayfs, ramfs, SquashFS, tmpfs, XFS, ZFS.
const LOCAL: [i64; 11] = [
    0xca45_1a4e,
    0x9123_683e,
    0xe0f5_e1e2,
    0x0000_ef53,
    0xf2f5_2010,
    0x794c_7630,
    0x8584_58f6,
    0x7371_7368,
    0x0102_1994,
    0x5846_5342,
    0x2fc1_2fc1,
];

/// Whether a file system of that number answers by itself, and knows who opens its files.
#[must_use]
pub(crate) fn is_local(file_system: i64) -> bool {
    LOCAL.contains(&(file_system & 0xffff_ffff))
}

fn file_system(file: &File) -> io::Result<i64> {
    // SAFETY: the call only fills the structure that it is given
    unsafe {
        let mut stat = std::mem::zeroed::<libc::statfs>();
        match libc::fstatfs(file.as_raw_fd(), &raw mut stat) {
            0 => Ok(stat.f_type),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// What a file is that is not regular.
#[must_use]
pub(crate) fn kind(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    match () {
        () if kind.is_dir() => "a directory, no regular file",
        () if kind.is_fifo() => "a FIFO, no regular file",
        () if kind.is_socket() => "a socket, no regular file",
        () if kind.is_char_device() || kind.is_block_device() => "a device, no regular file",
        () => "no regular file",
    }
}

/// `struct open_how` of `linux/openat2.h`.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

fn open_below(root: BorrowedFd<'_>, path: &Path) -> io::Result<File> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let how = OpenHow {
        flags: (libc::O_PATH | libc::O_CLOEXEC) as u64,
        mode: 0,
        resolve: libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS,
    };
    // SAFETY: the path ends with NUL, the structure is as large as is said; the descriptor that comes is nobody else's
    unsafe {
        let size = size_of::<OpenHow>();
        let got = libc::syscall(libc::SYS_openat2, root.as_raw_fd(), path.as_ptr(), &raw const how, size);
        match i32::try_from(got) {
            Ok(descriptor) if descriptor >= 0 => Ok(File::from(OwnedFd::from_raw_fd(descriptor))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    fn text(handle: &Handle) -> String {
        let mut text = String::new();
        handle.open().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_file_is_read_through_its_handle_whatever_becomes_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "first").unwrap();
        let handle = Handle::find(&path).unwrap();
        std::fs::rename(&path, folder.path().join("b")).unwrap();
        std::fs::write(&path, "second").unwrap();
        assert_eq!(text(&handle), "first");
    }

    #[test]
    fn what_is_no_regular_file_is_refused_without_being_opened() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let name = CString::new(fifo.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name ends with NUL
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let refused = |path: &Path| Handle::find(path).unwrap_err().to_string();
        assert_eq!(refused(&fifo), "a FIFO, no regular file");
        assert_eq!(refused(folder.path()), "a directory, no regular file");
        assert_eq!(refused(Path::new("/dev/zero")), "a device, no regular file");
        // a writer that does not wait is refused where nobody has the other end open
        let writer = std::fs::OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&fifo);
        assert_eq!(writer.unwrap_err().raw_os_error(), Some(libc::ENXIO));
    }

    #[test]
    fn no_link_is_followed_below_a_root() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(root.path().join("lib")).unwrap();
        std::fs::write(root.path().join("lib/a"), "inside").unwrap();
        std::fs::write(outside.path().join("secret"), "outside").unwrap();
        symlink("/lib/a", root.path().join("link")).unwrap();
        symlink(outside.path().join("secret"), root.path().join("planted")).unwrap();
        symlink("../../../../../../etc/hostname", root.path().join("up")).unwrap();
        let find = |path: &str| Handle::find_in(root.path(), Path::new(path));
        assert_eq!(text(&find("/lib/a").unwrap()), "inside");
        for planted in ["/link", "/planted", "/up"] {
            let error = find(planted).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ELOOP), "{planted}");
        }
    }
}
