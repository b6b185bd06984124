//! The books of memory that the simulated driver keeps, one for each image of a process.

use super::support::{Gpuscope, number, sim};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Where processes keep their books.
pub struct Books(TempDir);

impl Books {
    pub fn new() -> Books {
        Books(tempfile::tempdir().expect("a folder"))
    }

    /// What to set `GPUSIM_BOOK` to.
    pub fn setting(&self) -> PathBuf {
        self.0.path().join("%p")
    }

    /// Has the command of a run keep books here.
    pub fn of(&self, gpuscope: Gpuscope) -> Gpuscope {
        gpuscope.env("GPUSIM_BOOK", self.setting())
    }

    /// What they say, by process and, for one that became another program, in order.
    pub fn read(&self) -> Vec<Value> {
        self.ask().unwrap_or_else(|error| panic!("{error}"))
    }

    fn ask(&self) -> Result<Vec<Value>, String> {
        let files = std::fs::read_dir(self.0.path()).expect("a folder").flatten();
        let files = files
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_none());
        let done = Command::new(sim("gpusim")).arg("book").args(files).output();
        let done = done.expect("gpusim starts");
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned());
        }
        let text = String::from_utf8(done.stdout).expect("text");
        let mut books: Vec<Value> = text.lines().map(|line| line.parse().expect("a book")).collect();
        books.sort_by_key(|book| (number(book, "pid"), number(book, "image")));
        Ok(books)
    }

    /// How often processes took memory until now; a book that is only begun says nothing.
    pub fn allocations(&self) -> u64 {
        let rows = |book: &Value| book["families"].as_array().expect("families").clone();
        let rows = self
            .ask()
            .unwrap_or_default()
            .iter()
            .flat_map(rows)
            .collect::<Vec<Value>>();
        rows.iter().map(|row| number(row, "allocations")).sum()
    }

    /// The book of the only process that keeps one here.
    pub fn only(&self) -> Value {
        let books = self.read();
        assert_eq!(books.len(), 1, "{books:?}");
        books.into_iter().next().expect("one")
    }
}
