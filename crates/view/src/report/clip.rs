//! Rows that begin in the middle of a trace: nothing of what was before them is counted as if it lay within.

use crate::record::{Kind, Record};
use crate::trace::Covers;

/// Gaps that are kept back.
const MOST: usize = 1 << 12;

/// Cuts idle times at the moment from which on there are all rows. Rows that begin in the middle of a trace.
#[derive(Debug, Clone)]
pub(super) struct Clip {
    /// `None`: not known yet; then it is the first call's.
    from: Option<i64>,
    /// Gaps that came before it was known.
    early: Vec<Early>,
}

#[derive(Debug, Clone)]
struct Early {
    pid: u32,
    tid: u32,
    at: i64,
    ns: Option<u64>,
    name: String,
}

impl Clip {
    /// `None`: rows begin with the trace.
    pub(super) fn of(covers: Covers) -> Option<Clip> {
        let from = match covers {
            Covers::All => return None,
            Covers::From(from) => Some(from),
            Covers::Unsaid => None,
        };
        Some(Clip {
            from,
            early: Vec::new(),
        })
    }

    pub(super) fn from(&self) -> Option<i64> {
        self.from
    }

    /// Whether the moment is known by this row.
    pub(super) fn learn(&mut self, event: &Record<'_>) -> bool {
        let learns = self.from.is_none() && matches!(event.kind, Kind::Call | Kind::Kernel);
        if learns {
            self.from = Some(event.at);
        }
        learns
    }

    /// Gaps that were kept back.
    pub(super) fn kept(&mut self, mut take: impl FnMut(&Record<'_>)) {
        for gap in std::mem::take(&mut self.early) {
            let whole = Record {
                ns: gap.ns,
                tid: gap.tid,
                name: &gap.name,
                ..Record::new(Kind::Idle, gap.at, gap.pid)
            };
            if let Some(gap) = self.cut(&whole) {
                take(&gap);
            }
        }
    }

    /// What of a row lies behind the moment; gaps are kept back until it is known.
    pub(super) fn cut<'a>(&mut self, event: &Record<'a>) -> Option<Record<'a>> {
        if event.kind != Kind::Idle {
            return Some(*event);
        }
        let Some(from) = self.from else {
            if self.early.len() < MOST {
                self.early.push(Early {
                    pid: event.pid,
                    tid: event.tid,
                    at: event.at,
                    ns: event.ns,
                    name: event.name.to_owned(),
                });
            }
            return None;
        };
        let (at, end) = (event.at.max(from), event.end());
        let ns = Some(end.abs_diff(at));
        (end > at).then_some(Record { at, ns, ..*event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(at: i64, ns: u64) -> Record<'static> {
        Record {
            ns: Some(ns),
            ..Record::new(Kind::Idle, at, 7)
        }
    }

    #[test]
    fn a_gap_counts_from_when_there_are_rows() {
        let mut clip = Clip::of(Covers::From(100)).unwrap();
        assert_eq!(clip.cut(&gap(50, 40)), None);
        assert_eq!(clip.cut(&gap(50, 90)), Some(gap(100, 40)));
        assert_eq!(clip.cut(&gap(120, 30)), Some(gap(120, 30)));
        assert!(Clip::of(Covers::All).is_none());
    }

    #[test]
    fn a_file_that_does_not_say_begins_with_its_first_call() {
        let mut clip = Clip::of(Covers::Unsaid).unwrap();
        let measured = Record {
            name: "blocked",
            ..gap(50, 90)
        };
        assert_eq!((clip.cut(&gap(50, 40)), clip.cut(&measured)), (None, None));
        assert!(clip.learn(&Record::new(Kind::Call, 100, 7)));
        assert!(!clip.learn(&Record::new(Kind::Call, 90, 7)));
        let mut kept = Vec::new();
        clip.kept(|gap| kept.push((gap.at, gap.ns, gap.name.to_owned())));
        assert_eq!(
            (clip.from(), kept),
            (Some(100), vec![(100, Some(40), "blocked".to_owned())])
        );
        clip.kept(|gap| panic!("{gap:?} was told"));
    }
}
