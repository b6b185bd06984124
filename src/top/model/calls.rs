//! Calls of one process as they come, in lines.

use std::collections::VecDeque;

/// Lines that are kept: a screen, and some before it.
const MOST: usize = 1000;
/// Of a line that does not end, bytes.
const LONGEST: usize = 1 << 14;

/// Calls of one process as they come, the newest last.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Calls {
    pub pid: u32,
    pub lines: VecDeque<String>,
    /// Lines that there were in all.
    pub seen: u64,
    /// Why there are none.
    pub why: Option<String>,
    /// Of a line that has not ended.
    begun: Vec<u8>,
}

impl Calls {
    pub(crate) fn of(pid: u32) -> Calls {
        Calls {
            pid,
            ..Calls::default()
        }
    }

    /// Takes in text as it is written.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST.saturating_sub(self.begun.len()).min(part.len());
            self.begun.extend_from_slice(&part[..room]);
            if part.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&self.begun).trim_end().to_owned();
                self.begun.clear();
                self.add(line);
            }
        }
    }

    fn add(&mut self, line: String) {
        if self.lines.len() >= MOST {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
        self.seen += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_they_come_and_the_oldest_go() {
        let mut calls = Calls::of(7);
        calls.take(b"one\ntw");
        assert_eq!((calls.lines.len(), calls.seen), (1, 1));
        calls.take(b"o\n\xff\n");
        assert_eq!(calls.lines, ["one", "two", "\u{fffd}"]);
        let many: String = (0..MOST).map(|number| format!("{number}\n")).collect();
        calls.take(many.as_bytes());
        assert_eq!((calls.lines.len(), calls.lines[0].as_str()), (MOST, "0"));
        assert_eq!(calls.seen, MOST as u64 + 3);
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_whole() {
        let mut calls = Calls::of(7);
        (0..100).for_each(|_| calls.take(&[b'x'; 1000]));
        calls.take(b"\nnext\n");
        assert_eq!((calls.lines[0].len(), calls.lines[1].as_str()), (LONGEST, "next"));
    }
}
