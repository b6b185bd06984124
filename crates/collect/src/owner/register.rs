//! The owners there are: each set of labels once, and no more than allowed.

use super::Owner;
use std::collections::HashMap;
use std::sync::Arc;

/// Owners with the number of processes that each has.
#[derive(Debug)]
pub struct Register {
    processes: HashMap<Arc<Owner>, usize>,
    other: Arc<Owner>,
    others: usize,
    merged: u64,
    pub limit: usize,
}

impl Register {
    pub(crate) fn new(limit: usize) -> Register {
        Register {
            processes: HashMap::new(),
            other: Arc::new(Owner::other()),
            others: 0,
            merged: 0,
            limit,
        }
    }

    /// One more process of `owner`, or of the owner `other` if that would be one owner too many.
    pub fn enter(&mut self, owner: Owner) -> Arc<Owner> {
        if owner == *self.other {
            self.others += 1;
            return Arc::clone(&self.other);
        }
        if let Some((known, _)) = self.processes.get_key_value(&owner) {
            let known = Arc::clone(known);
            self.count(&known, 1);
            return known;
        }
        if self.processes.len() >= self.limit {
            self.others += 1;
            return self.merge();
        }
        let new = Arc::new(owner);
        self.processes.insert(Arc::clone(&new), 1);
        new
    }

    /// The owner `other`, for a process that cannot be remembered.
    pub fn merge(&mut self) -> Arc<Owner> {
        self.merged += 1;
        Arc::clone(&self.other)
    }

    /// One process less. The owner stays: its counters are still shown.
    pub fn leave(&mut self, owner: &Arc<Owner>) {
        if Arc::ptr_eq(owner, &self.other) {
            self.others = self.others.saturating_sub(1);
        } else {
            self.count(owner, -1);
        }
    }

    /// Gives its place to another; `false`: it has processes, or is not known.
    pub fn retire(&mut self, owner: &Owner) -> bool {
        let unused = self.processes.get(owner) == Some(&0);
        unused && self.processes.remove(owner).is_some()
    }

    /// Whether a further owner would be counted for `other`.
    pub fn is_full(&self) -> bool {
        self.processes.len() >= self.limit
    }

    /// How many there are; `other` is one from its first process on.
    pub fn len(&self) -> usize {
        self.processes.len() + usize::from(self.others > 0 || self.merged > 0)
    }

    /// How many times a process was counted for `other` because there were too many owners.
    pub fn merged(&self) -> u64 {
        self.merged
    }

    fn count(&mut self, owner: &Arc<Owner>, difference: isize) {
        if let Some(processes) = self.processes.get_mut(owner) {
            *processes = processes.saturating_add_signed(difference);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(comm: &str) -> Owner {
        Owner {
            labels: vec![("comm".to_owned(), comm.to_owned())],
        }
    }

    #[test]
    fn equal_owners_are_one() {
        let mut register = Register::new(10);
        let (one, same, another) = (
            register.enter(owner("a")),
            register.enter(owner("a")),
            register.enter(owner("b")),
        );
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &another));
        assert_eq!((register.len(), register.merged()), (2, 0));
    }

    #[test]
    fn one_owner_too_many_is_counted_for_other() {
        let mut register = Register::new(1);
        register.enter(owner("a"));
        let (second, third) = (register.enter(owner("b")), register.enter(owner("c")));
        assert!(Arc::ptr_eq(&second, &third));
        assert_eq!((&*second, register.len(), register.merged()), (&Owner::other(), 2, 2));
        assert_eq!(register.enter(owner("a")).get("comm"), Some("a"));
    }

    #[test]
    fn a_process_that_calls_itself_other_takes_no_place_and_is_not_merged() {
        let mut register = Register::new(0);
        register.enter(owner("other"));
        assert_eq!((register.len(), register.merged()), (1, 0));
    }

    #[test]
    fn an_owner_retires_when_its_last_process_has_left_and_then_another_has_its_place() {
        let mut register = Register::new(1);
        let (first, _) = (register.enter(owner("a")), register.enter(owner("a")));
        register.leave(&first);
        assert!(!register.retire(&first));
        register.leave(&first);
        assert!(register.retire(&first) && !register.retire(&first));
        assert_eq!(register.enter(owner("b")).get("comm"), Some("b"));
    }
}
