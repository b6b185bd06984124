//! The driver's calls as rows of the catalogue, so that they are filtered, counted and shown as any function is.
//!
//! Owns which row stands for what. A row is a number of the front end or of UVM; calls of one row that differ in class
//! or method are told apart by the variant of their totals.

use std::borrow::Cow;

use super::branch::Dialect;
use super::layout::FieldKind;
use super::tables::{self, Entry};
use crate::wire;

/// The layer's name, and its library's.
pub(crate) const LIBRARY: &str = "kernel";

/// Rows that stand for no entry of the tables.
const OTHERS: [&str; 6] = ["nvidia ioctl", "nvidia-uvm ioctl", "open", "close", "mmap", "poll"];

/// What a system call may be refused with before the driver answers.
const ERRNO: [(i32, &str); 20] = [
    (libc::EPERM, "EPERM"),
    (libc::ENOENT, "ENOENT"),
    (libc::EINTR, "EINTR"),
    (libc::EIO, "EIO"),
    (libc::ENXIO, "ENXIO"),
    (libc::EBADF, "EBADF"),
    (libc::EAGAIN, "EAGAIN"),
    (libc::ENOMEM, "ENOMEM"),
    (libc::EACCES, "EACCES"),
    (libc::EFAULT, "EFAULT"),
    (libc::EBUSY, "EBUSY"),
    (libc::ENODEV, "ENODEV"),
    (libc::EINVAL, "EINVAL"),
    (libc::EMFILE, "EMFILE"),
    (libc::ENOTTY, "ENOTTY"),
    (libc::ENOSYS, "ENOSYS"),
    (libc::ETIMEDOUT, "ETIMEDOUT"),
    (libc::EOPNOTSUPP, "EOPNOTSUPP"),
    (libc::EOVERFLOW, "EOVERFLOW"),
    // the kernel's own: the call is made again after a signal
    (512, "ERESTARTSYS"),
];

/// Where the driver's rows lie in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverRows {
    first: u32,
    pub dialect: Dialect,
}

impl DriverRows {
    /// Those from index `first` on.
    #[must_use]
    pub fn new(first: u32, dialect: Dialect) -> Self {
        Self { first, dialect }
    }

    /// What each is called, in their order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        OTHERS.into_iter().chain(entries().map(|entry| entry.name))
    }

    /// Whether a row is one of these.
    #[must_use]
    pub fn contains(&self, row: u32) -> bool {
        let count = OTHERS.len() + entries().count();
        row.checked_sub(self.first)
            .is_some_and(|index| (index as usize) < count)
    }

    /// Whether calls of a row are ioctls; others open, close, map and poll.
    #[must_use]
    pub fn is_ioctl(&self, row: u32) -> bool {
        let step = row.wrapping_sub(self.first);
        self.contains(row) && !(u32::from(wire::STEP_OPEN)..=u32::from(wire::STEP_POLL)).contains(&step)
    }

    /// The row of a call that no table has.
    #[must_use]
    pub fn unknown(&self, uvm: bool) -> u32 {
        self.first + u32::from(uvm)
    }

    /// The row of a step other than an ioctl; of an ioctl, that of [`Self::unknown`].
    #[must_use]
    pub fn of_step(&self, step: u8) -> u32 {
        match step {
            wire::STEP_OPEN..=wire::STEP_POLL => self.first + u32::from(step),
            _ => self.unknown(false),
        }
    }

    /// Every call of the tables with its row; the flag: it is UVM's.
    pub fn calls(&self) -> impl Iterator<Item = (u32, bool, &'static Entry)> + use<> {
        let first = self.first + OTHERS.len() as u32;
        let front = tables::escapes().len();
        entries()
            .enumerate()
            .map(move |(index, entry)| (first + index as u32, index >= front, entry))
    }

    /// What calls of `row` with that variant of the totals are called.
    #[must_use]
    pub fn name<'a>(&self, row: u32, symbol: &'a str, variant: u64) -> Cow<'a, str> {
        if variant & wire::DRIVER_SUBJECT == 0 {
            return Cow::Borrowed(symbol);
        }
        let number = variant as u32;
        let entry = row
            .checked_sub(self.first + OTHERS.len() as u32)
            .and_then(|index| entries().nth(index as usize));
        let name = match entry.and_then(Entry::subject) {
            Some(FieldKind::Class) => tables::class(number).map(|class| class.name),
            Some(_) => tables::control(number, self.dialect.branch).map(|control| control.name),
            None => None,
        };
        Cow::Owned(name.map_or_else(|| format!("{symbol} {number:#x}"), |name| format!("{symbol} {name}")))
    }
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    tables::escapes().iter().chain(tables::uvm_calls())
}

/// The name of an errno, as ioctl(2) gives it.
#[must_use]
pub(crate) fn errno_name(errno: i64) -> Option<&'static str> {
    let known = ERRNO.iter().find(|(code, _)| i64::from(*code) == errno);
    known.map(|(_, name)| *name)
}

/// What the driver answers, and what a system call is refused with, by name.
pub(crate) fn answers(dialect: Dialect) -> impl Iterator<Item = (i64, String)> {
    let status = (0..=u32::from(u16::MAX))
        .filter_map(move |code| Some((i64::from(code), tables::status(code, dialect.branch)?.to_owned())));
    let errno = ERRNO.iter().map(|(code, name)| (-i64::from(*code), (*name).to_owned()));
    status.chain(errno)
}
