//! Tracks side by side: what lasts at the same time lies on different ones.

use super::Map;

/// When the last of each track is over, by process.
#[derive(Debug, Default)]
pub(super) struct Sides(Map<u32, Vec<i64>>);

impl Sides {
    /// The first track of a process that is free from `at` on; it is taken until `end`.
    pub(super) fn place(&mut self, pid: u32, at: i64, end: i64) -> u32 {
        let ends = self.0.entry(pid).or_default();
        let side = ends.iter().position(|until| *until <= at).unwrap_or(ends.len());
        match ends.get_mut(side) {
            Some(until) => *until = end,
            None => ends.push(end),
        }
        side as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_over_makes_room() {
        let mut sides = Sides::default();
        let places = [(0, 10), (5, 30), (10, 12), (11, 13), (40, 50)].map(|(at, end)| sides.place(7, at, end));
        assert_eq!(places, [0, 1, 0, 2, 0]);
        assert_eq!(sides.place(8, 0, 1), 0, "each process has its own");
    }
}
