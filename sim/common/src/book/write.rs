//! Keeping a book: each change is first written beside the rows, then to them.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::*;
use crate::clock::now_ns;

/// The words of a book, which other processes may read at any time.
pub struct Book {
    words: &'static [AtomicU64; WORDS],
    locked: AtomicBool,
    path: PathBuf,
}

type Row = [u64; ROW];

impl Book {
    /// The book of this process that `GPUSIM_BOOK` asks for (`%p` stands for the process id).
    pub fn from_env() -> Option<Book> {
        let file = std::env::var("GPUSIM_BOOK").ok().filter(|f| !f.is_empty())?;
        let path = PathBuf::from(file.replace("%p", &std::process::id().to_string()));
        match map(&path) {
            Ok(words) => Some(Book::begin(words, path)),
            Err(error) => {
                eprintln!("gpusim: cannot keep the book {}: {error}", path.display());
                None
            }
        }
    }

    fn begin(words: &'static [AtomicU64; WORDS], path: PathBuf) -> Book {
        words[1].store(VERSION, Relaxed);
        words[WORD_PID].store(u64::from(std::process::id()), Relaxed);
        words[WORD_IMAGE].store(now_ns(), Relaxed);
        words[0].store(MAGIC, Release);
        Book {
            words,
            locked: AtomicBool::new(false),
            path,
        }
    }

    /// Counts an allocating or freeing call in, and out again.
    pub fn enter(&self) {
        self.words[WORD_INSIDE].fetch_add(1, Relaxed);
    }

    pub fn leave(&self) {
        self.words[WORD_INSIDE].fetch_sub(1, Relaxed);
    }

    pub fn allocated(&self, family: Family, device: i32, bytes: u64) {
        self.change(family, device, &|row| add(row, bytes));
    }

    pub fn ended(&self, family: Family, device: i32, bytes: u64, how: How) {
        self.change(family, device, &|row| {
            row[OUTSTANDING] = row[OUTSTANDING].wrapping_sub(1);
            row[HELD] = row[HELD].wrapping_sub(bytes);
            row[FREES] += 1;
            row[FREED] += bytes;
            row[ENDED + 2 * how as usize] += 1;
            row[ENDED + 2 * how as usize + 1] += bytes;
        });
    }

    pub fn failed(&self, family: Family, device: i32) {
        self.change(family, device, &|row| row[FAILED] += 1);
    }

    pub fn free_failed(&self, wrong: Wrong) {
        self.words[WORD_CLOSED].store(0, Relaxed);
        self.words[WORD_FAILED].fetch_add(1, Relaxed);
        match wrong {
            Wrong::Double => self.words[WORD_DOUBLE].fetch_add(1, Relaxed),
            Wrong::Unknown => self.words[WORD_UNKNOWN].fetch_add(1, Relaxed),
            Wrong::Other => 0,
        };
    }

    /// Appends the book as one line to its text file, unless the last line says it already.
    pub fn write_line(&self) {
        if self.words[WORD_CLOSED].swap(1, Relaxed) != 0 {
            return;
        }
        append(&self.path, &Snapshot::of(self));
    }

    pub(super) fn words(&self) -> &[AtomicU64; WORDS] {
        self.words
    }

    fn change(&self, family: Family, device: i32, how: &dyn Fn(&mut Row)) {
        let _held = Lock::of(&self.locked);
        self.words[WORD_CLOSED].store(0, Relaxed);
        let own = family as usize * SLOTS + slot(device);
        self.plan(0, own, how);
        let rows = match family.total() {
            None => 1,
            Some(total) => {
                let device = if total == HOST_TOTAL { -1 } else { device };
                self.plan(1, total * SLOTS + slot(device), how);
                2
            }
        };
        self.words[WORD_JOURNAL].store(rows, Relaxed);
        self.words[WORD_SEQUENCE].fetch_add(1, Release);
        self.carry_out(rows as usize);
        self.words[WORD_SEQUENCE].fetch_add(1, Release);
    }

    /// Puts what a row is to hold into the journal.
    fn plan(&self, entry: usize, number: usize, how: &dyn Fn(&mut Row)) {
        let from = WORD_ROWS + number * ROW;
        let mut row: Row = std::array::from_fn(|i| self.words[from + i].load(Relaxed));
        how(&mut row);
        let to = WORD_ENTRIES + entry * (1 + ROW);
        self.words[to].store(number as u64, Relaxed);
        for (i, value) in row.iter().enumerate() {
            self.words[to + 1 + i].store(*value, Relaxed);
        }
    }

    fn carry_out(&self, rows: usize) {
        for entry in 0..rows {
            let from = WORD_ENTRIES + entry * (1 + ROW);
            let to = WORD_ROWS + self.words[from].load(Relaxed) as usize * ROW;
            for i in 0..ROW {
                let value = self.words[from + 1 + i].load(Relaxed);
                self.words[to + i].store(value, Release);
            }
        }
    }
}

#[cfg(test)]
impl Book {
    pub fn in_memory() -> Book {
        let words: Box<[AtomicU64; WORDS]> = Box::new([const { AtomicU64::new(0) }; WORDS]);
        Book::begin(Box::leak(words), PathBuf::new())
    }

    /// As a writer does that is killed after it has announced a change.
    pub fn leave_half_written(&self, family: Family, device: i32, bytes: u64) {
        let number = family as usize * SLOTS + slot(device);
        self.plan(0, number, &|row| add(row, bytes));
        self.words[WORD_JOURNAL].store(1, Relaxed);
        self.words[WORD_SEQUENCE].fetch_add(1, Release);
        self.words[WORD_ROWS + number * ROW].store(99, Relaxed);
    }
}

fn add(row: &mut Row, bytes: u64) {
    row[OUTSTANDING] += 1;
    row[HELD] += bytes;
    row[PEAK] = row[PEAK].max(row[HELD]);
    row[ALLOCATIONS] += 1;
    row[ALLOCATED] += bytes;
}

/// The text file of a book.
pub(super) fn text_file(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

fn append(path: &Path, book: &Snapshot) {
    let line = book.json() + "\n";
    let path = text_file(path);
    let opened = OpenOptions::new().create(true).append(true).open(&path);
    if let Err(error) = opened.and_then(|mut out| out.write_all(line.as_bytes())) {
        eprintln!("gpusim: cannot write the book {}: {error}", path.display());
    }
}

fn map(path: &Path) -> std::io::Result<&'static [AtomicU64; WORDS]> {
    // An image that exec replaced, or a process whose number came again, is not forgotten.
    if let Ok(before) = Snapshot::read(path)
        && !before.is_written()
    {
        append(path, &before);
    }
    let _ = std::fs::remove_file(path);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    file.set_len((WORDS * 8) as u64)?;
    // SAFETY: a new shared mapping of a file of just this size.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            WORDS * 8,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: zeros are valid words, which are atomics, and the mapping is never undone.
    Ok(unsafe { &*address.cast::<[AtomicU64; WORDS]>() })
}

/// A lock that a forked child can do without: it starts a book of its own.
struct Lock<'a>(&'a AtomicBool);

impl Lock<'_> {
    fn of(locked: &AtomicBool) -> Lock<'_> {
        while locked.swap(true, Acquire) {
            std::thread::yield_now();
        }
        Lock(locked)
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}
