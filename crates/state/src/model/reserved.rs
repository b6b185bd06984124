//! Time in which schedulers had given devices to somebody, and what of it nobody used. Pure.
//!
//! Both are looked at now and then. What was reserved at two looks was so between them; what no process used at both is
//! unused, and everything else is bound: so reserved time is bound and unused time, neither falls, and unused time errs on
//! the side of use. What came and went between two looks is not counted.

use crate::owner::Owner;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// Who has what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub owner: Arc<Owner>,
    /// UUID of the GPU or of the MIG device.
    pub device: Arc<str>,
}

/// Of one owner and device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    pub reserved_ns: u64,
    /// While a process of the owner may have used it.
    pub bound_ns: u64,
    /// It is reserved now.
    pub is_reserved: bool,
}

impl Account {
    /// While surely none did.
    #[must_use]
    pub fn unused_ns(&self) -> u64 {
        self.reserved_ns - self.bound_ns
    }
}

/// Time by owner and device, since the first look.
#[derive(Debug, Default)]
pub struct Reserved {
    accounts: BTreeMap<Place, (Account, u64)>,
    /// At the last look, and whether each was bound then.
    looked_at: u64,
    held: BTreeMap<Place, bool>,
}

impl Reserved {
    /// What is reserved at `now` (ns), and whether a process may use it. Where the last look was more than `longest` ns ago, or
    /// never, nothing is known of the time between. With `most` accounts, further owners are one: [`Owner::other`].
    pub fn look(&mut self, now: u64, longest: u64, most: usize, reserved: impl IntoIterator<Item = (Place, bool)>) {
        let passed = now.saturating_sub(self.looked_at);
        let passed = if passed > longest { 0 } else { passed };
        let mut held = BTreeMap::new();
        for (place, bound) in reserved {
            *held.entry(self.admit(place, most, now)).or_default() |= bound;
        }
        for (account, _) in self.accounts.values_mut() {
            account.is_reserved = false;
        }
        for (place, bound) in &held {
            let Some((account, seen_at)) = self.accounts.get_mut(place) else {
                continue;
            };
            (account.is_reserved, *seen_at) = (true, now);
            if let Some(was_bound) = self.held.get(place) {
                account.reserved_ns += passed;
                account.bound_ns += if *was_bound || *bound { passed } else { 0 };
            }
        }
        (self.held, self.looked_at) = (held, now);
    }

    fn admit(&mut self, place: Place, most: usize, now: u64) -> Place {
        let is_full = self.accounts.len() >= most;
        let place = match self.accounts.contains_key(&place) || !is_full {
            true => place,
            false => Place {
                owner: Arc::new(Owner::other()),
                ..place
            },
        };
        if let Entry::Vacant(free) = self.accounts.entry(place.clone()) {
            free.insert((Account::default(), now));
        }
        place
    }

    /// Forgets what was not reserved since `horizon` (ns).
    pub fn retire(&mut self, horizon: u64) {
        self.accounts
            .retain(|_, (account, seen_at)| account.is_reserved || *seen_at >= horizon);
    }

