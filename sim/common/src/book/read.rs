//! Reading books: of this process, of a running one, and of one that was killed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{
    Ordering::{Acquire, Relaxed},
    fence,
};
use std::time::Duration;

use super::write::text_file;
use super::*;

/// A book as it was at one moment.
pub struct Snapshot(Vec<u64>);

/// How often a reader finds the same change unfinished before it takes the writer for gone.
const PATIENCE: usize = 100;

impl Snapshot {
    pub fn of(book: &Book) -> Snapshot {
        Snapshot::settled(|| book.words().iter().map(|w| w.load(Relaxed)).collect())
    }

    /// The book in a file.
    pub fn read(path: &Path) -> Result<Snapshot, String> {
        let words = || -> Result<Vec<u64>, String> {
            let bytes = std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
            let words = bytes
                .chunks_exact(8)
                .map(|c| c.iter().rev().fold(0, |w, b| w << 8 | u64::from(*b)));
            Ok(words.collect())
        };
        let first = words()?;
        if first.len() != WORDS || first[0] != MAGIC || first[1] != VERSION {
            return Err(format!("{} is not a book", path.display()));
        }
        Ok(Snapshot::settled(|| words().unwrap_or_else(|_| first.clone())))
    }

    /// Copies until a copy is of one moment; completes a change whose writer is gone.
    fn settled(copy: impl Fn() -> Vec<u64>) -> Snapshot {
        let (mut words, mut unfinished) = (copy(), 0);
        while unfinished < PATIENCE {
            fence(Acquire);
            let next = copy();
            if next[WORD_SEQUENCE] != words[WORD_SEQUENCE] {
                unfinished = 0;
            } else if words[WORD_SEQUENCE].is_multiple_of(2) {
                return Snapshot(words);
            } else {
                unfinished += 1;
                std::thread::sleep(Duration::from_micros(100));
            }
            words = next;
        }
        for entry in 0..(words[WORD_JOURNAL] as usize).min(2) {
            let from = WORD_ENTRIES + entry * (1 + ROW);
            let number = (words[from] as usize).min(ROWS - 1);
            words.copy_within(from + 1..from + 1 + ROW, WORD_ROWS + number * ROW);
        }
        Snapshot(words)
    }

    /// Whether the text file has a line that says the same.
    pub(super) fn is_written(&self) -> bool {
        self.0[WORD_CLOSED] != 0
    }

    fn row(&self, family: usize, device: i32) -> &[u64] {
        let from = WORD_ROWS + (family * SLOTS + slot(device)) * ROW;
        &self.0[from..from + ROW]
    }

    /// The book as one JSON object.
    pub fn json(&self) -> String {
        let (mut families, mut devices) = (Vec::new(), Vec::new());
        for device in -1..SLOTS as i32 - 1 {
            for (family, name) in FAMILY_NAMES.iter().enumerate() {
                let row = self.row(family, device);
                if row.iter().any(|n| *n != 0) {
                    families.push(format!(r#"{{"family":"{name}","device":{device},{}}}"#, fields(row)));
                }
            }
            let row = self.row(DEVICE_TOTAL, device);
            if row.iter().any(|n| *n != 0) {
                devices.push(format!(r#"{{"device":{device},{}}}"#, fields(row)));
            }
        }
        let word = |i: usize| self.0[i];
        format!(
            r#"{{"pid":{},"image":{},"inside":{},"failed_frees":{},"double_frees":{},"unknown_frees":{},"families":[{}],"devices":[{}],"host":{{{}}}}}"#,
            word(WORD_PID),
            word(WORD_IMAGE),
            word(WORD_INSIDE),
            word(WORD_FAILED),
            word(WORD_DOUBLE),
            word(WORD_UNKNOWN),
            families.join(","),
            devices.join(","),
            fields(self.row(HOST_TOTAL, -1)),
        )
    }
}

fn fields(row: &[u64]) -> String {
    const NAMES: [(&str, usize); 8] = [
        ("outstanding", OUTSTANDING),
        ("held_bytes", HELD),
        ("peak_bytes", PEAK),
        ("allocations", ALLOCATIONS),
        ("allocated_bytes", ALLOCATED),
        ("frees", FREES),
        ("freed_bytes", FREED),
        ("failed_allocations", FAILED),
    ];
    let mut parts: Vec<String> = NAMES
        .iter()
        .map(|(name, i)| format!(r#""{name}":{}"#, row[*i]))
        .collect();
    let ended = HOW_NAMES.iter().zip(row[ENDED..].chunks(2)).filter(|(_, c)| c[0] != 0);
    let ended: Vec<String> = ended
        .map(|(how, c)| format!(r#"{{"how":"{how}","count":{},"bytes":{}}}"#, c[0], c[1]))
        .collect();
    parts.push(format!(r#""ended_by":[{}]"#, ended.join(",")));
    parts.join(",")
}

/// What a book and its text file say together: the last line of each image that kept it.
pub fn lines(path: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(text_file(path)).unwrap_or_default();
    let mut last = BTreeMap::new();
    for line in text.lines() {
        let image = line.split(r#""image":"#).nth(1).and_then(|rest| rest.split(',').next());
        last.insert(image.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0), line.to_owned());
    }
    match Snapshot::read(path) {
        Ok(book) if !book.is_written() => drop(last.insert(book.0[WORD_IMAGE], book.json())),
        Ok(_) => {}
        Err(error) if last.is_empty() => return Err(error),
        Err(_) => {}
    }
    Ok(last.into_values().collect())
}
