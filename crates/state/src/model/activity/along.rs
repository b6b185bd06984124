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
    stretches: Vec<Stretch>,
}

#[derive(Debug, Clone, Default)]
struct Stretch {
    sums: Sums,
    /// Of the gap that was under way when it began, so much.
    carried: Option<(Why, u64)>,
}

/// What is known of a part: of whole stretches.
#[derive(Debug, Clone)]
pub(super) struct PartSums {
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) sums: Sums,
}

impl Along {
    /// Nothing ran from `since` until `until`.
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
            let is_carried = total.count == 0;
            let stretch = self.stretch(stretch);
            let sum = stretch.sums.entry(why).or_default();
            sum.add(&total, place, PLACES);
            // once, however many stretches the gap passes through
            if !is_carried {
                sum.look(place, PLACES);
            }
            stretch.carried = stretch.carried.or(is_carried.then_some((why, end - at)));
            total = Total::default();
            at = end;
        }
    }

    fn stretch(&mut self, number: usize) -> &mut Stretch {
        if self.stretches.len() <= number {
            self.stretches.resize_with(number + 1, Stretch::default);
        }
        &mut self.stretches[number]
    }

    /// Of two stretches each one becomes.
    fn halve(&mut self) {
        let pairs = self.stretches.chunks(2);
        let joined = pairs.map(|pair| Stretch {
            sums: joined(pair.iter()),
            carried: carried_ns(pair, self.width),
        });
        self.stretches = joined.collect();
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
        let mut sums = joined(within.iter());
        if let Some((why, ns)) = carried_ns(within, self.width) {
            let begun_before = Total {
                count: 1,
                ns: 0,
                max_ns: ns,
            };
            sums.entry(why).or_default().total.join(&begun_before);
        }
        (first < last).then(|| PartSums {
            from: self.origin + first * self.width,
            until: self.origin + last * self.width,
            sums,
        })
    }
}

/// Of the gap that was under way when the first of these stretches began, so much lies within them.
fn carried_ns(stretches: &[Stretch], width: u64) -> Option<(Why, u64)> {
    let (why, mut all) = stretches.first()?.carried?;
    for pair in stretches.windows(2) {
        match (pair[0].carried, pair[1].carried) {
            (Some((_, full)), Some((_, more))) if full == width => all += more,
            _ => break,
        }
    }
    Some((why, all))
}

fn joined<'a>(stretches: impl Iterator<Item = &'a Stretch>) -> Sums {
    let mut all = Sums::default();
    for (why, sum) in stretches.flat_map(|stretch| &stretch.sums) {
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
            ..Place::default()
        }
    }

    #[test]
    fn a_part_has_the_time_that_passed_in_it_and_its_share_of_a_gap_that_began_before() {
        let mut along = Along::default();
        along.add(7, 7 + 10 * MS, Why::HostCode, &at(1));
        along.add(7 + 12 * MS, 7 + 14 * MS, Why::Blocked, &at(2));
        let part = along.part(7 + 4 * MS - 1, 7 + 20 * MS).unwrap();
        assert_eq!((part.from, part.until), (7 + 4 * MS, 7 + 20 * MS));
        assert_eq!(ns(&part, Why::HostCode), (1, 6 * MS, 6 * MS));
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

    #[test]
    fn a_look_counts_once_however_many_parts_its_gap_passes_through() {
        let mut along = Along::default();
        let place = Place {
            looks: vec![r#"[{"function":"step","file":"train.py","line":10,"language":"python"}]"#.into()],
            ..Place::default()
        };
        along.add(0, 25 * MS, Why::HostCode, &place);
        let part = along.part(0, 30 * MS).unwrap();
        assert!(
            super::super::sums::report(&part.sums)
                .iter()
                .all(|cause| !cause.estimated)
        );
    }

    proptest! {
        #[test]
        fn however_long_it_goes_on_nothing_is_lost_and_parts_add_up(
            gaps in vec((0..50_000_000u64, 1..2_000_000_000u64), 1..60), cut in 0.0..1.0f64
        ) {
            let mut along = Along::default();
            let (mut end, mut idle) = (0, 0);
            let mut spans = Vec::new();
            for (busy, gap) in &gaps {
                along.add(end + busy, end + busy + gap, Why::Launch, &at(3));
                spans.push((end + busy, end + busy + gap));
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
            let sides: Vec<(u64, u64, u64)> = sides.iter().flatten().map(|side| ns(side, Why::Launch)).collect();
            prop_assert_eq!(sides.iter().map(|side| side.1).sum::<u64>(), idle);
            let cut_in_two = spans.iter().find(|(since, until)| (since + 1..*until).contains(&cut));
            let gaps = gaps.len() + usize::from(cut_in_two.is_some());
            prop_assert_eq!(sides.iter().map(|side| side.0).sum::<u64>(), gaps as u64);
            if let Some((_, until)) = cut_in_two {
                let behind: u64 = spans.iter().map(|(since, until)| until - since.max(&cut).min(until)).max().unwrap_or(0);
                prop_assert_eq!(sides.last().unwrap().2, behind, "{} of it", until - cut);
            }
        }
    }
}
