//! Rows that begin in the middle of a trace: nothing of what was before them is counted as if it lay within.

use crate::record::{Kind, Record};
use crate::trace::Covers;

/// Gaps that are kept back.
const MOST: usize = 1 << 12;

/// Cuts idle times at the moment from which on there are all rows. See the module.
#[derive(Debug, Clone)]
pub(super) struct Clip {
    /// `None`: not known yet; then it is the first call's.
    from: Option<i64>,
    /// Gaps that came before it was known: pid, tid, and from when until when.
    early: Vec<(u32, u32, i64, i64)>,
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
    pub(super) fn kept(&mut self) -> Vec<Record<'static>> {
        let early = std::mem::take(&mut self.early).into_iter();
        early
            .filter_map(|(pid, tid, at, end)| {
                let ns = Some(end.abs_diff(at));
                self.cut(&Record {
                    ns,
                    tid,
                    ..Record::new(Kind::Idle, at, pid)
                })
            })
            .collect()
    }

    /// What of a row lies behind the moment; gaps are kept back until it is known.
    pub(super) fn cut<'a>(&mut self, event: &Record<'a>) -> Option<Record<'a>> {
        if event.kind != Kind::Idle {
            return Some(*event);
        }
        let Some(from) = self.from else {
            if self.early.len() < MOST {
                self.early.push((event.pid, event.tid, event.at, event.end()));
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
        assert_eq!((clip.cut(&gap(50, 40)), clip.cut(&gap(50, 90))), (None, None));
        assert!(clip.learn(&Record::new(Kind::Call, 100, 7)));
        assert!(!clip.learn(&Record::new(Kind::Call, 90, 7)));
        assert_eq!((clip.from(), clip.kept()), (Some(100), vec![gap(100, 40)]));
        assert_eq!(clip.kept(), []);
    }
}
