//! What devices did, by the call site that has asked for it.
//!
//! Owns the sums; which call that was is [`super::matching`]'s business, and what a site is called that of who keeps stacks.

use super::report::SiteTotal;
use super::total::Total;
use super::{Activity, What};
use crate::catalog::CopyKind;
use std::collections::HashMap;

/// Pairs of site and name that are told apart; the rest has no site.
const MOST: usize = 1 << 16;

/// What devices did.
#[derive(Debug, Clone, Default)]
pub struct Sites {
    known: HashMap<(u64, Did), SiteTotal>,
}

/// What a device did, by what makes a line of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Did {
    /// By the address of the name, which each symbol has once; 0: without one.
    Kernel(usize),
    Copy(Option<CopyKind>),
    Memset,
    Graph,
}

impl Did {
    fn of(what: &What) -> Did {
        match what {
            What::Kernel { name, .. } => {
                Did::Kernel(name.as_ref().map_or(0, |name| std::sync::Arc::as_ptr(name) as usize))
            }
            What::Copy { direction, .. } => Did::Copy(*direction),
            What::Memset { .. } => Did::Memset,
            What::Graph => Did::Graph,
        }
    }
}

impl Sites {
    /// Adds one whose call came from a site, if it is known.
    pub fn add(&mut self, activity: &Activity) {
        let Some(site) = activity.call.and_then(|call| call.site) else {
            return;
        };
        let key = (site, Did::of(&activity.what));
        if self.known.len() >= MOST && !self.known.contains_key(&key) {
            return;
        }
        let sum = self.known.entry(key).or_insert_with(|| SiteTotal {
            site,
            what: activity.what.clone(),
            total: Total::default(),
        });
        sum.total.add(activity.ns());
    }

    /// Most time first.
    #[must_use]
    pub fn report(&self) -> Vec<SiteTotal> {
        let mut all: Vec<SiteTotal> = self.known.values().cloned().collect();
        all.sort_by_key(|sum| (std::cmp::Reverse(sum.total.ns), sum.site));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cause;
    use super::*;

    fn memset(site: Option<u64>, ns: u64) -> Activity {
        Activity {
            pid: 7,
            begin: 100,
            end: 100 + ns,
            device: 0,
            context: 1,
            stream: 13,
            graph: None,
            call: Some(Cause {
                tid: 7,
                entered: 50,
                site,
                waits: None,
            }),
            what: What::Memset { bytes: 4 },
        }
    }

    #[test]
    fn time_is_that_of_the_site_of_its_call() {
        let mut sites = Sites::default();
        for (site, ns) in [(Some(31), 10), (Some(30), 40), (Some(31), 5), (None, 1000)] {
            sites.add(&memset(site, ns));
        }
        let without = Activity {
            call: None,
            ..memset(None, 1000)
        };
        sites.add(&without);
        let told: Vec<(u64, u64, u64)> = sites
            .report()
            .iter()
            .map(|sum| (sum.site, sum.total.count, sum.total.ns))
            .collect();
        assert_eq!(told, [(30, 1, 40), (31, 2, 15)]);
    }

    #[test]
    fn a_copy_and_a_fill_of_one_site_are_two_sums() {
        let mut sites = Sites::default();
        let copy = Activity {
            what: What::Copy {
                direction: Some(CopyKind::HtoD),
                host: None,
                bytes: 4,
            },
            ..memset(Some(30), 7)
        };
        sites.add(&copy);
        sites.add(&memset(Some(30), 9));
        assert_eq!(sites.report().len(), 2);
    }
}
