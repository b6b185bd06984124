//! What a program calls a phase of its own (NVTX), as its agent has handed it over.

use crate::wire::{
    self, RANGE_CATEGORY, RANGE_COLOR, RANGE_CUT, RANGE_DOMAIN, RANGE_MARK, RANGE_NAME, RANGE_OPEN, RANGE_PUSHED,
    RANGE_STARTED, RANGE_THREAD, RANGE_UNREAD, RangeRecord,
};

/// What it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Nested in those of its thread.
    Pushed,
    /// It may end on another thread.
    Started,
    /// A moment.
    Mark,
    /// No phase: the thread whose number is its category is called so from then on.
    Thread,
    /// No phase: its category of its domain is called so.
    Category,
}

/// What a program calls a phase of its own (NVTX). Texts are the program's, and may hold anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// CLOCK_MONOTONIC ns.
    pub begin: u64,
    pub end: u64,
    pub pid: u32,
    pub tid: u32,
    /// Who has ended it.
    pub(crate) end_tid: u32,
    pub shape: Shape,
    pub name: String,
    /// Empty: the one without a name.
    pub domain: String,
    /// 0: none.
    pub category: u32,
    /// ARGB.
    pub color: Option<u32>,
    /// How many of the same domain are around it.
    pub(crate) level: u16,
    /// It has not ended: until then it was seen.
    pub open: bool,
    /// The name could not be read, or not all of it.
    pub unread: bool,
}

impl Range {
    /// Reads a record; `None`: it is none.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Range> {
        let record: RangeRecord = wire::read(bytes)?;
        let (name_bytes, domain_bytes) = (usize::from(record.name_bytes), usize::from(record.domain_bytes));
        let texts = bytes.get(size_of::<RangeRecord>()..)?;
        let is_bounded = name_bytes <= RANGE_NAME && domain_bytes <= RANGE_DOMAIN;
        if !is_bounded
            || texts.len() != name_bytes + domain_bytes
            || record.begin > record.end
            || record.end > i64::MAX as u64
        {
            return None;
        }
        let (name, domain) = texts.split_at(name_bytes);
        let has = |flag: u8| record.flags & flag != 0;
        let end = if has(RANGE_CUT) { "…" } else { "" };
        Some(Range {
            begin: record.begin,
            end: record.end,
            pid: record.tgid,
            tid: record.tid,
            end_tid: record.end_tid,
            shape: match record.kind {
                RANGE_PUSHED => Shape::Pushed,
                RANGE_STARTED => Shape::Started,
                RANGE_MARK => Shape::Mark,
                RANGE_THREAD => Shape::Thread,
                RANGE_CATEGORY => Shape::Category,
                _ => return None,
            },
            name: String::from_utf8_lossy(name).into_owned() + end,
            domain: String::from_utf8_lossy(domain).into_owned(),
            category: record.category,
            color: has(RANGE_COLOR).then_some(record.color),
            level: record.level,
            open: has(RANGE_OPEN),
            unread: has(RANGE_UNREAD),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(name: &[u8], domain: &[u8], flags: u8) -> Vec<u8> {
        let record = RangeRecord {
            begin: 5,
            end: 9,
            tgid: 7,
            tid: 8,
            end_tid: 8,
            color: 0xff00_ff00,
            level: 2,
            kind: RANGE_PUSHED,
            flags,
            name_bytes: name.len() as u16,
            domain_bytes: domain.len() as u8,
            ..RangeRecord::default()
        };
        [wire::bytes_of(&record), name, domain].concat()
    }

    #[test]
    fn a_record_has_its_texts_behind_it() {
        let range = Range::parse(&record(b"step", b"loop", RANGE_COLOR)).expect("a range");
        assert_eq!((range.name.as_str(), range.domain.as_str()), ("step", "loop"));
        assert_eq!((range.begin, range.end, range.level), (5, 9, 2));
        assert_eq!(
            (range.color, range.open, range.unread),
            (Some(0xff00_ff00), false, false)
        );
    }

    #[test]
    fn a_name_that_goes_on_says_so_and_what_is_no_utf_8_is_replaced() {
        let range = Range::parse(&record(b"a\xffb", b"", RANGE_CUT)).expect("a range");
        assert_eq!((range.name.as_str(), range.color), ("a\u{fffd}b…", None));
    }

    #[test]
    fn texts_that_are_not_as_long_as_they_say_are_none() {
        let whole = record(b"step", b"loop", 0);
        assert_eq!(Range::parse(&whole[..whole.len() - 1]), None);
        assert_eq!(Range::parse(&[whole, vec![0]].concat()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Some(range) = Range::parse(&bytes) {
                prop_assert!(range.begin <= range.end);
                prop_assert!(range.name.len() <= 3 * RANGE_NAME + 3);
            }
        }
    }
}
