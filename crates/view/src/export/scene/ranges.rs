//! Where ranges of a program are drawn: those of a thread below it, a track for each domain, in which they nest; those that are
//! of no thread side by side, as many tracks as overlap.

use super::painter::Track;
use crate::export::Map;
use crate::record::{Record, json};

/// Where one is drawn, and what that is called if nobody was told yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub track: Track,
    pub title: Option<String>,
}

/// Where ranges of a program are drawn.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// Numbers of domains, by name.
    domains: Map<String, u32>,
    told: Map<Track, ()>,
    /// Of each process and domain: from when to when there is something on each of its tracks.
    sides: Map<(u32, u32), Vec<(i64, i64)>>,
}

impl Ranges {
    pub(super) fn place(&mut self, event: &Record<'_>) -> Placed {
        let name = event.args.and_then(json::domain_of_range).unwrap_or_default();
        let next = self.domains.len() as u32;
        let domain = *self.domains.entry(name.clone()).or_insert(next);
        let pid = event.pid;
        let track = match json::is_of_range(event.args, "started") {
            true => Track::Range {
                pid,
                tid: 0,
                domain,
                side: self.free_side((pid, domain), event.at, event.end()),
            },
            false => Track::Range {
                pid,
                tid: event.tid,
                domain,
                side: 0,
            },
        };
        let is_new = self.told.insert(track, ()).is_none();
        Placed {
            track,
            title: is_new.then(|| titled(track, &name)),
        }
    }

    /// The first track on which nothing is at that time.
    fn free_side(&mut self, of: (u32, u32), at: i64, end: i64) -> u32 {
        let sides = self.sides.entry(of).or_default();
        let free = sides.iter().position(|(from, to)| at >= *to || end <= *from);
        let side = free.unwrap_or_else(|| {
            sides.push((at, end));
            sides.len() - 1
        });
        sides[side] = (sides[side].0.min(at), sides[side].1.max(end));
        side as u32
    }
}

fn titled(track: Track, domain: &str) -> String {
    match domain {
        "" => track.title(),
        domain => format!("{}: {domain}", track.title()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;

    fn range(at: i64, ns: u64, args: &'static str) -> Record<'static> {
        Record {
            ns: Some(ns),
            tid: 8,
            args: Some(args),
            ..Record::new(Kind::Range, at, 7)
        }
    }

    fn side(placed: &Placed) -> u32 {
        match placed.track {
            Track::Range { side, .. } => side,
            _ => unreachable!("another track"),
        }
    }

    #[test]
    fn a_domain_has_a_track_below_each_thread_which_is_named_once() {
        let mut ranges = Ranges::default();
        let first = ranges.place(&range(0, 10, r#"{"domain":"data"}"#));
        assert_eq!(first.title.as_deref(), Some("ranges (NVTX) of thread 8: data"));
        let second = ranges.place(&range(2, 3, r#"{"domain":"data"}"#));
        assert_eq!((second.track, second.title), (first.track, None));
        let other = ranges.place(&range(2, 3, r#"{"domain":""}"#));
        assert_eq!(other.title.as_deref(), Some("ranges (NVTX) of thread 8"));
    }

    #[test]
    fn those_of_no_thread_lie_side_by_side_where_they_overlap() {
        let mut ranges = Ranges::default();
        let started = r#"{"domain":"","started":true}"#;
        let sides = [(0, 10), (5, 10), (10, 5), (20, 5)].map(|(at, ns)| side(&ranges.place(&range(at, ns, started))));
        assert_eq!(sides, [0, 1, 0, 0]);
    }
}
