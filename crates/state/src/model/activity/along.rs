//! Sums of causes along time: which part of a run they are wanted of is known only at its end.
//!
//! Owns how finely that is kept, the more coarsely the longer it goes on. Which part is wanted is not its business.

use super::causes::Why;
use super::sums::{Sum, Sums};
use super::threads::Place;
use super::total::Total;

/// Stretches of time that are kept apart.
const MOST: usize = 512;
/// The first ones, ns.
const SHORTEST_NS: u64 = 1 << 20;
/// Places of one cause that are told apart in a stretch, and in a part.
const PLACES: usize = 16;

/// Idle time of one device along time, from its first gap on.
#[derive(Debug, Clone, Default)]
pub(super) struct Along {
    origin: u64,
    width: u64,
    stretches: Vec<Sums>,
}

/// What is known of a part: of whole stretches.
#[derive(Debug, Clone)]
pub(super) struct PartSums {
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) sums: Sums,
}

impl Along {
    /// Nothing ran from `since` until `until`. It counts where it begins, and its time where it passed.
    pub(super) fn add(&mut self, since: u64, until: u64, why: Why, place: &Place) {
        if self.width == 0 {
            (self.origin, self.width) = (since, SHORTEST_NS);
        }
        let mut at = since.max(self.origin);
        while until.saturating_sub(self.origin) > self.width * MOST as u64 {
            self.halve();
        }
        let mut total = Total {
            count: 1,
            ns: 0,
            max_ns: until - since,
        };
        while at < until {
            let stretch = ((at - self.origin) / self.width) as usize;
            let end = until.min(self.origin + (stretch as u64 + 1) * self.width);
            total.ns = end - at;
            self.stretch(stretch).entry(why).or_default().add(&total, place, PLACES);
            total = Total::default();
            at = end;
        }
    }

    fn stretch(&mut self, number: usize) -> &mut Sums {
        if self.stretches.len() <= number {
            self.stretches.resize_with(number + 1, Sums::default);
        }
        &mut self.stretches[number]
    }

    /// Of two stretches each one becomes.
    fn halve(&mut self) {
        let pairs = self.stretches.chunks(2);
        self.stretches = pairs.map(|pair| joined(pair.iter())).collect();
        self.width *= 2;
    }

    /// What is known of the part from `from` until `until`; `None`: it is too short for that.
    pub(super) fn part(&self, from: u64, until: u64) -> Option<PartSums> {
        if self.width == 0 {
            return None;
        }
        let first = from.saturating_sub(self.origin).div_ceil(self.width);
        let last = until.saturating_sub(self.origin) / self.width;
        let known = self.stretches.len().min(last as usize);
        let within = self.stretches.get((first as usize).min(known)..known)?;
        (first < last).then(|| PartSums {
            from: self.origin + first * self.width,
            until: self.origin + last * self.width,
            sums: joined(within.iter()),
        })
    }
}

fn joined<'a>(stretches: impl Iterator<Item = &'a Sums>) -> Sums {
    let mut all = Sums::default();
    for (why, sum) in stretches.flatten() {
        let known: &mut Sum = all.entry(*why).or_default();
        known.join(sum, PLACES);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const MS: u64 = 1 << 20;

    fn ns(part: &PartSums, why: Why) -> (u64, u64, u64) {
        let total = part.sums.get(&why).map(|sum| sum.total).unwrap_or_default();
        (total.count, total.ns, total.max_ns)
    }

    fn at(site: u64) -> Place {
        Place {
            site: Some(site),
            stack: None,
        }
    }

    #[test]
    fn a_part_has_the_time_that_passed_in_it_and_the_gaps_that_began_in_it() {
        let mut along = Along::default();
        along.add(7, 7 + 10 * MS, Why::HostCode, &at(1));
        along.add(7 + 12 * MS, 7 + 14 * MS, Why::Blocked, &at(2));
        let part = along.part(7 + 4 * MS - 1, 7 + 20 * MS).unwrap();
        assert_eq!((part.from, part.until), (7 + 4 * MS, 7 + 20 * MS));
        assert_eq!(ns(&part, Why::HostCode), (0, 6 * MS, 0), "it began before");
        assert_eq!(ns(&part, Why::Blocked), (1, 2 * MS, 2 * MS));
    }

    #[test]
    fn a_part_without_a_whole_stretch_is_not_known() {
        let mut along = Along::default();
        assert!(along.part(0, u64::MAX).is_none());
        along.add(0, MS, Why::HostCode, &at(1));
        assert!(along.part(1, MS).is_none());
        assert!(along.part(5 * MS, 4 * MS).is_none());
        let part = along.part(5 * MS, 9 * MS).unwrap();
        assert!(part.sums.is_empty(), "nothing was idle there");
    }

    proptest! {
        #[test]
        fn however_long_it_goes_on_nothing_is_lost_and_parts_add_up(
            gaps in vec((0..50_000_000u64, 1..2_000_000_000u64), 1..60), cut in 0.0..1.0f64
        ) {
            let mut along = Along::default();
            let (mut end, mut idle) = (0, 0);
            for (busy, gap) in &gaps {
                along.add(end + busy, end + busy + gap, Why::Launch, &at(3));
                end += busy + gap;
                idle += gap;
            }
            let far = end + 2 * along.width;
            let all = along.part(0, far).unwrap();
            prop_assert_eq!(ns(&all, Why::Launch).0, gaps.len() as u64);
            prop_assert_eq!(ns(&all, Why::Launch).1, idle);
            prop_assert!(along.stretches.len() <= MOST);
            let stretches = (far - along.origin) / along.width;
            let cut = along.origin + along.width * (cut * stretches as f64) as u64;
            let sides = [along.part(0, cut), along.part(cut, far)];
            let sides: u64 = sides.iter().flatten().map(|side| ns(side, Why::Launch).1).sum();
            prop_assert_eq!(sides, idle);
        }
    }
}
