//! Which process has started which, as `/proc` tells it now. Who was left by its parent is its new parent's.

use super::processes;
use std::collections::{BTreeSet, HashMap};

/// Who has started process `pid`; `None`: nobody that can be seen from here, or it is gone.
#[must_use]
pub fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parent_in(&stat).filter(|parent| *parent != 0)
}

/// The name in parentheses may have anything in it.
fn parent_in(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Those of `roots`, and who descends from them.
#[must_use]
pub fn descendants(roots: impl IntoIterator<Item = u32>) -> BTreeSet<u32> {
    let parents = processes().into_iter().filter_map(|pid| Some((pid, parent_of(pid)?)));
    below(roots, parents)
}

/// The same, by each process's parent.
fn below(roots: impl IntoIterator<Item = u32>, parents: impl Iterator<Item = (u32, u32)>) -> BTreeSet<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (pid, parent) in parents {
        children.entry(parent).or_default().push(pid);
    }
    let (mut all, mut open) = (BTreeSet::new(), Vec::from_iter(roots));
    while let Some(pid) = open.pop() {
        if all.insert(pid) {
            open.extend(children.remove(&pid).unwrap_or_default());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_what_comes_after_it() {
        assert_eq!(parent_in("12 (a) S 99 (b) R 34 12 12"), Some(34));
        assert_eq!(parent_in("12 (a"), None);
    }

    #[test]
    fn who_descends_is_found_in_any_order_and_from_a_circle() {
        let parents = [(7, 5), (5, 3), (3, 1), (4, 1), (8, 7), (20, 21), (21, 20)];
        let of = |roots: &[u32]| {
            below(roots.iter().copied(), parents.into_iter())
                .into_iter()
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&[5]), [5, 7, 8]);
        assert_eq!(of(&[3, 4]), [3, 4, 5, 7, 8]);
        assert_eq!(of(&[20]), [20, 21]);
        assert_eq!(of(&[99]), [99], "it was asked for");
    }

    #[test]
    fn we_descend_from_our_parent() {
        let own = std::process::id();
        let parent = parent_of(own).unwrap();
        assert!(descendants([parent]).contains(&own));
        assert_eq!(parent_of(u32::MAX), None);
    }
}