    /// All accounts, by owner and device.
    pub fn accounts(&self) -> impl Iterator<Item = (&Place, &Account)> {
        self.accounts.iter().map(|(place, (account, _))| (place, account))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONGEST: u64 = 100;

    fn place(owner: &str, device: &str) -> Place {
        let labels = vec![("pod".to_owned(), owner.to_owned())];
        Place {
            owner: Arc::new(Owner { labels }),
            device: device.into(),
        }
    }

    fn of(reserved: &Reserved, wanted: &Place) -> (u64, u64) {
        let found = reserved.accounts().find(|(place, _)| *place == wanted);
        found.map_or((0, 0), |(_, account)| (account.reserved_ns, account.unused_ns()))
    }

    #[test]
    fn a_device_that_was_given_and_that_nobody_uses_is_unused_until_somebody_does() {
        let (mut reserved, a) = (Reserved::default(), place("a", "GPU-0"));
        for (now, bound) in [(1000, false), (1010, false), (1030, true), (1040, true), (1050, false)] {
            reserved.look(now, LONGEST, 9, [(a.clone(), bound)]);
        }
        assert_eq!(
            of(&reserved, &a),
            (50, 10),
            "only between the first two looks was it surely unused"
        );
    }

    #[test]
    fn what_is_between_a_look_with_and_one_without_is_nobodys() {
        let (mut reserved, a) = (Reserved::default(), place("a", "GPU-0"));
        reserved.look(1000, LONGEST, 9, [(a.clone(), false)]);
        reserved.look(1010, LONGEST, 9, []);
        reserved.look(1020, LONGEST, 9, [(a.clone(), false)]);
        assert_eq!(of(&reserved, &a), (0, 0));
        reserved.look(1021 + LONGEST, LONGEST, 9, [(a.clone(), false)]);
        assert_eq!(of(&reserved, &a), (0, 0), "so long nobody looked");
    }

    #[test]
    fn slices_of_one_owner_on_one_device_are_one_and_used_if_one_is() {
        let (mut reserved, a) = (Reserved::default(), place("a", "GPU-0"));
        for now in [1000, 1010] {
            reserved.look(now, LONGEST, 9, [(a.clone(), false), (a.clone(), true)]);
        }
        assert_eq!(of(&reserved, &a), (10, 0));
    }

    #[test]
    fn owners_beyond_what_is_allowed_are_one() {
        let (mut reserved, all) = (Reserved::default(), ["a", "b", "c"].map(|owner| place(owner, "GPU-0")));
        for now in [1000, 1010] {
            reserved.look(now, LONGEST, 1, all.clone().map(|place| (place, false)));
        }
        let other = Place {
            owner: Arc::new(Owner::other()),
            device: "GPU-0".into(),
        };
        assert_eq!((of(&reserved, &all[0]), of(&reserved, &other)), ((10, 10), (10, 10)));
        assert_eq!(reserved.accounts().count(), 2);
    }

    #[test]
    fn what_is_no_longer_reserved_is_kept_for_a_while() {
        let (mut reserved, a) = (Reserved::default(), place("a", "GPU-0"));
        reserved.look(1000, LONGEST, 9, [(a, false)]);
        reserved.retire(2000);
        assert_eq!(reserved.accounts().count(), 1, "it is reserved still");
        reserved.look(1010, LONGEST, 9, []);
        reserved.retire(1000);
        assert!(reserved.accounts().all(|(_, account)| !account.is_reserved));
        reserved.retire(1001);
        assert_eq!(reserved.accounts().count(), 0);
    }

    proptest! {
        #[test]
        fn reserved_time_is_bound_and_unused_time_never_falls_and_is_no_more_than_passed(
            looks in prop::collection::vec((0u64..150, prop::collection::vec((0usize..4, any::<bool>()), 0..5)), 0..40),
        ) {
            let places = [("a", "0"), ("a", "1"), ("b", "0"), ("b", "1")].map(|(owner, device)| place(owner, device));
            let (mut reserved, mut now, mut passed, mut before) = (Reserved::default(), 1000, 0, BTreeMap::new());
            for (number, (step, held)) in looks.iter().enumerate() {
                now += step;
                passed += if number == 0 { 0 } else { *step };
                reserved.look(now, LONGEST, 9, held.iter().map(|(at, bound)| (places[*at].clone(), *bound)));
                for (place, account) in reserved.accounts() {
                    prop_assert_eq!(account.bound_ns + account.unused_ns(), account.reserved_ns);
                    prop_assert!(account.reserved_ns <= passed);
                    let old: Account = before.insert(place.clone(), *account).unwrap_or_default();
                    prop_assert!(old.bound_ns <= account.bound_ns && old.unused_ns() <= account.unused_ns());
                }
            }
        }
    }
}
