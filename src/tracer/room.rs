//! Where there are as many owners as there may be, those whose last process has ended long ago make room for others.

use crate::model::fleet::Fleet;
use crate::owner::Directory;
use std::time::{Duration, Instant};

/// Whoever asks has seen by then what an owner's last process did: where places are needed, its own is free.
const SEEN_AFTER: Duration = Duration::from_secs(120);
/// Of all owners, one of so many goes at a time: looking for them is dear.
const PART: usize = 20;
const EVERY: Duration = Duration::from_secs(1);

/// Makes room for owners where there are as many as there may be.
#[derive(Debug, Default)]
pub(super) struct Room {
    made: Option<Instant>,
}

impl Room {
    /// Makes some at `now`, CLOCK_MONOTONIC ns, if it is needed and was not looked for a moment ago. How many owners went.
    pub(super) fn make(&mut self, directory: &mut Directory, fleet: &mut Fleet, now: u64) -> u64 {
        if !directory.is_full() || self.made.is_some_and(|made| made.elapsed() < EVERY) {
            return 0;
        }
        self.made = Some(Instant::now());
        let dead = fleet.dead_since(now.saturating_sub(SEEN_AFTER.as_nanos() as u64));
        let enough = directory.owners().div_ceil(PART);
        // one that has processes, which have done nothing for long, keeps its place
        let gone = dead.iter().filter(|owner| directory.retire(owner)).take(enough);
        gone.map(|owner| fleet.forget(owner)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fleet::Sums;
    use crate::owner::{Label, Wanted};

    const MINUTE: u64 = 60_000_000_000;

    #[test]
    fn owners_that_ended_long_ago_make_room_and_the_others_keep_their_places() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = Wanted::new(vec![Label::Comm], 3).unwrap();
        let (mut directory, mut fleet) = (Directory::new(wanted, folder.path()), Fleet::default());
        for (pid, name, at) in [(1, "old", 1), (2, "lives", 1), (3, "new", 9)] {
            directory.named(pid, name.as_bytes());
            let owner = directory.owner_of(pid);
            fleet.fold(&owner, Sums::default(), at * MINUTE);
        }
        [1, 3].into_iter().for_each(|pid| directory.forget(pid));
        assert_eq!(
            Room::default().make(&mut directory, &mut fleet, 3 * MINUTE),
            0,
            "nobody may have asked yet"
        );
        assert_eq!(Room::default().make(&mut directory, &mut fleet, 10 * MINUTE), 1);
        assert_eq!((directory.owners(), fleet.owners()), (2, 2));
        directory.named(4, b"next");
        assert_eq!(directory.owner_of(4).get("comm"), Some("next"));
        assert_eq!(directory.merged(), 0);
        assert_eq!(
            Room::default().make(&mut directory, &mut fleet, 10 * MINUTE),
            0,
            "who lives stays"
        );
        directory.named(5, b"more");
        assert_eq!(directory.owner_of(5).get("comm"), Some("other"));
    }
}
